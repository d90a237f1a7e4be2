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
    /// True if it was admitted without asking Redis, from units leased in advance. `remaining` is a
    /// lower bound then. Otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    leased: Option<bool>,
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
            leased: decision.is_from_lease().then_some(true),
        }
    }

    /// The same as its serialization, which would take longer than the decision did. None if the
    /// reason is long or has to be escaped, as that of hardly any answer.
    fn short(&self) -> Option<Bytes> {
        const MOST_REASON: usize = 96;
        let reason = self.reason.parts();
        let length: usize = reason.iter().map(|part| part.len()).sum();
        if length > MOST_REASON || !reason.into_iter().all(is_plain) {
            return None;
        }
        // Three numbers of up to 20 digits and the names take 137 bytes.
        let mut text = TextBuffer::<{ MOST_REASON + 144 }>::new();
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
        text.push_text(r#","reason":""#);
        for part in reason {
            text.push_text(part);
        }
        text.push_text(if self.leased.is_some() { r#"","leased":true}"# } else { r#""}"# });
        Some(Bytes::copy_from_slice(text.as_bytes()))
    }
}

/// Returns true if a JSON string contains `text` as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

impl<'a> Answer<'a> {
    pub(super) fn new(question: &Question<'a>, verdict: &'a Verdict) -> Self {
        let body = WireAnswer::new(question, verdict);
        Self { body, verdict }
    }
}

impl From<Answer<'_>> for Response {
    fn from(Answer { body, verdict }: Answer<'_>) -> Self {
        let text = body.short().unwrap_or_else(|| json::to_bytes(&body));
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
    use headgate_ratelimit::Scope;

    use super::*;

    /// Answers with a reason, with small and large numbers.
    fn answers(reason: Reason<'_>) -> impl Iterator<Item = WireAnswer<'_>> {
        let cases = [(true, 0, None), (true, 7, Some(true)), (false, u64::MAX, Some(true))];
        cases.into_iter().map(move |(allowed, number, leased)| {
            let (remaining, reset_at, limit) = (number, number - number / 9, number - number / 8);
            WireAnswer { allowed, remaining, reset_at, limit, reason, leased }
        })
    }

    #[test]
    fn short_answers_are_written_as_the_serializer_would() {
        let longest = "x".repeat(96 - "rate limit exceeded for user:".len());
        for reason in [
            Reason::None,
            Reason::FailOpen,
            Reason::FailClosed,
            Reason::Exceeded(Scope::User, "u1"),
            Reason::Exceeded(Scope::Endpoint, "/v1/Zoë 💡\u{7f}"),
            Reason::Exceeded(Scope::User, &longest),
        ] {
            for answer in answers(reason) {
                assert_eq!(answer.short().unwrap(), json::to_vec(&answer));
            }
        }
    }

    #[test]
    fn long_reasons_and_those_to_escape_are_left_to_the_serializer() {
        for subject in ["a\"b", "a\\b", "a\nb", "a\u{0}b", &"x".repeat(97)] {
            for answer in answers(Reason::Exceeded(Scope::User, subject)) {
                assert_eq!(answer.short(), None, "{subject}");
            }
        }
    }
}
