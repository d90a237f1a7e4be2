//! A unit of a daily quota for a request.

use std::convert::Infallible;

use axum::{
    extract::FromRequestParts,
    http::{StatusCode, request::Parts},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::digest::{Context, SHA256};
use serde_json::json;

use super::super::{
    super::{Http, error::ApiError, request_id::RequestId},
    caller::Caller,
};
use crate::{
    metrics::Reason,
    quota::{Metric, Refusal},
};

/// What a request is charged as: the same request under the same id is charged once a day.
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
    /// Takes one of `metric` from the caller's day.
    pub(super) async fn take(
        self,
        http: &Http,
        metric: Metric,
        caller: &Caller,
        body: &[u8],
    ) -> Result<(), ApiError> {
        let id = self.fingerprint(body);
        match http.quotas.charge(&http.node, metric, &caller.pubkey, id.as_deref()).await {
            Ok(()) => Ok(()),
            Err(Refusal::Exceeded { current, limit, reset_at }) => {
                let metrics = &http.node.metrics;
                metrics.quota_exceeded.with_label_values(&["user-api", metric.name()]).inc();
                metrics.reject("user-api", Reason::Quota);
                Err(ApiError::new(
                    StatusCode::PAYMENT_REQUIRED,
                    "QUOTA_EXCEEDED",
                    "nothing is left for today",
                )
                .details(json!({
                    "metric": metric.name(),
                    "current": current,
                    "limit": limit,
                    "reset_at": reset_at,
                })))
            }
            Err(Refusal::Unavailable(cause)) => Err(ApiError::database(cause)),
        }
    }

    /// An id is one for a request that says the same: another request is no repetition.
    fn fingerprint(&self, body: &[u8]) -> Option<String> {
        let id = self.request_id.as_ref()?;
        let mut hash = Context::new(&SHA256);
        for part in [id.as_bytes(), b"\0", self.request.as_bytes(), b"\0", body] {
            hash.update(part);
        }
        Some(URL_SAFE_NO_PAD.encode(hash.finish()))
    }
}
