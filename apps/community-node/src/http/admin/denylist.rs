//! Routes of the denylist.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, http::StatusCode};
use headgate::Timestamp;
use headgate_quota::Author;
use headgate_service_config::{DenyEntry, DenyError, DenyUpdate};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::warn;

use super::{
    super::{
        Http,
        body::{JsonBody, Params},
        error::ApiError,
        request_id::RequestId,
    },
    ADMIN, documents,
};
use crate::denylist::Subject;

/// Maximum length of a reason, in characters.
const MAX_REASON: usize = 200;

/// The last second of the year 9999.
const LATEST: u64 = 253_402_300_799;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    subject: String,
    reason: String,
    /// Expiry, in seconds since the Unix epoch.
    expires_at: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    subject: String,
}

/// `GET /v1/admin/denylist`: all entries that have not expired.
pub(super) async fn list(State(http): State<Arc<Http>>) -> Result<Json<Value>, ApiError> {
    let list = http.node.database.denylist().load().await.map_err(documents::refused)?;
    let now = http.node.seconds();
    let lasting = list.entries.iter().filter(|entry| ends(entry).is_none_or(|end| now < end));
    let items: Vec<Value> = lasting.map(shown).collect();
    Ok(Json(json!({"revision": list.revision, "items": items})))
}

/// `PUT /v1/admin/denylist`: denies a subject on every node within two seconds.
pub(super) async fn put(
    State(http): State<Arc<Http>>,
    Extension(id): Extension<RequestId>,
    body: JsonBody<Put>,
) -> Result<Json<Value>, ApiError> {
    let update = validated(&body.value, http.node.seconds())?;
    let author = author(&http, id);
    let entry = http.node.database.denylist().put(&update, &author).await.map_err(refused)?;
    apply(&http).await;
    Ok(Json(shown(&entry)))
}

/// `DELETE /v1/admin/denylist?subject=...`
pub(super) async fn remove(
    State(http): State<Arc<Http>>,
    Extension(id): Extension<RequestId>,
    Params(wanted): Params<Wanted>,
) -> Result<StatusCode, ApiError> {
    let subject = subject(&wanted.subject)?.to_string();
    let author = author(&http, id);
    let removed = http.node.database.denylist().remove(&subject, &author).await;
    if !removed.map_err(documents::refused)? {
        return Err(ApiError::NOT_FOUND);
    }
    apply(&http).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Applies a committed change on this node. If that fails, the task that follows the list retries
/// within a second.
async fn apply(http: &Http) {
    if let Err(error) = http.node.denylist.refresh().await {
        warn!(%error, "failed to reload the denylist after a change; retrying in a second");
    }
}

fn validated(put: &Put, now: u64) -> Result<DenyUpdate, ApiError> {
    let invalid = |message: &'static str| ApiError::invalid("INVALID_DENYLIST_ENTRY", message);
    let subject = subject(&put.subject)?.to_string();
    let reason = put.reason.trim();
    let is_plain = !reason.chars().any(char::is_control);
    if !(1..=MAX_REASON).contains(&reason.chars().count()) || !is_plain {
        return Err(invalid("reason must have 1 to 200 characters, and no control characters"));
    }
    if put.expires_at.is_some_and(|end| !(now + 1..=LATEST).contains(&end)) {
        return Err(invalid("expires_at must be in the future, in seconds since 1970, or null"));
    }
    let expires_at = put.expires_at.map(|end| Timestamp::from_micros(end * 1_000_000));
    Ok(DenyUpdate { subject, reason: reason.to_owned(), expires_at })
}

fn subject(text: &str) -> Result<Subject, ApiError> {
    text.parse().map_err(|error: crate::denylist::SubjectError| {
        ApiError::invalid("INVALID_DENYLIST_ENTRY", error.to_string())
    })
}

fn author(http: &Http, id: RequestId) -> Author {
    Author { actor: ADMIN.to_owned(), request_id: id.id, at: http.node.clock.now() }
}

fn ends(entry: &DenyEntry) -> Option<u64> {
    entry.expires_at.map(|end| end.as_micros() / 1_000_000)
}

fn shown(entry: &DenyEntry) -> Value {
    let kind = entry.subject.parse().map_or("unknown", |subject: Subject| subject.kind());
    json!({
        "subject": entry.subject,
        "kind": kind,
        "reason": entry.reason,
        "expires_at": ends(entry),
        "created_at": entry.created_at.as_micros() / 1_000_000,
        "created_by": entry.created_by,
    })
}

fn refused(error: DenyError) -> ApiError {
    match error {
        DenyError::Full => ApiError::new(StatusCode::CONFLICT, "DENYLIST_FULL", error.to_string()),
        DenyError::Database(error) => documents::refused(error),
    }
}
