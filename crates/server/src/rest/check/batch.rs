//! Several checks in one call: all are admitted, or nothing is taken for any.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use headgate_api::rate_limits::MeteredChecks;
use headgate_ratelimit::usecase::{AnyQuestion, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    answer::WireAnswer,
    detailed::{self, WireDetailed},
    question::WireQuestion,
};
use crate::rest::{
    error::{ApiError, Detail},
    field::Field,
    json,
    json_body::{JsonBody, WireObject},
    schemas::{Failing, WithBody},
};

const MAX_CHECKS: usize = 100;

/// Checks that are decided together.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(expecting = "a JSON object", deny_unknown_fields)]
#[schema(as = Checks)]
pub(in crate::rest) struct WireBatch<'a> {
    /// If one is denied, nothing is taken for any.
    #[serde(borrow, default)]
    #[schema(required = true, min_items = 1, max_items = 100)]
    checks: Vec<WireQuestion<'a>>,
    /// Dry run: decides without taking anything.
    #[serde(borrow, default)]
    #[schema(value_type = Option<bool>)]
    dry_run: Field<'a>,
}

/// The decisions.
#[derive(Serialize, ToSchema)]
#[schema(as = Decisions)]
pub(in crate::rest) struct WireAnswers<'a> {
    /// True if all are admitted; otherwise nothing was taken.
    allowed: bool,
    /// The decision for each subject, in the order of the checks.
    results: Vec<WireResult<'a>>,
}

/// A decision; with its reasons, if the check has `attributes` or `limits`.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = BatchDecision)]
pub(in crate::rest) enum WireResult<'a> {
    Plain(WireAnswer<'a>),
    Detailed(WireDetailed<'a>),
}

/// A check of the batch, and how it is answered.
struct BatchCheck<'a> {
    question: AnyQuestion<'a>,
    detailed: bool,
    limits: bool,
}

/// Decides on several subjects at once: all are admitted, or nothing is taken from any.
#[utoipa::path(
    post,
    path = "/api/v1/ratelimit/check/batch",
    tag = "checks",
    request_body = WireBatch<'_>,
    responses((status = 200, description = "The decisions", body = WireAnswers<'_>), WithBody, Failing),
)]
pub(in crate::rest) async fn check_batch(
    State(checks): State<Arc<MeteredChecks>>,
    body: JsonBody,
) -> Result<Response, ApiError> {
    let wire: WireBatch<'_> = body.parse()?;
    let (questions, dry_run) = wire.validate()?;

    let (manners, questions): (Vec<(bool, bool)>, Vec<AnyQuestion<'_>>) =
        questions.into_iter().map(|check| ((check.detailed, check.limits), check.question)).unzip();
    let verdicts = checks.decide_all(&questions, dry_run).await?;
    let allowed = verdicts.iter().flatten().all(|verdict| verdict.decision.allowed);
    let names: Vec<String> = verdicts.iter().map(|verdict| name(verdict.as_ref())).collect();
    let results = questions.iter().zip(&verdicts).zip(&names).zip(manners);
    let results = results
        .map(|(((question, verdict), name), (detailed, limits))| match (question, verdict) {
            (AnyQuestion::Subject(question), Some(verdict)) if !detailed => {
                WireResult::Plain(WireAnswer::new(question, verdict))
            }
            _ => WireResult::Detailed(WireDetailed::of(verdict.as_ref(), name, limits)),
        })
        .collect();
    Ok(json::respond(&WireAnswers { allowed, results }))
}

impl<'a> WireObject<'a> for WireBatch<'a> {
    fn problems(self) -> Vec<Detail> {
        self.validate().map_err(ApiError::into_details).err().unwrap_or_default()
    }
}

impl WireBatch<'_> {
    /// Returns the questions and the dry-run flag, or all that is invalid.
    fn validate(&self) -> Result<(Vec<BatchCheck<'_>>, bool), ApiError> {
        let mut wrong = Vec::new();
        if !(1..=MAX_CHECKS).contains(&self.checks.len()) {
            let message = format!("checks must have 1 to {MAX_CHECKS} items");
            wrong.push(Detail::new("checks", "length", message));
        }
        let dry_run = self.dry_run.flag("dry_run").unwrap_or_else(|message| {
            wrong.push(Detail::new("dry_run", "wrong_type", message));
            false
        });
        let mut questions = Vec::with_capacity(self.checks.len());
        for (i, check) in self.checks.iter().take(MAX_CHECKS).enumerate() {
            if let Some(detail) = check.request_id_in_batch() {
                wrong.push(detail.within("checks", i));
            }
            let limits = check.limits().unwrap_or_else(|detail| {
                wrong.push(detail.within("checks", i));
                false
            });
            match check.any() {
                Ok((_, true)) => {
                    let message = "dry_run is for the whole batch: set it beside checks";
                    wrong.push(
                        Detail::new("dry_run", "invalid", message.to_owned()).within("checks", i),
                    );
                }
                Ok((question, false)) => {
                    questions.push(BatchCheck { question, detailed: check.is_detailed(), limits });
                }
                Err(details) => {
                    wrong.extend(details.into_iter().map(|detail| detail.within("checks", i)));
                }
            }
        }
        if wrong.is_empty() { Ok((questions, dry_run)) } else { Err(ApiError::Invalid(wrong)) }
    }
}

/// The name of the rule that decided.
fn name(verdict: Option<&Verdict>) -> String {
    verdict.map(|verdict| detailed::name(&verdict.rule)).unwrap_or_default()
}
