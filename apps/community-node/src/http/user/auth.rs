//! Signing in with a Nostr key: a challenge, and the event that signs it.

use std::sync::Arc;

use axum::{Json, extract::State};
use nostr::{
    event::{Event, Kind},
    key::PublicKey,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    super::{Http, body::JsonBody, error::ApiError},
    caller,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    pubkey: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    auth_event_json: Value,
}

/// Maximum difference between an event's time and ours, in seconds.
const MAX_APART: u64 = 600;

/// `POST /v1/auth/challenge`
pub(super) async fn challenge(
    State(http): State<Arc<Http>>,
    body: JsonBody<Ask>,
) -> Result<Json<Value>, ApiError> {
    let pubkey = PublicKey::from_hex(&body.value.pubkey).map_err(|_| ApiError::INVALID_PUBKEY)?;
    caller::admit(&http, &pubkey)?;
    let asked = http.tokens.challenges.ask(&pubkey, http.node.seconds());
    let (challenge, expires_at) = asked.map_err(|_| ApiError::INTERNAL)?;
    Ok(Json(json!({"challenge": challenge, "expires_at": expires_at})))
}

/// `POST /v1/auth/verify`
pub(super) async fn verify(
    State(http): State<Arc<Http>>,
    body: JsonBody<Answer>,
) -> Result<Json<Value>, ApiError> {
    let metrics = &http.node.metrics;
    let now = http.node.seconds();
    let event = read(body.value.auth_event_json)?;
    if !is_answer(&http, &event, now) {
        metrics.auth_failure.with_label_values(&["user-api"]).inc();
        return Err(ApiError::AUTH_FAILED);
    }
    caller::admit(&http, &event.pubkey)?;
    metrics.auth_success.with_label_values(&["user-api"]).inc();
    let (token, expires_at) = http.tokens.issue(&event.pubkey, now);
    Ok(Json(json!({
        "access_token": token,
        "token_type": "Bearer",
        "expires_at": expires_at,
        "pubkey": event.pubkey.to_hex(),
    })))
}

/// Parses the event, which clients send as an object or as its text.
fn read(event: Value) -> Result<Event, ApiError> {
    let event = match event {
        Value::String(text) => serde_json::from_str(&text),
        other => serde_json::from_value(other),
    };
    let invalid = || {
        ApiError::invalid("INVALID_EVENT", "auth_event_json must be a signed event of kind 22242")
    };
    let event: Event = event.map_err(|_| invalid())?;
    if event.kind == Kind::Authentication { Ok(event) } else { Err(invalid()) }
}

/// Verifies that an event signs a challenge of ours. The signature comes late: it is the most
/// expensive part.
fn is_answer(http: &Http, event: &Event, now: u64) -> bool {
    let tag = |name: &str| event.tags.iter().find(|tag| tag.kind() == name)?.content();
    let here = tag("relay").is_some_and(|relay| same_place(relay, &http.relay_url));
    let fresh = event.created_at.as_secs().abs_diff(now) <= MAX_APART;
    let challenges = &http.tokens.challenges;
    let Some(asked) = tag("challenge").and_then(|text| challenges.open(text, &event.pubkey, now))
    else {
        return false;
    };
    // Only a valid signature uses up the challenge.
    here && fresh && event.verify().is_ok() && challenges.use_up(&asked, now)
}

fn same_place(left: &str, right: &str) -> bool {
    left.trim_end_matches('/').eq_ignore_ascii_case(right.trim_end_matches('/'))
}
