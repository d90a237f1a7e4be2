//! From a decision to what the caller reads.

use std::fmt;

use axum::{
    http::{HeaderName, HeaderValue, header::RETRY_AFTER},
    response::Response,
};
use headgate::{Decision, FailMode, Key};
use serde::{Serialize, Serializer};

use crate::{rest::json, rule::Scope};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A decision and whom it is about.
pub(super) struct Answer<'a> {
    pub(super) scope: Scope,
    pub(super) subject: Key<'a>,
    pub(super) decision: Decision,
}

#[derive(Serialize)]
struct WireAnswer<'a> {
    allowed: bool,
    remaining: u64,
    reset_at: u64,
    limit: u64,
    reason: Reason<'a>,
}

/// Why a request may not go on, or why it may although nobody counted it.
enum Reason<'a> {
    None,
    Exceeded(Scope, Key<'a>),
    FailOpen,
    FailClosed,
}

impl<'a> Answer<'a> {
    fn reason(&self) -> Reason<'a> {
        match (self.decision.degraded, self.decision.allowed) {
            (Some(FailMode::Open), _) => Reason::FailOpen,
            (Some(FailMode::Closed), _) => Reason::FailClosed,
            (None | Some(FailMode::Local), true) => Reason::None,
            (None | Some(FailMode::Local), false) => Reason::Exceeded(self.scope, self.subject),
        }
    }
}

impl From<Answer<'_>> for Response {
    fn from(answer: Answer<'_>) -> Self {
        let decision = &answer.decision;
        let reset_at = decision.reset_at_secs();
        let mut response = json::respond(&WireAnswer {
            allowed: decision.allowed,
            remaining: decision.remaining,
            reset_at,
            limit: decision.limit,
            reason: answer.reason(),
        });
        let headers = response.headers_mut();
        headers.insert(LIMIT, HeaderValue::from(decision.limit));
        headers.insert(REMAINING, HeaderValue::from(decision.remaining));
        headers.insert(RESET, HeaderValue::from(reset_at));
        if !decision.allowed {
            headers.insert(RETRY_AFTER, HeaderValue::from(decision.retry_after_secs()));
        }
        response
    }
}

// === impl Reason ===

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Exceeded(scope, subject) => {
                write!(f, "rate limit exceeded for {scope}:{}", subject.subject())
            }
            Self::FailOpen => f.write_str("redis unavailable, fail-open"),
            Self::FailClosed => f.write_str("redis unavailable, fail-closed"),
        }
    }
}

impl Serialize for Reason<'_> {
    /// Straight into the body, without a string in between.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
