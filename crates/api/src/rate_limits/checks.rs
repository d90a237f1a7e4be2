//! Checks by rules.

mod attributes;
mod places;
mod reservations;

use std::sync::Arc;

use headgate::Clock;
use headgate_ratelimit::usecase::{AnyQuestion, CheckError, CheckRateLimit, Question, Verdict};
use headgate_resilience::OutageLog;
use headgate_telemetry::{metrics::Stopwatch, trace::Span};
use tracing::warn;

use super::{CheckMetrics, TopDenied, top_denied::Limited};
use crate::masked::Masked;

/// [`CheckRateLimit`] with metrics, trace attributes, the list of the most denied subjects, and a
/// warning while the store cannot decide.
pub struct MeteredChecks {
    check: CheckRateLimit,
    metrics: CheckMetrics,
    top_denied: Arc<TopDenied>,
    clock: Arc<dyn Clock>,
    /// True if requests have spans.
    traced: bool,
    outages: OutageLog,
}

impl MeteredChecks {
    /// Puts metrics, traces and warnings around `check`.
    pub const fn new(
        check: CheckRateLimit,
        metrics: CheckMetrics,
        top_denied: Arc<TopDenied>,
        clock: Arc<dyn Clock>,
        traced: bool,
    ) -> Self {
        Self { check, metrics, top_denied, clock, traced, outages: OutageLog::new() }
    }

    /// Returns the metrics.
    pub const fn metrics(&self) -> &CheckMetrics {
        &self.metrics
    }

    /// Decides one question; a dry run reports the decision and takes nothing.
    pub async fn decide(
        &self,
        question: &Question<'_>,
        dry_run: bool,
    ) -> Result<Verdict, CheckError> {
        let verdict = if dry_run {
            self.check.peek(question).await?
        } else {
            let stopwatch = Stopwatch::start(&*self.clock);
            let verdict = self.check.check(question).await?;
            self.metrics.decided(&verdict.decision, stopwatch.elapsed());
            self.note_denial(question, &verdict);
            verdict
        };
        self.warn_if_degraded(question, &verdict);
        if self.traced {
            Span::decided(&[&verdict.decision]);
        }
        Ok(verdict)
    }

    /// Decides several questions together: all are admitted, or nothing is taken for any. A question
    /// with attributes that no rule matches has no verdict.
    pub async fn decide_all(
        &self,
        questions: &[AnyQuestion<'_>],
        dry_run: bool,
    ) -> Result<Vec<Option<Verdict>>, CheckError> {
        let verdicts = if dry_run {
            self.check.peek_all(questions).await?
        } else {
            let stopwatch = Stopwatch::start(&*self.clock);
            let verdicts = self.check.check_all(questions).await?;
            self.count(&verdicts, &stopwatch);
            for (question, verdict) in questions.iter().zip(&verdicts) {
                self.note_denial_of_any(question, verdict.as_ref());
            }
            verdicts
        };
        for (question, verdict) in questions.iter().zip(&verdicts) {
            self.warn_if_any_degraded(question, verdict.as_ref());
        }
        if self.traced {
            let decisions = verdicts.iter().flatten().map(|verdict| &verdict.decision);
            Span::decided(&decisions.collect::<Vec<_>>());
        }
        Ok(verdicts)
    }

    fn count(&self, verdicts: &[Option<Verdict>], stopwatch: &Stopwatch<'_>) {
        let all_allowed = verdicts.iter().flatten().all(|verdict| verdict.decision.allowed);
        // When one check is denied, the others take nothing: they were not admitted either.
        let decided = |verdict: &&Verdict| all_allowed || !verdict.decision.allowed;
        for verdict in verdicts.iter().flatten().filter(decided) {
            self.metrics.decided(&verdict.decision, stopwatch.elapsed());
        }
        if all_allowed {
            for _ in verdicts.iter().filter(|verdict| verdict.is_none()) {
                self.metrics.unlimited(stopwatch.elapsed());
            }
        }
    }

    fn note_denial_of_any(&self, question: &AnyQuestion<'_>, verdict: Option<&Verdict>) {
        match (question, verdict) {
            (AnyQuestion::Subject(question), Some(verdict)) => self.note_denial(question, verdict),
            (AnyQuestion::Attributes(question), Some(verdict)) => {
                self.note_attributes_denial(question, verdict);
            }
            (_, None) => {}
        }
    }

    fn warn_if_any_degraded(&self, question: &AnyQuestion<'_>, verdict: Option<&Verdict>) {
        match (question, verdict) {
            (AnyQuestion::Subject(question), Some(verdict)) => {
                self.warn_if_degraded(question, verdict);
            }
            (AnyQuestion::Attributes(question), Some(verdict)) => {
                self.warn_if_attributes_degraded(question, verdict);
            }
            (_, None) => {}
        }
    }

    fn note_denial(&self, question: &Question<'_>, verdict: &Verdict) {
        let Verdict { decision, rule, .. } = verdict;
        if !decision.allowed {
            let limited = Limited::by_rule(question.scope, question.subject.subject(), rule);
            self.top_denied.note(limited, decision.at);
        }
    }

    /// Warns of a decision that the store did not make, at most every few seconds.
    fn warn_if_degraded(&self, question: &Question<'_>, verdict: &Verdict) {
        let Some(mode) = verdict.decision.degraded else {
            return;
        };
        if let Some(answers) = self.outages.count(self.clock.now()) {
            let (scope, identifier) = (question.scope, Masked(question.subject.subject()));
            let rule = verdict.rule.id();
            let rule = rule.map_or_else(|| "default".to_owned(), |id| id.to_string());
            warn!(
                %scope, %identifier, rule, %mode, reason = mode.cause.name(), answers,
                "store failed to decide checks; fail mode {mode} answers"
            );
        }
    }
}
