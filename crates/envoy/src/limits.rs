use std::sync::Arc;

use headgate::{BatchLimiter, Degraded, FailMode, LeasePolicy, Outcome};
use headgate_ratelimit::Catalog;
use headgate_resilience::OutageLog;
use tokio::sync::watch;
use tracing::warn;

use crate::{
    DeniedConsumes, EnvoyCatalog, EnvoyError, EnvoyMetrics, EnvoyRequest, EnvoyVerdict,
    domain::MatchedRule, plan::Plan,
};

/// Maximum length of a domain in a log line.
const MAX_DOMAIN_CHARS: usize = 64;

/// The use case: admits or denies requests by their descriptors.
pub struct EnvoyLimits {
    catalog: Arc<EnvoyCatalog>,
    rules: Arc<Catalog>,
    limiter: BatchLimiter,
    metrics: EnvoyMetrics,
    outages: OutageLog,
}

/// Settings of all domains.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Rules apply to descriptors too.
    pub rules: bool,
    /// Units that a denied request takes.
    pub denied_consumes: DeniedConsumes,
    /// Admits every request, and only counts denials.
    pub shadow_mode: bool,
    /// Puts every limit in quota mode.
    pub quota_mode: bool,
    /// Fail mode of limits that set none.
    pub fail_mode: FailMode,
    /// Lease of limits that set none, shortened to a tenth of their windows.
    pub lease: LeasePolicy,
}

impl EnvoyLimits {
    /// Creates the use case over the domains in `catalog`, and over `rules` if the settings say so.
    pub const fn new(
        catalog: Arc<EnvoyCatalog>,
        rules: Arc<Catalog>,
        limiter: BatchLimiter,
        metrics: EnvoyMetrics,
    ) -> Self {
        Self { catalog, rules, limiter, metrics, outages: OutageLog::new() }
    }

    /// Returns the reason that the newest configuration is not in force, or not known; `None` if
    /// all is well.
    pub fn degraded_reason(&self) -> Option<Arc<String>> {
        self.catalog.degraded_reason()
    }

    /// Subscribes to changes of [`is_starting`](Self::is_starting).
    pub fn watch_starting(&self) -> watch::Receiver<bool> {
        self.catalog.watch_starting()
    }

    /// Returns true while readiness waits for the first configuration.
    pub fn is_starting(&self) -> bool {
        self.catalog.is_starting()
    }

    /// Decides all descriptors of a request in one batch, and counts the result.
    ///
    /// # Errors
    ///
    /// There is no configuration yet, rules cannot be applied to the descriptors, or the store failed
    /// and no failure mode answers.
    pub async fn decide(
        &self,
        request: &EnvoyRequest<'_>,
        settings: Settings,
    ) -> Result<EnvoyVerdict, EnvoyError> {
        let domains = self.catalog.load();
        let domains = domains.as_ref().ok_or(EnvoyError::NoConfiguration)?;
        let domain = domains.get(request.domain);
        let find = |descriptor| domain.and_then(|domain| domain.find(descriptor));
        let mut matched: Vec<Option<MatchedRule>> = request.descriptors.iter().map(find).collect();
        let labels = matched.iter_mut().map(|it| it.as_mut().and_then(|it| it.label.take()));
        let labels: Vec<Option<String>> = labels.collect();

        let mut plan = Plan::new(request, matched, settings);
        if settings.rules {
            plan.add_rules(request, &self.rules)?;
        }
        let answers = plan.ask(&self.limiter).await?;
        let outcomes = answers.iter().flatten().map(|answer| &answer.outcome);
        let degraded = outcomes.clone().find(|outcome| outcome.degraded.is_some());
        if let Some(outcome) = degraded {
            self.warn_degraded(request, outcome);
        }
        let mut verdict = plan.verdict(&answers);
        let degraded = degraded.and_then(|outcome| outcome.degraded);
        self.count(request, settings, &verdict, (&labels, degraded));
        let also = verdict.also.iter_mut().map(|(_, status)| status);
        for status in verdict.statuses.iter_mut().chain(also) {
            status.over_limit &= !status.rule.as_ref().is_some_and(|rule| rule.shadow_mode);
        }
        verdict.over_limit &= !settings.shadow_mode;
        Ok(verdict)
    }

    /// Logs that the store did not answer, at most every few seconds.
    fn warn_degraded(&self, request: &EnvoyRequest<'_>, outcome: &Outcome) {
        let (Some(mode), Some(answers)) = (outcome.degraded, self.outages.count(outcome.at)) else {
            return;
        };
        let domain: String = request.domain.chars().take(MAX_DOMAIN_CHARS).collect();
        warn!(
            domain, %mode, reason = mode.cause.name(), answers,
            "store failed to decide requests of Envoy; fail mode {mode} answers"
        );
    }

    fn count(
        &self,
        request: &EnvoyRequest<'_>,
        settings: Settings,
        verdict: &EnvoyVerdict,
        (labels, degraded): (&[Option<String>], Option<Degraded>),
    ) {
        self.metrics.answered(verdict.over_limit && !settings.shadow_mode, degraded);
        for (index, status) in verdict.all() {
            let Some(rule) = &status.rule else {
                self.metrics.unmatched();
                continue;
            };
            let shadow_mode = settings.shadow_mode || rule.shadow_mode;
            let limit = rule.rate().map_or(0, |rate| rate.requests);
            let configured =
                || rule.counters.get_or_init(|| self.metrics.rule(request.domain, &rule.label));
            if let Some(tally) = &rule.tally {
                // If one was denied, the others took nothing and count as neither.
                if status.over_limit || !verdict.over_limit {
                    tally.count(!status.over_limit);
                }
                // There may be many rules: their labels are bounded like those with values.
                let counters = self.metrics.detailed_rule(request.domain, &rule.label);
                counters.count(status, limit, shadow_mode);
                continue;
            }
            match &labels[index] {
                None => configured().count(status, limit, shadow_mode),
                Some(label) => {
                    let detailed = self.metrics.detailed_rule(request.domain, label);
                    detailed.count(status, limit, shadow_mode);
                }
            }
        }
    }
}
