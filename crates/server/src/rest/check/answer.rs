//! The response of a check.

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, header::CONTENT_TYPE},
    response::Response,
};
use headgate_api::rate_limits::Reason;
use headgate_ratelimit::usecase::{Question, Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::{
    json, limit_headers,
    text_buffer::{Push, TextBuffer},
};

/// A decision and the question it answers.
pub(super) struct Answer<'a> {
    body: WireAnswer<'a>,
    verdict: &'a Verdict,
}

/// A decision.
#[derive(Serialize, ToSchema)]
#[schema(as = Decision)]
pub(in crate::rest) struct WireAnswer<'a> {
    /// True if the request is admitted.
    allowed: bool,
    /// Remaining units after this decision.
    remaining: u64,
    /// Unix time in seconds at which the whole limit is available again.
    reset_at: u64,
    /// Maximum number of units at once.
    limit: u64,
    /// Reason for a denial, or for admitting without counting; otherwise empty.
    #[schema(value_type = String)]
    reason: Reason<'a>,
}

impl<'a> WireAnswer<'a> {
    pub(super) fn new(question: &Question<'a>, verdict: &Verdict) -> Self {
        let decision = &verdict.decision;
        Self {
            allowed: decision.allowed,
            remaining: decision.remaining,
            reset_at: decision.reset_at_secs(),
            limit: decision.limit,
            reason: Reason::of(decision, question.scope, question.subject.subject()),
        }
    }

    /// The same as its serialization where there is no reason. Almost every answer is this one: a
    /// serializer would take longer for it than the decision did.
    fn numbers(&self) -> Bytes {
        let mut text = TextBuffer::<160>::new();
        text.push_text(r#"{"allowed":"#);
        text.push_text(if self.allowed { "true" } else { "false" });
        for (field, number) in [
            (r#","remaining":"#, self.remaining),
            (r#","reset_at":"#, self.reset_at),
            (r#","limit":"#, self.limit),
        ] {
            text.push_text(field);
            text.push_number(number);
        }
        text.push_text(r#","reason":""}"#);
        Bytes::copy_from_slice(text.as_bytes())
    }
}

impl<'a> Answer<'a> {
    pub(super) fn new(question: &Question<'a>, verdict: &'a Verdict) -> Self {
        let body = WireAnswer::new(question, verdict);
        Self { body, verdict }
    }
}

impl From<Answer<'_>> for Response {
    fn from(Answer { body, verdict }: Answer<'_>) -> Self {
        let text = match body.reason {
            Reason::None => body.numbers(),
            _ => json::to_bytes(&body),
        };
        let mut headers = HeaderMap::with_capacity(limit_headers::HEADERS);
        headers.insert(CONTENT_TYPE, json::CONTENT_TYPE);
        limit_headers::write(&mut headers, verdict);
        limit_headers::write_retry(&mut headers, &verdict.decision);
        let mut response = Self::new(Body::from(text));
        *response.headers_mut() = headers;
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_serializer_would() {
        for (allowed, number) in [(true, 0), (true, 7), (false, u64::MAX)] {
            let (remaining, reset_at, limit) = (number, number / 2, number / 3);
            let answer = WireAnswer { allowed, remaining, reset_at, limit, reason: Reason::None };
            assert_eq!(answer.numbers(), json::to_vec(&answer));
        }
    }
}
