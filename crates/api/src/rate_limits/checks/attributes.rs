//! Checks with attributes.

use std::borrow::Cow;

use headgate_ratelimit::usecase::{AttributesQuestion, CheckError, Verdict};
use headgate_telemetry::{metrics::Stopwatch, trace::Span};
use tracing::warn;

use super::MeteredChecks;
use crate::{masked::Masked, rate_limits::top_denied::Limited};

impl MeteredChecks {
    /// Decides a check with attributes; a dry run reports the decision and takes nothing. Returns
    /// `None` if no rule matches.
    pub async fn decide_attributes(
        &self,
        question: &AttributesQuestion<'_>,
        dry_run: bool,
    ) -> Result<Option<Verdict>, CheckError> {
        let verdict = if dry_run {
            self.check.peek_attributes(question).await?
        } else {
            let stopwatch = Stopwatch::start(&*self.clock);
            let verdict = self.check.check_attributes(question).await?;
            match &verdict {
                Some(verdict) => self.metrics.decided(&verdict.decision, stopwatch.elapsed()),
                None => self.metrics.unlimited(stopwatch.elapsed()),
            }
            verdict
        };
        let Some(verdict) = verdict else { return Ok(None) };
        if !dry_run {
            self.note_attributes_denial(question, &verdict);
        }
        self.warn_if_attributes_degraded(question, &verdict);
        if self.traced {
            Span::decided(&[&verdict.decision]);
        }
        Ok(Some(verdict))
    }

    pub(super) fn note_attributes_denial(
        &self,
        question: &AttributesQuestion<'_>,
        verdict: &Verdict,
    ) {
        if !verdict.decision.allowed {
            let (scope, subject) = subject(question, verdict);
            let limited = Limited::by_attributes(scope, &subject, &verdict.rule);
            self.top_denied.note(limited, verdict.decision.at);
        }
    }

    /// Warns of a decision that the store did not make, at most every few seconds.
    pub(super) fn warn_if_attributes_degraded(
        &self,
        question: &AttributesQuestion<'_>,
        verdict: &Verdict,
    ) {
        if let Some(mode) = verdict.decision.degraded
            && let Some(answers) = self.outages.count(self.clock.now())
        {
            let (scope, subject) = subject(question, verdict);
            let rule = verdict.rule.id();
            let rule = rule.map_or_else(|| "default".to_owned(), |id| id.to_string());
            let identifier = Masked(&subject);
            warn!(
                scope, %identifier, rule, %mode, reason = mode.cause.name(), answers,
                "store failed to decide checks; fail mode {mode} answers"
            );
        }
    }
}

/// Returns the scope and the subject that the deciding rule counts.
fn subject<'q>(
    question: &'q AttributesQuestion<'_>,
    verdict: &Verdict,
) -> (&'static str, Cow<'q, str>) {
    if let Some(selector) = verdict.rule.selector() {
        return ("attributes", selector.subject(&question.attributes));
    }
    let scope = verdict.rule.rule().map(|rule| rule.spec.scope).or(question.defaulted);
    let name = scope.map_or("attributes", |scope| scope.name());
    let value = question.attributes.get(name).and_then(|value| value.text());
    (name, Cow::Borrowed(value.unwrap_or_default()))
}
