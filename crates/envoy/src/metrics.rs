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
    /// Labels that hold values of requests.
    detailed: HashSet<(String, String)>,
}

const OUTCOMES: [&str; 4] = ["within_limit", "near_limit", "over_limit", "shadow_mode"];

const LOADED: &str = "loaded";
const REFUSED: &str = "refused";

/// Maximum number of labels with values of requests, and of their bytes; others share [`OTHER`].
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

    /// Returns the counters of a rule whose label holds values of a request.
    pub(crate) fn detailed_rule(&self, domain: &str, label: &str) -> RuleCounters {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (domain.to_owned(), label.to_owned());
        let has_room = label.len() <= MAX_LABEL_BYTES
            && (labels.detailed.contains(&name)
                || (labels.detailed.len() < MAX_DETAILED && labels.detailed.insert(name)));
        RuleCounters::new(&self.descriptors, domain, if has_room { label } else { OTHER })
    }

    /// Removes the counters of all rules but `rules`.
    pub(crate) fn retain(&self, rules: &HashSet<(String, String)>) {
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = labels.configured.difference(rules).chain(&labels.detailed);
        for (domain, rule) in removed {
            for outcome in OUTCOMES {
                // It may have been removed before.
                let _ = self.descriptors.remove_label_values(&[domain, rule, outcome]);
            }
        }
        labels.configured.clone_from(rules);
        labels.detailed.clear();
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
