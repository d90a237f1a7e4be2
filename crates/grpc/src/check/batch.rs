//! `CheckRateLimits`: several checks that are decided together.

use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::{
    Catalog,
    usecase::{AnyQuestion, Verdict},
};

use super::{answer_any, any_question, attributes};
use crate::{
    error::{CallError, Violation},
    proto::{
        CheckRateLimitRequest, CheckRateLimitResponse, CheckRateLimitsRequest,
        CheckRateLimitsResponse,
    },
};

const MAX_CHECKS: usize = 100;

/// Admits all checks, or takes nothing for any.
pub(crate) async fn check_all(
    checks: &MeteredChecks,
    catalog: &Catalog,
    wire: &CheckRateLimitsRequest,
) -> Result<CheckRateLimitsResponse, CallError> {
    let questions = questions(catalog, wire)?;
    let verdicts = checks.decide_all(&questions, wire.dry_run).await?;
    let allowed = verdicts.iter().flatten().all(|verdict| verdict.decision.allowed);
    let answers = wire.checks.iter().zip(&questions).zip(&verdicts);
    let results =
        answers.map(|((wire, question), verdict)| shown(wire, question, verdict.as_ref()));
    Ok(CheckRateLimitsResponse { allowed, results: results.collect() })
}

/// Returns the questions, or everything that is invalid in them.
fn questions<'a>(
    catalog: &Catalog,
    wire: &'a CheckRateLimitsRequest,
) -> Result<Vec<AnyQuestion<'a>>, CallError> {
    let mut wrong = Vec::new();
    if !(1..=MAX_CHECKS).contains(&wire.checks.len()) {
        let message = format!("checks must have 1 to {MAX_CHECKS} items");
        return Err(CallError::field("checks", message));
    }
    let mut questions = Vec::with_capacity(wire.checks.len());
    for (i, check) in wire.checks.iter().enumerate() {
        if !check.request_id.is_empty() {
            let message = format!("checks[{i}]: request_id is for single checks: remove it");
            wrong.push(Violation::new("checks", message));
        }
        if check.dry_run {
            let message =
                format!("checks[{i}]: dry_run is for the whole batch: set it beside checks");
            wrong.push(Violation::new("checks", message));
        }
        match any_question(catalog, check) {
            Ok(question) => questions.push(question),
            Err(CallError::Invalid(violations)) => {
                wrong.extend(violations.into_iter().map(|violation| violation.within("checks", i)));
            }
            Err(other) => return Err(other),
        }
    }
    if wrong.is_empty() { Ok(questions) } else { Err(CallError::Invalid(wrong)) }
}

fn shown(
    wire: &CheckRateLimitRequest,
    question: &AnyQuestion<'_>,
    verdict: Option<&Verdict>,
) -> CheckRateLimitResponse {
    let mut shown = answer_any(question, verdict);
    if let Some(verdict) = verdict.filter(|_| wire.limits) {
        shown.limits = attributes::limits(verdict);
    }
    shown
}
