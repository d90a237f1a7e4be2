//! From a decision to what the caller reads.

use axum::response::Response;
use headgate::Decision;
use headgate_ratelimit::{
    CompiledRule,
    usecase::{Question, Verdict},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    reason::Reason,
    rest::{json, limit_headers},
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
}

impl<'a> Answer<'a> {
    pub(super) fn new(question: &Question<'a>, verdict: &'a Verdict) -> Self {
        let body = WireAnswer::new(question, verdict);
        Self { body, decision: &verdict.decision, rule: &verdict.rule }
    }
}

impl From<Answer<'_>> for Response {
    fn from(Answer { body, decision, rule }: Answer<'_>) -> Self {
        let mut response = json::respond(&body);
        limit_headers::write(response.headers_mut(), decision, rule.into());
        limit_headers::write_retry(response.headers_mut(), decision);
        response
    }
}
