//! The HTTP APIs, except the relay.
//!
//! A request is counted by its address before it is parsed. A request with a token is then
//! authenticated, without I/O, and counted by its public key and its address. Only then is its
//! quota charged, in the database.
//!
//! | module | contents |
//! |---|---|
//! | `limits` | classes of routes, and their limits by the documents in force |
//! | `request_id`, `observe` | ids and metrics of requests |
//! | `deny` | refuses denied addresses |
//! | `user` | the user API: signing in, bootstrap, policies, requests with a token |
//! | `admin` | the admin API: documents, the denylist and their audit log |
//! | `health` | `/healthz` and `/metrics` |
//! | `error`, `body` | error responses, and bounded request bodies |

mod admin;
mod body;
mod deny;
pub(crate) mod error;
mod health;
mod limits;
mod observe;
mod request_id;
mod user;

use std::{
    io,
    sync::{Arc, Mutex},
};

use axum::{Router, extract::DefaultBodyLimit, middleware, routing::options};
use headgate::LimitError;
use headgate_guard::{DrainLayer, Guard, PolicyError};
use headgate_quota::Committer;
use thiserror::Error;
use tokio::sync::Semaphore;

use self::{
    admin::Sessions,
    limits::HttpObserver,
    user::{Tokens, library::Library},
};
use crate::{
    Node,
    quota::DailyQuotas,
    relay::{Relay, information},
    reports,
};

/// Maximum size of a request body.
const MAX_BYTES: usize = 2 * 1024 * 1024;

/// Maximum number of concurrent scans of notes; others wait.
const MAX_READERS: usize = 2;

/// State that the routes share.
pub(crate) struct Http {
    pub(crate) node: Arc<Node>,
    pub(crate) guard: Guard,
    pub(crate) tokens: Tokens,
    pub(crate) sessions: Sessions,
    pub(crate) quotas: DailyQuotas,
    pub(crate) library: Arc<dyn Library>,
    /// Limits concurrent scans, which are CPU-bound.
    pub(crate) readers: Arc<Semaphore>,
    /// URL that logins must be signed for.
    pub(crate) relay_url: String,
    /// Held while limits are applied, so that older ones never come last.
    pub(crate) limits_turn: Mutex<()>,
}

/// Error of building the API.
#[derive(Debug, Error)]
pub enum HttpError {
    /// The limits are invalid together.
    #[error("limits: {0}")]
    Policy(#[from] PolicyError),
    /// The limits of quotas are invalid.
    #[error("quotas: {0}")]
    Quotas(LimitError),
    /// The system has no randomness for tokens.
    #[error("cannot draw a secret for tokens: {0}")]
    Random(io::Error),
}

/// The routes, and their background tasks.
pub struct Service {
    http: Arc<Http>,
    committer: Committer,
}

// === impl Service ===

impl Service {
    /// Builds the routes of `node`, which search the events of `relay`.
    pub fn new(node: &Arc<Node>, relay: &Relay) -> Result<Self, HttpError> {
        let observer = Arc::new(HttpObserver::new(&node.metrics));
        let guard = Guard::builder(limits::of(node)?, limits::routes())
            .backend(node.guards.clone().observer(observer))
            .trusted_proxies(node.config.proxies.clone())
            .headers_when_admitted(true)
            .build()?;
        let (quotas, committer) = DailyQuotas::new(node).map_err(HttpError::Quotas)?;
        let tokens = Tokens::new(node.config.token_secret.as_ref()).map_err(HttpError::Random)?;
        let sessions = Sessions::default();
        let library: Arc<dyn Library> = relay.events().clone();
        let http = Http {
            node: Arc::clone(node),
            guard,
            tokens,
            sessions,
            quotas,
            library,
            readers: Arc::new(Semaphore::new(MAX_READERS)),
            relay_url: relay.url().to_string(),
            limits_turn: Mutex::default(),
        };
        Ok(Self { http: Arc::new(http), committer })
    }

    /// The routes, with those of metrics unless they have a listener of their own.
    pub fn router(&self) -> Router {
        let http = &self.http;
        let deny = middleware::from_fn_with_state(Arc::clone(http), deny::deny);
        let metrics = match http.node.config.metrics_listen {
            None => health::metrics_router(http),
            Some(_) => Router::new(),
        };
        let routes = Router::new()
            .merge(user::router(http))
            .merge(admin::router(http))
            .merge(health::router(http))
            .merge(metrics)
            // The relay serves GET itself; other methods are ordinary requests.
            .route("/relay", options(information::preflight).fallback(error::method_not_allowed))
            .fallback(error::not_found)
            .method_not_allowed_fallback(error::method_not_allowed)
            .layer(DefaultBodyLimit::max(MAX_BYTES))
            // Before anything else: no request is parsed before this.
            .layer(http.guard.layer())
            .layer(deny);
        self.observed(routes)
    }

    /// The routes of the listener of metrics.
    pub fn metrics_router(&self) -> Router {
        let http = &self.http;
        let routes = health::router(http).merge(health::metrics_router(http));
        let routes = routes.fallback(error::not_found);
        self.observed(routes.layer(http.guard.layer()))
    }

    fn observed(&self, routes: Router) -> Router {
        let observe = middleware::from_fn_with_state(Arc::clone(&self.http), observe::observe);
        routes
            .layer(observe)
            .layer(middleware::from_fn(request_id::name))
            // Drains unread bodies, so that clients receive early refusals.
            .layer(DrainLayer)
    }

    /// Keeps limits and quotas up to date, and deletes old reports; never returns.
    pub async fn run(self) {
        tokio::join!(
            limits::follow(&self.http),
            self.http.quotas.follow(),
            self.committer.run(),
            reports::run_housekeeping(&self.http.node),
        );
    }
}
