//! The public key of a request's token, found without I/O.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header::AUTHORIZATION},
    middleware::Next,
    response::Response,
};
use nostr::key::PublicKey;

use super::super::{Http, error::ApiError};
use crate::metrics::Reason;

/// The client of a request: its public key, since one key may have many tokens.
#[derive(Clone)]
pub(super) struct Caller {
    /// As 64 hexadecimal digits.
    pub(super) pubkey: String,
    pub(super) address: Option<IpAddr>,
}

/// Requires a valid token.
pub(super) async fn authenticate(
    State(http): State<Arc<Http>>,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let pubkey = owner(&http, request.headers())?;
    let address = http.guard.client(&request);
    request.extensions_mut().insert(Caller { pubkey: pubkey.to_hex(), address });
    Ok(next.run(request).await)
}

/// Returns the public key of the token in `headers`.
pub(super) fn owner(http: &Http, headers: &HeaderMap) -> Result<PublicKey, ApiError> {
    let header = headers.get(AUTHORIZATION).ok_or(ApiError::AUTH_REQUIRED)?;
    let token = header.to_str().ok().and_then(|header| {
        let (scheme, token) = header.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let owner = token.and_then(|token| http.tokens.owner(token, http.node.seconds()));
    let owner = owner.ok_or_else(|| {
        http.node.metrics.auth_failure.with_label_values(&["user-api"]).inc();
        ApiError::AUTH_FAILED
    })?;
    admit(http, &owner)?;
    Ok(owner)
}

/// Refuses a public key that the operator denies.
pub(super) fn admit(http: &Http, pubkey: &PublicKey) -> Result<(), ApiError> {
    if !http.node.denies_key(&pubkey.to_hex()) {
        return Ok(());
    }
    http.node.metrics.reject("user-api", Reason::Denied);
    Err(ApiError::DENIED)
}
