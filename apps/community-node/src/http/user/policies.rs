//! The limits in force that are public.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::super::Http;

/// `GET /v1/policies/current`
pub(super) async fn current(State(http): State<Arc<Http>>) -> Json<Value> {
    let active = http.node.user_api.current();
    let (rates, quota) = (active.document.rate_limit, active.document.quota);
    let (by_ip, by_pubkey) = rates.protected();
    let limits = json!({
        "type": "limits",
        "version": active.source.version(),
        "per_minute": {
            "enabled": rates.enabled,
            "auth": rates.auth_per_minute,
            "public": rates.public_per_minute,
            "protected": {"by_ip": by_ip, "by_pubkey": by_pubkey},
        },
        "per_day": {
            "index.search_requests": quota.search_requests,
            "index.trending_requests": quota.trending_requests,
            "trust.requests": quota.trust_requests,
            "moderation.report_submits": quota.report_submits,
        },
    });
    Json(json!({"items": [limits]}))
}
