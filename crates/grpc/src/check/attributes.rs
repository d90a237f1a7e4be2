//! Checks with attributes.

use std::sync::Arc;

use headgate::{Decision, Outcome};
use headgate_api::rate_limits::{MeteredChecks, Reason};
use headgate_ratelimit::{
    AttributeError, AttributeValue, Attributes, CompiledRule, RateLimitRule, Scope, UnknownScope,
    usecase::{AttributesQuestion, Verdict},
};

use super::{cost, number, retry_after_ms};
use crate::{
    error::{CallError, Violation},
    proto::{AppliedLimit, CheckRateLimitRequest, CheckRateLimitResponse, attribute},
    wire,
};

pub(super) async fn check(
    checks: &MeteredChecks,
    wire: &CheckRateLimitRequest,
) -> Result<CheckRateLimitResponse, CallError> {
    let question = question(wire).map_err(CallError::Invalid)?;
    let verdict = checks.decide_attributes(&question, wire.dry_run).await?;
    Ok(answer_any(verdict.as_ref(), wire.limits))
}

/// The response to a check with attributes, which no rule may match.
pub(super) fn answer_any(verdict: Option<&Verdict>, limits: bool) -> CheckRateLimitResponse {
    let Some(verdict) = verdict else {
        let reason = Reason::Unlimited.to_string();
        return CheckRateLimitResponse { allowed: true, reason, ..Default::default() };
    };
    answer(verdict, limits)
}

/// Returns the question, or everything that is invalid in it.
pub(super) fn question(
    wire: &CheckRateLimitRequest,
) -> Result<AttributesQuestion<'_>, Vec<Violation>> {
    let mut wrong = Vec::new();
    let mut attributes = Attributes::default();
    for (name, attribute) in &wire.attributes {
        if let Err(error) = insert(&mut attributes, name, attribute.value.as_ref()) {
            wrong.push(Violation::new("attributes", error.to_string()));
            if error == AttributeError::TooMany {
                break;
            }
        }
    }
    let defaulted = subject(wire, &mut attributes).unwrap_or_else(|violation| {
        wrong.push(violation);
        None
    });
    if !wire.window.is_empty() {
        wrong.push(Violation::new("window", "window and attributes exclude each other"));
    }
    match cost(wire.cost) {
        Ok(cost) if wrong.is_empty() => Ok(AttributesQuestion { attributes, defaulted, cost }),
        cost => Err(wrong.into_iter().chain(cost.err()).collect()),
    }
}

fn insert<'a>(
    attributes: &mut Attributes<'a>,
    name: &'a str,
    value: Option<&'a attribute::Value>,
) -> Result<(), AttributeError> {
    match value {
        None => Err(AttributeError::Type(name.to_owned(), "nothing")),
        Some(attribute::Value::Text(text)) => attributes.insert(name, text.as_str()),
        Some(attribute::Value::Number(number)) => attributes.insert_number(name, *number),
        Some(attribute::Value::List(texts)) => {
            let texts = texts.items.iter().map(|text| text.as_str().into()).collect();
            attributes.insert(name, AttributeValue::List(texts))
        }
    }
}

/// Adds the subject to the attributes, if one was sent.
fn subject<'a>(
    wire: &'a CheckRateLimitRequest,
    attributes: &mut Attributes<'a>,
) -> Result<Option<Scope>, Violation> {
    if wire.rule_id.is_empty() && wire.subject.is_empty() {
        return Ok(None);
    }
    let scope: Scope = wire.rule_id.parse().map_err(|error: UnknownScope| {
        Violation::new("rule_id", format!("with attributes, {error}"))
    })?;
    let subject = wire::subject("subject", &wire.subject)?.subject();
    if attributes.get(scope.name()).and_then(|value| value.text()) != Some(subject) {
        attributes.insert(scope.name(), subject).map_err(|error| {
            Violation::new("subject", format!("subject contradicts the attributes: {error}"))
        })?;
    }
    Ok(Some(scope))
}

fn answer(verdict: &Verdict, limits_wanted: bool) -> CheckRateLimitResponse {
    let (decision, name) = (&verdict.decision, name(&verdict.rule));
    CheckRateLimitResponse {
        allowed: decision.allowed,
        remaining: number(decision.remaining),
        reset_at: number(decision.reset_at_secs()),
        reason: Reason::of_rule(decision, &name).to_string(),
        limit: number(decision.limit),
        retry_after_ms: retry_after_ms(decision),
        rule_id: id(&verdict.rule),
        degraded: decision.degraded.map_or_else(String::new, |degraded| degraded.name().to_owned()),
        leased: decision.leased,
        rule_name: name,
        limits: if limits_wanted { limits(verdict) } else { Vec::new() },
    }
}

/// Every rule that applied.
pub(super) fn limits(verdict: &Verdict) -> Vec<AppliedLimit> {
    if verdict.stack.is_empty() {
        return vec![limit(&verdict.rule, &verdict.decision)];
    }
    let limit =
        |(rule, outcome): &(Arc<CompiledRule>, Outcome)| limit(rule, &Decision::from(*outcome));
    verdict.stack.iter().map(limit).collect()
}

fn limit(rule: &CompiledRule, decision: &Decision) -> AppliedLimit {
    AppliedLimit {
        rule_id: id(rule),
        rule_name: name(rule),
        allowed: decision.allowed,
        limit: number(decision.limit),
        remaining: number(decision.remaining),
        reset_at: number(decision.reset_at_secs()),
        window_secs: rule.window_seconds().into(),
        retry_after_ms: retry_after_ms(decision),
    }
}

fn id(rule: &CompiledRule) -> String {
    rule.id().map_or_else(String::new, |id| id.to_string())
}

fn name(rule: &CompiledRule) -> String {
    rule.rule().map_or_else(|| "default".to_owned(), RateLimitRule::display_name)
}
