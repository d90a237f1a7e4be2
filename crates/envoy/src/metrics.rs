use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use headgate::Degraded;
use headgate_resilience::{ByCause, REASON};
use prometheus::{Error, IntCounter, IntCounterVec, IntGauge, Opts, Registry, core::Collector};

use crate::DescriptorStatus;

/// Metrics of Envoy's requests and configuration. Values of requests become labels only where the
/// configuration asks for it, and their number is bounded.
#[derive(Clone)]
pub struct EnvoyMetrics {
    descriptors: IntCounterVec,
    unmatched: IntCounter,
    allowed: IntCounter,
    denied: IntCounter,
    degraded: ByCause,
    config_valid: IntGauge,
    config_loads: IntCounterVec,
    xds_connected: IntGauge,
    xds_failures: IntCounter,
    labels: Arc<Mutex<RuleLabels>>,
}

/// Number of requests since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTotals {
    /// Admitted requests.
    pub allowed: u64,
    /// Denied requests.
    pub denied: u64,
    /// Requests that the failure policy decided.
    pub degraded: u64,
}

/// Counters of one rule.
#[derive(Clone, Debug)]
pub(crate) struct RuleCounters {
    within: IntCounter,
    near: IntCounter,
    over: IntCounter,
    shadow: IntCounter,
}

/// Pairs of domain and rule that have counters.
#[derive(Default)]
struct RuleLabels {
    configured: HashSet<(String, String)>,
    /// Domains of configured rules. Any other domain is a value of requests.
    domains: HashSet<String>,
    /// Labels that hold values of requests.
    detailed: HashSet<(String, String)>,
    /// Domains with rules that are counted as [`OTHER`].
    overflowing: HashSet<String>,
}

const OUTCOMES: [&str; 4] = ["within_limit", "near_limit", "over_limit", "shadow_mode"];

const LOADED: &str = "loaded";
const REFUSED: &str = "refused";

/// Maximum number of labels with values of requests, and of the bytes of each; others share
/// [`OTHER`].
const MAX_DETAILED: usize = 1000;
const MAX_LABEL_BYTES: usize = 256;

const OTHER: &str = "other";

// === impl EnvoyMetrics ===

impl EnvoyMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    ///
    /// `registry` has a metric of the same name.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let counter = |name, help| registered(registry, IntCounter::new(name, help)?);
        let gauge = |name, help| registered(registry, IntGauge::new(name, help)?);
        let family = |name: &str, help: &str, labels: &[&str]| {
            registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
        };
        let answers = family(
            "headgate_envoy_requests_total",
            "Requests of Envoy, by outcome.",
            &["outcome"],
        )?;
        let degraded = family(
            "headgate_envoy_degraded_requests_total",
            "Requests of Envoy that the failure policy decided because the store could not, by \
             reason.",
            &[REASON],
        )?;
        let metrics = Self {
            descriptors: family(
                "headgate_envoy_descriptors_total",
                "Descriptors that matched a limit, by domain, rule and outcome.",
                &["domain", "rule", "outcome"],
            )?,
            unmatched: counter(
                "headgate_envoy_unmatched_descriptors_total",
                "Descriptors that matched no limit.",
            )?,
            allowed: answers.with_label_values(&["allowed"]),
            denied: answers.with_label_values(&["denied"]),
            degraded: ByCause::new(&degraded, &[]),
            config_valid: gauge(
                "headgate_envoy_config_valid",
                "1 if the newest Envoy configuration is in force, else 0.",
            )?,
            config_loads: family(
                "headgate_envoy_config_loads_total",
                "Changes of the Envoy configuration, by outcome.",
                &["outcome"],
            )?,
            xds_connected: gauge(
                "headgate_envoy_xds_connected",
                "1 once the management server has sent a response on the current connection, else \
                 0; 1 if none is configured.",
            )?,
            xds_failures: counter(
                "headgate_envoy_xds_failures_total",
                "Failed connections to the management server, and streams that ended.",
            )?,
            labels: Arc::default(),
        };
        for outcome in [LOADED, REFUSED] {
            metrics.config_loads.with_label_values(&[outcome]);
        }
        // Without files and without a management server nothing is wrong with them.
        metrics.config_valid.set(1);
        metrics.xds_connected.set(1);
        Ok(metrics)
    }

    /// Returns the number of requests since the start.
    pub fn totals(&self) -> RequestTotals {
        RequestTotals {
            allowed: self.allowed.get(),
            denied: self.denied.get(),
            degraded: self.degraded.total(),
        }
    }

    pub(crate) fn answered(&self, denied: bool, degraded: Option<Degraded>) {
        let outcome = if denied { &self.denied } else { &self.allowed };
        outcome.inc();
        if let Some(degraded) = degraded {
            self.degraded.count(degraded.cause);
        }
    }

    pub(crate) fn unmatched(&self) {
        self.unmatched.inc();
    }

    /// Records whether the management server has sent a response on the current connection.
    pub(crate) fn xds_connected(&self, connected: bool) {
        self.xds_connected.set(i64::from(connected));
    }

    /// Records a failed connection, or the end of a stream.
    pub(crate) fn xds_failed(&self) {
        self.xds_connected(false);
        self.xds_failures.inc();
    }

    /// Records that a changed configuration is in force.
    pub(crate) fn config_loaded(&self) {
        self.config_valid.set(1);
        self.config_loads.with_label_values(&[LOADED]).inc();
    }

    /// Records that a changed configuration was refused.
    pub(crate) fn config_refused(&self) {
        self.config_valid.set(0);
        self.config_loads.with_label_values(&[REFUSED]).inc();
    }

    /// Returns the counters of a rule; `label` holds no values of requests.
    pub(crate) fn rule(&self, domain: &str, label: &str) -> RuleCounters {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        labels.configured.insert((domain.to_owned(), label.to_owned()));
        RuleCounters::new(&self.descriptors, domain, label)
    }

    /// Returns the counters of a rule whose label or domain holds values of a request.
    pub(crate) fn detailed_rule(&self, domain: &str, label: &str) -> RuleCounters {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let (domain, label) = labels.bounded(domain, label);
        RuleCounters::new(&self.descriptors, domain, label)
    }

    /// Removes the counters of all rules but `rules`.
    pub(crate) fn retain(&self, rules: &HashSet<(String, String)>) {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = labels.configured.difference(rules).chain(&labels.detailed);
        let removed = removed.map(|(domain, rule)| (domain.as_str(), rule.as_str()));
        let others = labels.overflowing.iter().map(|domain| (domain.as_str(), OTHER));
        for (domain, rule) in removed.chain(others) {
            for outcome in OUTCOMES {
                // It may have been removed before.
                let _ = self.descriptors.remove_label_values(&[domain, rule, outcome]);
            }
        }
        *labels = RuleLabels::of(rules);
        // Export 0 from the beginning: a series that starts with its first event shows no increase.
        for (domain, rule) in rules {
            RuleCounters::new(&self.descriptors, domain, rule);
        }
    }
}

fn registered<M: Collector + Clone + 'static>(registry: &Registry, metric: M) -> Result<M, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

// === impl RuleLabels ===

impl RuleLabels {
    fn of(rules: &HashSet<(String, String)>) -> Self {
        Self {
            configured: rules.clone(),
            domains: rules.iter().map(|(domain, _)| domain.clone()).collect(),
            ..Self::default()
        }
    }

    /// Returns the labels of a rule while there is room for them, else shared ones: callers choose
    /// the domain, too.
    fn bounded<'a>(&mut self, domain: &'a str, rule: &'a str) -> (&'a str, &'a str) {
        let is_configured = self.domains.contains(domain);
        let is_short =
            rule.len() <= MAX_LABEL_BYTES && (is_configured || domain.len() <= MAX_LABEL_BYTES);
        if is_short && self.has_room(domain, rule) {
            return (domain, rule);
        }
        let domain = if is_configured { domain } else { OTHER };
        if !self.overflowing.contains(domain) {
            self.overflowing.insert(domain.to_owned());
        }
        (domain, OTHER)
    }

    fn has_room(&mut self, domain: &str, rule: &str) -> bool {
        let name = (domain.to_owned(), rule.to_owned());
        self.detailed.contains(&name)
            || (self.detailed.len() < MAX_DETAILED && self.detailed.insert(name))
    }
}

// === impl RuleCounters ===

impl RuleCounters {
    fn new(descriptors: &IntCounterVec, domain: &str, rule: &str) -> Self {
        let [within, near, over, shadow] =
            OUTCOMES.map(|outcome| descriptors.with_label_values(&[domain, rule, outcome]));
        Self { within, near, over, shadow }
    }

    /// Counts one descriptor. It is near its limit if less than a fifth is left.
    pub(crate) fn count(&self, status: &DescriptorStatus, limit: u32, shadow_mode: bool) {
        let counter = match status.over_limit {
            true if shadow_mode => &self.shadow,
            true => &self.over,
            false if limit > 0 && status.remaining.saturating_mul(5) < u64::from(limit) => {
                &self.near
            }
            false => &self.within,
        };
        counter.inc();
    }
}

#[cfg(test)]
mod tests {
    use prometheus::proto::MetricFamily;

    use super::*;

    const SERIES_OF_A_RULE: usize = OUTCOMES.len();

    /// Domains and rules of all series.
    fn labels(registry: &Registry) -> Vec<[String; 2]> {
        let families: Vec<MetricFamily> = registry.gather();
        let family = families.iter().find(|it| it.name() == "headgate_envoy_descriptors_total");
        let series = family.into_iter().flat_map(MetricFamily::get_metric);
        let value = |series: &prometheus::proto::Metric, name: &str| {
            let label = series.get_label().iter().find(|label| label.name() == name);
            label.unwrap().value().to_owned()
        };
        series.map(|series| ["domain", "rule"].map(|name| value(series, name))).collect()
    }

    #[test]
    fn domains_of_callers_are_bounded_in_number_and_length() {
        let registry = Registry::new();
        let metrics = EnvoyMetrics::new(&registry).unwrap();
        let configured = HashSet::from([("edge".to_owned(), "user".to_owned())]);
        metrics.retain(&configured);
        for i in 0..2 * MAX_DETAILED {
            metrics.detailed_rule(&format!("{i}{}", "x".repeat(50_000)), "rule:a");
        }
        // The configured one, and one for all that are too long.
        assert_eq!(labels(&registry).len(), 2 * SERIES_OF_A_RULE);
        for i in 0..2 * MAX_DETAILED {
            metrics.detailed_rule(&format!("d{i}"), "rule:a");
            metrics.detailed_rule("edge", &format!("rule:{i}"));
        }
        let names = labels(&registry);
        assert_eq!(names.len(), (1 + MAX_DETAILED + 2) * SERIES_OF_A_RULE);
        assert!(names.iter().flatten().all(|text| text.len() <= MAX_LABEL_BYTES));
        for shared in [["other", "other"], ["edge", "other"]] {
            assert!(names.iter().any(|it| *it == shared), "{shared:?}");
        }

        metrics.retain(&configured);
        let names = labels(&registry);
        assert_eq!(names.len(), SERIES_OF_A_RULE);
        assert!(names.iter().all(|it| *it == ["edge", "user"]), "{names:?}");
    }
}
