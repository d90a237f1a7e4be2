//! From a decision to what the caller reads.

use std::io::Write;

use axum::{
    http::{HeaderName, HeaderValue, header::RETRY_AFTER},
    response::Response,
};
use headgate::Decision;
use headgate_ratelimit::{
    CompiledRule,
    usecase::{Question, Verdict},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{reason::Reason, rest::json};

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
// draft-ietf-httpapi-ratelimit-headers-11
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

const HEADERS: usize = 8;

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
        let headers = response.headers_mut();
        // All that follow, and the request's id: growing would move them.
        headers.reserve(HEADERS);
        headers.insert(LIMIT, HeaderValue::from(decision.limit));
        headers.insert(REMAINING, HeaderValue::from(decision.remaining));
        headers.insert(RESET, HeaderValue::from(body.reset_at));
        if !decision.allowed {
            headers.insert(RETRY_AFTER, HeaderValue::from(decision.retry_after_secs()));
        }
        let window = u64::from(rule.window_seconds());
        headers.extend(field(IETF_POLICY, rule, [(";q=", decision.limit), (";w=", window)]));
        let reset = decision.reset_after_secs();
        headers.extend(field(IETF, rule, [(";r=", decision.remaining), (";t=", reset)]));
        response
    }
}

/// A structured field with one item: the policy's name, which is the rule's id, and parameters.
fn field(
    name: HeaderName,
    rule: &CompiledRule,
    parameters: [(&str, u64); 2],
) -> Option<(HeaderName, HeaderValue)> {
    // Quotes, a UUID, two numbers of up to 20 digits, two parameters' names.
    let mut text = [0; 96];
    let mut left = &mut text[..];
    match rule.id() {
        Some(id) => write!(left, "\"{id}\"").ok()?,
        None => left.write_all(b"\"default\"").ok()?,
    }
    // Numbers are written without the formatter, which costs more than the rest together.
    let mut digits = itoa::Buffer::new();
    for (name, value) in parameters {
        left.write_all(name.as_bytes()).ok()?;
        left.write_all(digits.format(value).as_bytes()).ok()?;
    }
    let unused = left.len();
    let written = &text[..text.len() - unused];
    Some((name, HeaderValue::from_bytes(written).ok()?))
}
