//! The response of a check with the rules that applied.

use std::sync::Arc;

use axum::{http::HeaderMap, response::Response};
use headgate::{Decision, Outcome};
use headgate_api::rate_limits::Reason;
use headgate_ratelimit::{CompiledRule, RateLimitRule, usecase::Verdict};
use serde::Serialize;
use utoipa::ToSchema;

use crate::rest::{json, limit_headers};

/// A decision with its reasons.
#[derive(Serialize, ToSchema)]
#[schema(as = DetailedDecision)]
pub(in crate::rest) struct WireDetailed<'a> {
    /// True if the request is admitted.
    allowed: bool,
    /// Remaining units after this decision; left out if no rule matches, as the next two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    remaining: Option<u64>,
    /// Unix time in seconds at which the whole limit is available again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    reset_at: Option<u64>,
    /// Maximum number of units at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limit: Option<u64>,
    /// Reason for a denial, or for admitting without counting; otherwise empty.
    #[schema(value_type = String)]
    reason: Reason<'a>,
    /// The rule that decided: that denied, or has the least remaining. Left out if none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    rule: Option<WireRuleName>,
    /// Milliseconds until the same request would be admitted; 0 if it is.
    retry_after_ms: u64,
    /// Every rule that applied, if the request asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    limits: Option<Vec<WireLimit>>,
    /// True if it was admitted without asking Redis; otherwise left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    leased: Option<bool>,
}

/// A rule by its id and name.
#[derive(Serialize, ToSchema)]
#[schema(as = RuleName)]
pub(in crate::rest) struct WireRuleName {
    /// The default rule has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = "uuid", required = false)]
    id: Option<String>,
    name: String,
}

/// A rule that applied, and the state of its limit.
#[derive(Serialize, ToSchema)]
#[schema(as = AppliedLimit)]
pub(in crate::rest) struct WireLimit {
    rule: WireRuleName,
    /// True if this rule alone would admit the request.
    allowed: bool,
    limit: u64,
    remaining: u64,
    /// Unix time in seconds at which the whole limit is available again.
    reset_at: u64,
    window_seconds: u32,
    /// Milliseconds until this rule would admit the request; 0 if it does.
    retry_after_ms: u64,
}

/// The response of a check, with the limits that applied if `limits` is set.
pub(super) fn respond(verdict: Option<&Verdict>, limits: bool) -> Response {
    let Some(verdict) = verdict else {
        return json::respond(&WireDetailed::unlimited(limits));
    };
    let name = name(&verdict.rule);
    let mut response = json::respond(&WireDetailed::new(verdict, &name, limits));
    let mut headers = HeaderMap::with_capacity(limit_headers::HEADERS);
    limit_headers::write(&mut headers, verdict);
    limit_headers::write_retry(&mut headers, &verdict.decision);
    response.headers_mut().extend(headers);
    response
}

impl<'a> WireDetailed<'a> {
    /// The decision by the rule of this name, if a rule matches.
    pub(in crate::rest) fn of(verdict: Option<&Verdict>, name: &'a str, limits: bool) -> Self {
        verdict.map_or_else(|| Self::unlimited(limits), |verdict| Self::new(verdict, name, limits))
    }

    fn new(verdict: &Verdict, name: &'a str, limits: bool) -> Self {
        let decision = &verdict.decision;
        Self {
            allowed: decision.allowed,
            remaining: Some(decision.remaining),
            reset_at: Some(decision.reset_at_secs()),
            limit: Some(decision.limit),
            reason: Reason::of_rule(decision, name),
            rule: Some(WireRuleName::from(&*verdict.rule)),
            retry_after_ms: retry_after_ms(decision),
            limits: limits.then(|| WireLimit::all(verdict)),
            leased: decision.is_from_lease().then_some(true),
        }
    }

    const fn unlimited(limits: bool) -> Self {
        Self {
            allowed: true,
            remaining: None,
            reset_at: None,
            limit: None,
            reason: Reason::Unlimited,
            rule: None,
            retry_after_ms: 0,
            limits: if limits { Some(Vec::new()) } else { None },
            leased: None,
        }
    }
}

impl WireLimit {
    fn all(verdict: &Verdict) -> Vec<Self> {
        if verdict.stack.is_empty() {
            return vec![Self::new(&verdict.rule, &verdict.decision)];
        }
        let limit = |(rule, outcome): &(Arc<CompiledRule>, Outcome)| {
            Self::new(rule, &Decision::from(*outcome))
        };
        verdict.stack.iter().map(limit).collect()
    }

    fn new(rule: &CompiledRule, decision: &Decision) -> Self {
        Self {
            rule: WireRuleName::from(rule),
            allowed: decision.allowed,
            limit: decision.limit,
            remaining: decision.remaining,
            reset_at: decision.reset_at_secs(),
            window_seconds: rule.window_seconds(),
            retry_after_ms: retry_after_ms(decision),
        }
    }
}

impl From<&CompiledRule> for WireRuleName {
    fn from(rule: &CompiledRule) -> Self {
        Self { id: rule.id().map(|id| id.to_string()), name: name(rule) }
    }
}

/// The display name of a rule.
pub(in crate::rest) fn name(rule: &CompiledRule) -> String {
    rule.rule().map_or_else(|| "default".to_owned(), RateLimitRule::display_name)
}

/// Milliseconds, rounded up, at least 1 for a denial.
fn retry_after_ms(decision: &Decision) -> u64 {
    if decision.allowed {
        return 0;
    }
    let millis = decision.retry_after.as_micros().div_ceil(1000);
    u64::try_from(millis).unwrap_or(u64::MAX).max(1)
}
