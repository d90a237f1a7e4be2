//! Checks by key.

use std::sync::Arc;

use headgate::{Clock, Key};
use headgate_ratelimit::{
    Author, KeyedAlgorithm, KeyedLimits,
    usecase::{KeyedError, KeyedQuestion, KeyedVerdict, LimitKeys, ResetError},
};
use headgate_resilience::OutageLog;
use headgate_telemetry::{metrics::Stopwatch, trace::Span};
use tracing::{debug, warn};

use super::{KeyMetrics, TopDenied, rules::log_unsettled, top_denied::Limited};
use crate::{completion::run_to_completion, masked::Masked};

/// [`LimitKeys`] with metrics, trace attributes, the list of the most denied subjects, and a
/// warning while the store cannot decide.
pub struct MeteredKeys {
    keys: LimitKeys,
    metrics: KeyMetrics,
    top_denied: Arc<TopDenied>,
    clock: Arc<dyn Clock>,
    /// True if requests have spans.
    traced: bool,
    outages: OutageLog,
}

impl MeteredKeys {
    /// Puts metrics, traces and warnings around `keys`.
    pub const fn new(
        keys: LimitKeys,
        metrics: KeyMetrics,
        top_denied: Arc<TopDenied>,
        clock: Arc<dyn Clock>,
        traced: bool,
    ) -> Self {
        Self { keys, metrics, top_denied, clock, traced, outages: OutageLog::new() }
    }

    /// Returns the metrics.
    pub const fn metrics(&self) -> &KeyMetrics {
        &self.metrics
    }

    /// Admits or denies a request of a key, and takes its permits if it is admitted.
    pub async fn check<'l>(
        &self,
        limits: &'l KeyedLimits,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'l>, KeyedError> {
        let stopwatch = Stopwatch::start(&*self.clock);
        let verdict = self.keys.check(limits, question).await?;
        let (algorithm, decision) = (question.algorithm, &verdict.decision);
        self.metrics.decided(algorithm, decision, stopwatch.elapsed());
        if self.traced {
            Span::decided(&[decision]);
        }
        if !decision.allowed {
            let limited = Limited::by_key(question.key.subject(), algorithm);
            self.top_denied.note(limited, decision.at);
        }
        let (key, remaining) = (Masked(question.key.subject()), decision.remaining);
        match decision.degraded {
            Some(_) => self.warn_if_degraded(question, &verdict),
            None if decision.allowed => debug!(%algorithm, %key, remaining, "Request allowed"),
            None => debug!(%algorithm, %key, remaining, "Rate limit exceeded"),
        }
        Ok(verdict)
    }

    /// Returns the remaining permits of a key, and takes nothing.
    pub async fn peek<'l>(
        &self,
        limits: &'l KeyedLimits,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'l>, KeyedError> {
        let verdict = self.keys.peek(limits, question).await?;
        self.warn_if_degraded(question, &verdict);
        Ok(verdict)
    }

    /// Restores the whole limit of a key, under one algorithm or under all.
    pub async fn reset(
        &self,
        limits: Arc<KeyedLimits>,
        algorithm: Option<KeyedAlgorithm>,
        key: Key<'_>,
        author: Author,
    ) -> Result<(), ResetError> {
        let (keys, key) = (self.keys.clone(), key.to_owned());
        run_to_completion(async move {
            let request_id = author.request_id.clone();
            let space = key.space();
            let report = keys.reset(&limits, algorithm, key.as_key(&space), author).await;
            log_unsettled(&request_id, &report);
            report.outcome
        })
        .await
    }

    fn warn_if_degraded(&self, question: &KeyedQuestion<'_>, verdict: &KeyedVerdict<'_>) {
        let Some(mode) = verdict.decision.degraded else {
            return;
        };
        if let Some(answers) = self.outages.count(self.clock.now()) {
            let (algorithm, key) = (question.algorithm, Masked(question.key.subject()));
            warn!(
                %algorithm, %key, %mode, reason = mode.cause.name(), answers,
                "store failed to decide checks of keys; fail mode {mode} answers"
            );
        }
    }
}
