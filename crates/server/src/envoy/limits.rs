use std::sync::Arc;

use headgate::{Degraded, FailMode, Limiter, Outcome};
use headgate_resilience::OutageLog;
use tokio::sync::watch;
use tracing::warn;

use super::{
    asked::Terms,
    catalog::EnvoyCatalog,
    domain::Matched,
    plan::{AskError, Plan},
    question::Question,
    verdict::Verdict,
};
use crate::{config::DeniedConsumes, metrics::EnvoyNumbers};

/// How much of a domain's name a log line shows.
const MAX_DOMAIN_CHARS: usize = 64;

/// The use case: may a request with these descriptors go on?
pub(crate) struct EnvoyLimits {
    catalog: Arc<EnvoyCatalog>,
    limiter: Limiter,
    settings: Settings,
    numbers: EnvoyNumbers,
    outages: OutageLog,
}

/// What the operator decided for all domains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) denied: DeniedConsumes,
    /// Everything is let through, and only counted.
    pub(crate) shadow: bool,
    /// Every limit is in quota mode.
    pub(crate) quota: bool,
    pub(crate) fail_mode: FailMode,
}

impl EnvoyLimits {
    pub(crate) const fn new(
        catalog: Arc<EnvoyCatalog>,
        limiter: Limiter,
        settings: Settings,
        numbers: EnvoyNumbers,
    ) -> Self {
        Self { catalog, limiter, settings, numbers, outages: OutageLog::new() }
    }

    /// Why the last configuration is not in force, or whether it is the last one is not known.
    pub(crate) fn trouble(&self) -> Option<Arc<String>> {
        self.catalog.trouble()
    }

    /// Whether readiness waits for the first configuration, now and later.
    pub(crate) fn watch_start(&self) -> watch::Receiver<bool> {
        self.catalog.watch_start()
    }

    /// Whether readiness waits for the first configuration.
    pub(crate) fn is_starting(&self) -> bool {
        self.catalog.is_starting()
    }

    /// Decides all descriptors at once, and counts what was decided.
    pub(crate) async fn decide(&self, question: &Question<'_>) -> Result<Verdict, AskError> {
        let domains = self.catalog.load();
        let domains = domains.as_ref().ok_or(AskError::NoConfiguration)?;
        let domain = domains.get(question.domain);
        let find = |descriptor| domain.and_then(|domain| domain.find(descriptor));
        let mut matched: Vec<Option<Matched>> = question.descriptors.iter().map(find).collect();
        let labels = matched.iter_mut().map(|it| it.as_mut().and_then(|it| it.label.take()));
        let labels: Vec<Option<String>> = labels.collect();

        let Settings { denied, fail_mode, shadow, quota } = self.settings;
        let plan = Plan::new(question, matched, Terms { denied, fail_mode, quota });
        let answers = plan.ask(&self.limiter).await?;
        let outcomes = answers.iter().flatten().map(|answer| &answer.outcome);
        let degraded = outcomes.clone().find(|outcome| outcome.degraded.is_some());
        if let Some(outcome) = degraded {
            self.warn_degraded(question, outcome);
        }
        let mut verdict = plan.verdict(&answers);
        let degraded = degraded.and_then(|outcome| outcome.degraded);
        self.count(question, &verdict, &labels, degraded);
        for status in &mut verdict.statuses {
            status.over &= !status.rule.as_ref().is_some_and(|rule| rule.shadow);
        }
        verdict.over &= !shadow;
        Ok(verdict)
    }

    /// Warns of an answer that the store did not give, at most every few seconds.
    fn warn_degraded(&self, question: &Question<'_>, outcome: &Outcome) {
        let (Some(mode), Some(answers)) = (outcome.degraded, self.outages.count(outcome.at)) else {
            return;
        };
        let domain: String = question.domain.chars().take(MAX_DOMAIN_CHARS).collect();
        warn!(
            domain, %mode, reason = mode.cause.name(), answers,
            "The store cannot decide what Envoy asks: fail mode {mode} answers"
        );
    }

    fn count(
        &self,
        question: &Question<'_>,
        verdict: &Verdict,
        labels: &[Option<String>],
        degraded: Option<Degraded>,
    ) {
        self.numbers.answered(verdict.over && !self.settings.shadow, degraded);
        for (status, label) in verdict.statuses.iter().zip(labels) {
            let Some(rule) = &status.rule else {
                self.numbers.unmatched();
                continue;
            };
            let shadow = self.settings.shadow || rule.shadow;
            let limit = rule.rate().map_or(0, |rate| rate.requests);
            let known =
                || rule.series.get_or_init(|| self.numbers.series(question.domain, &rule.label));
            match label {
                None => known().count(status, limit, shadow),
                Some(label) => {
                    self.numbers.detailed(question.domain, label).count(status, limit, shadow);
                }
            }
        }
    }
}
