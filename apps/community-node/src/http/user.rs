//! The user API.
//!
//! | module | contents |
//! |---|---|
//! | `auth` | signing in with a Nostr key |
//! | `challenge`, `tokens` | challenges to sign, and the tokens for them |
//! | `caller` | the public key of a request's token |
//! | `bootstrap`, `policies` | public data |
//! | `protected` | requests with a token, within a daily quota |
//! | `library` | the notes that searches scan |

mod auth;
mod bootstrap;
mod caller;
mod challenge;
pub(super) mod library;
mod policies;
mod protected;
mod signed;
mod tokens;

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    middleware,
    routing::{get, post},
};

use self::caller::Caller;
pub(super) use self::tokens::Tokens;
use super::Http;

/// Maximum size of a request to sign in or to report: an event with a few tags.
const MAX_BYTES: usize = 16 * 1024;

pub(super) fn router(http: &Arc<Http>) -> Router {
    let authenticate = middleware::from_fn_with_state(Arc::clone(http), caller::authenticate);
    let counted = http.guard.layer_after_auth(|extensions| {
        extensions.get::<Caller>().map(|caller| caller.pubkey.as_str())
    });
    let protected = Router::new()
        .route("/v1/search", get(protected::search))
        .route("/v1/trending", get(protected::trending))
        .route("/v1/trust/{pubkey}", get(protected::trust))
        .route("/v1/reports", post(protected::report))
        .route_layer(counted)
        // Outside of the rate limit: a search that is refused because another is open is not
        // charged.
        .route_layer(http.guard.in_flight_layer())
        .route_layer(authenticate);
    Router::new()
        .route("/v1/auth/challenge", post(auth::challenge))
        .route("/v1/auth/verify", post(auth::verify))
        .merge(protected)
        .route("/v1/bootstrap/nodes", get(bootstrap::nodes))
        .route("/v1/bootstrap/hints/latest", get(bootstrap::latest_hint))
        .route("/v1/bootstrap/topics/{topic}/services", get(bootstrap::services))
        .route("/v1/policies/current", get(policies::current))
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(Arc::clone(http))
}
