//! Reports, stored in the database's audit log.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, http::StatusCode};
use headgate_ratelimit::{AuditEntry, AuditFilter, AuditLog, Author, Page};
use nostr::{event::EventId, key::PublicKey};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{
        super::{Http, body::JsonBody, error::ApiError, request_id::RequestId},
        caller::Caller,
    },
    charge::Charge,
};
use crate::{quota::Metric, reports::ACTION};

/// A report of a public key or an event.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct Report {
    pubkey: Option<String>,
    event_id: Option<String>,
    reason: String,
}

/// `POST /v1/reports`
pub(in super::super) async fn report(
    State(http): State<Arc<Http>>,
    Extension(caller): Extension<Caller>,
    Extension(id): Extension<RequestId>,
    charge: Charge,
    body: JsonBody<Report>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let (target, reason) = body.value.check()?;
    charge.take(&http, Metric::Report, &caller, &body.bytes).await?;
    let at = http.node.clock.now();
    let entry = AuditEntry {
        // The audit log assigns the id.
        id: 0,
        author: Author { actor: caller.pubkey, request_id: id.id, at },
        action: ACTION.to_owned(),
        target,
        before: None,
        after: None,
        reason: Some(reason),
    };
    // A retry with the same id is not charged, and adds nothing that is stored already.
    http.node.database.record_once(&entry).await.map_err(ApiError::database)?;
    Ok((StatusCode::ACCEPTED, Json(json!({"status": "received"}))))
}

/// Number of reports about a public key.
pub(super) async fn about(http: &Http, pubkey: &str) -> Result<u64, ApiError> {
    let filter = AuditFilter {
        action: Some(ACTION.to_owned()),
        target: Some(format!("pubkey:{pubkey}")),
        ..AuditFilter::default()
    };
    let page = Page::new(1, 1).map_err(|_| ApiError::INTERNAL)?;
    let listed = http.node.database.entries(&filter, page).await;
    Ok(listed.map_err(ApiError::database)?.total)
}

// === impl Report ===

impl Report {
    /// Audit target.
    fn check(&self) -> Result<(String, String), ApiError> {
        let reason = self.reason.trim();
        if !(1..=500).contains(&reason.chars().count()) {
            return Err(ApiError::invalid(
                "INVALID_REASON",
                "reason must have 1 to 500 characters",
            ));
        }
        let target = match (&self.pubkey, &self.event_id) {
            (Some(pubkey), None) => {
                let pubkey = PublicKey::from_hex(pubkey).map_err(|_| ApiError::INVALID_PUBKEY)?;
                format!("pubkey:{}", pubkey.to_hex())
            }
            (None, Some(id)) => {
                let message = "event_id must be 64 hexadecimal digits";
                let invalid = |_| ApiError::invalid("INVALID_EVENT", message);
                format!("event:{}", EventId::from_hex(id).map_err(invalid)?.to_hex())
            }
            _ => {
                let message = "a report names either a pubkey or an event_id";
                return Err(ApiError::invalid("INVALID_TARGET", message));
            }
        };
        Ok((target, reason.to_owned()))
    }
}
