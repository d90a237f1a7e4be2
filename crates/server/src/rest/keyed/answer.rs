//! Responses.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header::CACHE_CONTROL},
    response::Response,
};
use headgate::{Decision, Degraded, FailMode};
use headgate_ratelimit::usecase::{KeyedQuestion, KeyedVerdict};
use serde::Serialize;
use utoipa::ToSchema;

use super::described;
use crate::rest::{error::NO_STORE, json, limit_headers};

const DEGRADED: HeaderName = HeaderName::from_static("x-ratelimit-degraded");

/// A decision.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RateLimitDecision)]
pub(in crate::rest) struct WireDecision<'a> {
    /// True if the request is admitted.
    allowed: bool,
    /// The key as it was given, or the client's address.
    #[schema(example = "user:123")]
    key: &'a str,
    #[schema(value_type = described::Algorithm)]
    algorithm: &'static str,
    /// Remaining units after this decision.
    remaining: u64,
    /// Seconds until the whole limit is available again.
    reset_after_seconds: u64,
    /// Seconds until the same request would be admitted; 0 if it was.
    retry_after_seconds: u64,
    message: &'static str,
    /// Fail mode that decided in place of the store; left out if the store decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = crate::rest::schemas::Degraded, required = false)]
    degraded: Option<&'static str>,
    /// True if it was admitted without asking Redis, from units leased in advance, so that
    /// `remaining` is a lower bound; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    leased: Option<bool>,
}

/// Remaining units of a key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RateLimitRemaining)]
pub(in crate::rest) struct WireRemaining<'a> {
    /// The key as it was given, or the client's address.
    #[schema(example = "user:123")]
    key: &'a str,
    remaining: u64,
    #[schema(value_type = described::Algorithm)]
    algorithm: &'static str,
    /// Fail mode that answered in place of the store; left out if the store answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = crate::rest::schemas::Degraded, required = false)]
    degraded: Option<&'static str>,
}

/// The response to a check.
pub(super) fn decided(question: &KeyedQuestion<'_>, verdict: &KeyedVerdict<'_>) -> Response {
    let decision = &verdict.decision;
    let mut response = json::respond(&WireDecision {
        allowed: decision.allowed,
        key: question.key.subject(),
        algorithm: question.algorithm.name(),
        remaining: decision.remaining,
        reset_after_seconds: decision.reset_after_secs(),
        retry_after_seconds: decision.retry_after_secs(),
        message: message(decision),
        degraded: decision.degraded.map(Degraded::name),
        leased: decision.is_from_lease().then_some(true),
    });
    if !decision.allowed {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    }
    write_headers(&mut response, question, verdict);
    limit_headers::write_retry(response.headers_mut(), decision);
    response
}

/// The response to a peek.
pub(super) fn remaining(question: &KeyedQuestion<'_>, verdict: &KeyedVerdict<'_>) -> Response {
    let mut response = json::respond(&WireRemaining {
        key: question.key.subject(),
        remaining: verdict.decision.remaining,
        algorithm: question.algorithm.name(),
        degraded: verdict.decision.degraded.map(Degraded::name),
    });
    write_headers(&mut response, question, verdict);
    response
}

fn message(decision: &Decision) -> &'static str {
    match (decision.allowed, decision.degraded.and_then(Degraded::fail_mode)) {
        (true, _) => "Request allowed",
        (false, Some(FailMode::Closed)) => "Request denied: the store is unavailable",
        (false, _) => "Rate limit exceeded",
    }
}

fn write_headers(
    response: &mut Response,
    question: &KeyedQuestion<'_>,
    verdict: &KeyedVerdict<'_>,
) {
    response.headers_mut().reserve(limit_headers::HEADERS);
    response.headers_mut().insert(CACHE_CONTROL, NO_STORE);
    limit_headers::write_keyed(response.headers_mut(), question, verdict);
    if let Some(degraded) = verdict.decision.degraded {
        response.headers_mut().insert(DEGRADED, HeaderValue::from_static(degraded.name()));
    }
}
