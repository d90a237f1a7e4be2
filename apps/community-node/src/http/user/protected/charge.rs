//! Charges a request to a daily quota.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use serde_json::json;

use super::super::{
    super::{Http, error::ApiError, request_id::RequestId},
    caller::Caller,
};
use crate::{
    metrics::Reason,
    quota::{Metric, Payer, Refusal},
};

/// Identity of a request for charging: a retry with the same id is charged once, within minutes and
/// a few times.
pub(in super::super) struct Charge {
    request_id: Option<String>,
    request: String,
}

impl<S: Sync> FromRequestParts<S> for Charge {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let id = parts.extensions.get::<RequestId>().filter(|id| id.given);
        let request_id = id.map(|id| id.id.clone());
        Ok(Self { request_id, request: format!("{} {}", parts.method, parts.uri) })
    }
}

// === impl Charge ===

impl Charge {
    /// Charges one unit of `metric` to the caller.
    pub(super) async fn take(
        self,
        http: &Http,
        metric: Metric,
        caller: &Caller,
        body: &[u8],
    ) -> Result<(), ApiError> {
        // A request with the same id and other content is not a retry.
        let id = self.request_id.and_then(|id| {
            let parts = [id.as_bytes(), caller.pubkey.as_bytes(), self.request.as_bytes(), body];
            http.quotas.retries.id(&parts)
        });
        let payer = Payer { pubkey: &caller.pubkey, address: caller.address };
        match http.quotas.charge(&http.node, metric, payer, id.as_deref()).await {
            Ok(()) => Ok(()),
            Err(Refusal::Exceeded { current, limit, reset_at, shared }) => {
                let message = if shared {
                    "the daily quota that new keys share is used up"
                } else {
                    "nothing is left for today"
                };
                let metrics = &http.node.metrics;
                metrics.quota_exceeded.with_label_values(&["user-api", metric.name()]).inc();
                metrics.reject("user-api", Reason::Quota);
                let refused =
                    ApiError::new(StatusCode::PAYMENT_REQUIRED, "QUOTA_EXCEEDED", message);
                Err(refused.details(json!({
                    "metric": metric.name(),
                    "current": current,
                    "limit": limit,
                    "reset_at": reset_at,
                })))
            }
            Err(Refusal::Unavailable(cause)) => Err(ApiError::database(cause)),
        }
    }
}
