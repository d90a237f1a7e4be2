//! `CheckRateLimit`: admits or denies a request of a subject.

mod attributes;
mod batch;

use headgate::{Cost, Decision};
use headgate_api::rate_limits::{MeteredChecks, Reason};
use headgate_ratelimit::{
    Catalog, Scope, Window,
    usecase::{AnyQuestion, CheckError, Question, Verdict, check::RuleSelection},
};

use super::{
    error::{CallError, Violation},
    proto::{CheckRateLimitRequest, CheckRateLimitResponse},
    rules,
    wire::{self, number, request_id},
};

pub(super) use self::batch::check_all;

pub(super) async fn check(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &CheckRateLimitRequest,
) -> Result<CheckRateLimitResponse, CallError> {
    if !wire.request_id.is_empty() {
        return Box::pin(check_refundable(checks, catalog, wire)).await;
    }
    if !wire.attributes.is_empty() {
        // On the heap, so that other checks do not carry its state.
        return Box::pin(attributes::check(checks, wire)).await;
    }
    let question = question(catalog, wire)?;
    let verdict = checks.decide(&question, wire.dry_run).await?;
    let mut answer = answer(&question, &verdict);
    if wire.limits {
        answer.limits = attributes::limits(&verdict);
    }
    Ok(answer)
}

/// Answers a check that can be refunded. A dry run takes nothing, and so its id stays unused.
async fn check_refundable(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &CheckRateLimitRequest,
) -> Result<CheckRateLimitResponse, CallError> {
    let named = request_id(&wire.request_id);
    let named = named.map_err(|wrong| CallError::Invalid(vec![wrong]))?.unwrap_or_default();
    let question = any_question(catalog, wire)?;
    let verdict = match &question {
        AnyQuestion::Subject(question) if wire.dry_run => {
            Some(checks.decide(question, true).await?)
        }
        AnyQuestion::Attributes(question) if wire.dry_run => {
            checks.decide_attributes(question, true).await?
        }
        question => checks.decide_refundable(question, named).await?,
    };
    let mut answer = answer_any(&question, verdict.as_ref());
    if let Some(verdict) = verdict.filter(|_| wire.limits) {
        answer.limits = attributes::limits(&verdict);
    }
    Ok(answer)
}

/// Returns a check of either kind, or everything that is invalid in it.
pub(super) fn any_question<'a>(
    catalog: &Catalog,
    wire: &'a CheckRateLimitRequest,
) -> Result<AnyQuestion<'a>, CallError> {
    if wire.attributes.is_empty() {
        return Ok(question(catalog, wire)?.into());
    }
    Ok(attributes::question(wire).map_err(CallError::Invalid)?.into())
}

/// The answer to a check of either kind, without the rules that applied.
pub(super) fn answer_any(
    question: &AnyQuestion<'_>,
    verdict: Option<&Verdict>,
) -> CheckRateLimitResponse {
    match (question, verdict) {
        (_, None) => attributes::unlimited(),
        (AnyQuestion::Subject(question), Some(verdict)) => answer(question, verdict),
        (AnyQuestion::Attributes(_), Some(verdict)) => attributes::answer(verdict, false),
    }
}

/// Returns the question, or everything that is invalid in it.
fn question<'a>(
    catalog: &Catalog,
    wire: &'a CheckRateLimitRequest,
) -> Result<Question<'a>, CallError> {
    let rule = match wire.rule_id.as_str() {
        "" => Err(Violation::new("rule_id", "rule_id is required")),
        name => Ok(name),
    };
    let (subject, cost, window) =
        (wire::subject("subject", &wire.subject), cost(wire.cost), window(&wire.window));
    match (rule, subject, cost, window) {
        (Ok(rule), Ok(subject), Ok(cost), Ok(window)) => {
            let (scope, selection) = selection(catalog, rule, window)?;
            Ok(Question { scope, subject, selection, cost })
        }
        (rule, subject, cost, window) => {
            let wrong = [rule.err(), subject.err(), cost.err(), window.err()];
            Err(CallError::Invalid(wrong.into_iter().flatten().collect()))
        }
    }
}

/// Returns the rules to check: those that match in a scope, or one by its id.
fn selection(
    catalog: &Catalog,
    rule: &str,
    window: Option<u64>,
) -> Result<(Scope, RuleSelection), CallError> {
    if let Ok(scope) = rule.parse() {
        return Ok((scope, window.map_or(RuleSelection::Matching, RuleSelection::Window)));
    }
    let id = rules::id(rule)?;
    let snapshot = catalog.load();
    let no_such_rule = || CallError::NoSuchRule(id.to_string());
    let spec = &snapshot.rule(id).and_then(|rule| rule.rule()).ok_or_else(no_such_rule)?.spec;
    let its = spec.window_seconds;
    match window {
        Some(requested) if requested != u64::from(its) => {
            let error = CheckError::NoSuchWindow { requested, known: vec![its] };
            Err(CallError::field("window", error.to_string()))
        }
        _ => Ok((spec.scope, RuleSelection::Rule(id))),
    }
}

fn cost(units: i64) -> Result<Cost, Violation> {
    let units = match u64::try_from(units) {
        Ok(0) => return Ok(Cost::ONE),
        Ok(units) => units,
        Err(_) => {
            return Err(Violation::new("cost", "cost must be a whole number of at least 1"));
        }
    };
    Cost::new(units).map_err(|error| Violation::new("cost", error.to_string()))
}

/// A window selects rules; it never creates a counter of its own.
fn window(text: &str) -> Result<Option<u64>, Violation> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<Window>() {
        Ok(window) => Ok(Some(window.seconds())),
        Err(error) => Err(Violation::new("window", error.to_string())),
    }
}

fn answer(question: &Question<'_>, verdict: &Verdict) -> CheckRateLimitResponse {
    let decision = &verdict.decision;
    CheckRateLimitResponse {
        // Allocated only where it was asked for, or for rules over attributes.
        rule_name: String::new(),
        limits: Vec::new(),
        allowed: decision.allowed,
        remaining: number(decision.remaining),
        reset_at: number(decision.reset_at_secs()),
        reason: reason(question, decision),
        limit: number(decision.limit),
        retry_after_ms: retry_after_ms(decision),
        rule_id: verdict.rule.id().map_or_else(String::new, |id| id.to_string()),
        degraded: decision.degraded.map_or_else(String::new, |degraded| degraded.name().to_owned()),
        leased: decision.is_from_lease(),
    }
}

/// Empty in almost every response, and then not allocated.
fn reason(question: &Question<'_>, decision: &Decision) -> String {
    match Reason::of(decision, question.scope, question.subject.subject()) {
        Reason::None => String::new(),
        reason => reason.to_string(),
    }
}

/// Milliseconds, rounded up, at least 1 for a denial.
fn retry_after_ms(decision: &Decision) -> i64 {
    if decision.allowed {
        return 0;
    }
    let millis = decision.retry_after.as_micros().div_ceil(1000);
    i64::try_from(millis).unwrap_or(i64::MAX).max(1)
}

impl From<CheckError> for CallError {
    fn from(error: CheckError) -> Self {
        let field = match &error {
            CheckError::NoSuchWindow { .. } => "window",
            CheckError::Cost(_) => "cost",
            CheckError::OtherSubject { .. } => "subject",
            CheckError::OverAttributes(_) => "rule_id",
            CheckError::Identifier { .. } | CheckError::Subject(_) | CheckError::TooManyRules => {
                "attributes"
            }
            CheckError::NoSuchRule(id) => return Self::NoSuchRule(id.to_string()),
            CheckError::Store(cause) => return Self::store(cause),
            CheckError::Batch(_) => "checks",
        };
        Self::field(field, error.to_string())
    }
}
