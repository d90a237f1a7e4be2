//! From a decision to what the caller reads.

use axum::{body::Bytes, response::Response};
use headgate::Decision;
use headgate_ratelimit::{
    CompiledRule,
    usecase::{Question, Verdict},
};
use serde::Serialize;
use smallvec::SmallVec;
use utoipa::ToSchema;

use crate::{
    reason::Reason,
    rest::{
        json,
        limit_headers::{self, Policy},
    },
};

/// A decision and the question it answers.
pub(super) struct Answer<'a> {
    body: WireAnswer<'a>,
    decision: &'a Decision,
    rule: &'a CompiledRule,
}

/// What was decided.
#[derive(Serialize, ToSchema)]
#[schema(as = Decision)]
pub(in crate::rest) struct WireAnswer<'a> {
    /// Whether the subject may go on.
    allowed: bool,
    /// What is left after this decision.
    remaining: u64,
    /// The Unix second at which the whole allowance is back.
    reset_at: u64,
    /// The most the subject can have at once.
    limit: u64,
    /// Why it may not go on, or why it may although nobody counted; otherwise empty.
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
        let mut text = SmallVec::<[u8; 160]>::new();
        let mut digits = itoa::Buffer::new();
        text.extend_from_slice(b"{\"allowed\":");
        text.extend_from_slice(if self.allowed { b"true" } else { b"false" });
        for (field, number) in [
            (&b",\"remaining\":"[..], self.remaining),
            (b",\"reset_at\":", self.reset_at),
            (b",\"limit\":", self.limit),
        ] {
            text.extend_from_slice(field);
            text.extend_from_slice(digits.format(number).as_bytes());
        }
        text.extend_from_slice(b",\"reason\":\"\"}");
        Bytes::copy_from_slice(&text)
    }
}

impl<'a> Answer<'a> {
    pub(super) fn new(question: &Question<'a>, verdict: &'a Verdict) -> Self {
        let body = WireAnswer::new(question, verdict);
        Self { body, decision: &verdict.decision, rule: &verdict.rule }
    }
}

impl From<Answer<'_>> for Response {
    fn from(Answer { body, decision, rule }: Answer<'_>) -> Self {
        let mut response = match body.reason {
            Reason::None => json::with(body.numbers()),
            _ => json::respond(&body),
        };
        limit_headers::write(response.headers_mut(), decision, Policy::Rule(rule));
        limit_headers::write_retry(response.headers_mut(), decision);
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
