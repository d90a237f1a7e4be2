//! The state of a rule that a caller has read.

use axum::{http::HeaderMap, response::Response};
use headgate::Timestamp;
use headgate_ratelimit::{RateLimitRule, Warning};

use super::WireRule;
use crate::rest::{entity_tag, error::ApiError, json};

/// Parses `If-Match`: the `updated_at` that the caller has read.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<Timestamp>, ApiError> {
    entity_tag::expected(headers, "rule")
}

/// A rule, with warnings and the tag of its state.
pub(super) fn tagged(rule: &RateLimitRule, warnings: Vec<Warning>) -> Response {
    let mut response = json::respond(&WireRule::from(rule).with_warnings(warnings));
    entity_tag::add(&mut response, rule.updated_at);
    response
}
