use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use headgate::Degraded;
use headgate_resilience::{ByCause, REASON};
use prometheus::{Error, IntCounter, IntCounterVec, IntGauge, Opts, Registry};

use super::{Totals, registered};
use crate::envoy::Status;

/// What Envoy was answered. Values that callers sent are labels only where the operator asked for it, and only so many.
#[derive(Clone)]
pub(crate) struct EnvoyNumbers {
    descriptors: IntCounterVec,
    unmatched: IntCounter,
    allowed: IntCounter,
    denied: IntCounter,
    degraded: ByCause,
    valid: IntGauge,
    loads: IntCounterVec,
    xds_connected: IntGauge,
    xds_failures: IntCounter,
    known: Arc<Mutex<Known>>,
}

/// The names that series have.
#[derive(Default)]
struct Known {
    rules: HashSet<(String, String)>,
    /// Those that hold what callers sent.
    detailed: HashSet<(String, String)>,
}

/// The numbers of one rule.
#[derive(Clone, Debug)]
pub(crate) struct EnvoySeries {
    within: IntCounter,
    near: IntCounter,
    over: IntCounter,
    shadow: IntCounter,
}

const OUTCOMES: [&str; 4] = ["within_limit", "near_limit", "over_limit", "shadow_mode"];

/// What becomes of files that have changed: they are in force, or not.
const LOADS: [&str; 2] = ["loaded", "refused"];

/// More names than these share one, and so do longer ones.
const MAX_DETAILED: usize = 1000;
const MAX_NAME_BYTES: usize = 256;

const OTHER: &str = "other";

// === impl EnvoyNumbers ===

impl EnvoyNumbers {
    pub(crate) fn new(registry: &Registry) -> Result<Self, Error> {
        let counter = |name: &str, help: &str| registered(registry, IntCounter::new(name, help)?);
        let descriptors = Opts::new(
            "headgate_envoy_descriptors_total",
            "Envoy's descriptors that a limit decided, by domain, rule and outcome.",
        );
        let descriptors =
            registered(registry, IntCounterVec::new(descriptors, &["domain", "rule", "outcome"])?)?;
        let answers = Opts::new("headgate_envoy_requests_total", "Envoy's requests, by outcome.");
        let answers = registered(registry, IntCounterVec::new(answers, &["outcome"])?)?;
        let degraded = Opts::new(
            "headgate_envoy_degraded_requests_total",
            "Envoy's requests that the failure policy decided because the store could not, by reason.",
        );
        let degraded = IntCounterVec::new(degraded, &[REASON])?;
        let loads = Opts::new(
            "headgate_envoy_config_loads_total",
            "Times that the Envoy configuration had changed, by whether it could be used.",
        );
        let loads = registered(registry, IntCounterVec::new(loads, &["outcome"])?)?;
        for outcome in LOADS {
            loads.with_label_values(&[outcome]);
        }
        let valid = IntGauge::new(
            "headgate_envoy_config_valid",
            "Whether the last Envoy configuration is the one in force: 1 or 0.",
        )?;
        // Without files there is nothing wrong with them.
        valid.set(1);
        let xds_connected = IntGauge::new(
            "headgate_envoy_xds_connected",
            "1 once the management server of the Envoy configuration has sent a response on the current connection, else 0; 1 where there is none.",
        )?;
        xds_connected.set(1);
        Ok(Self {
            descriptors,
            unmatched: counter(
                "headgate_envoy_unmatched_descriptors_total",
                "Envoy's descriptors that nothing is configured for.",
            )?,
            allowed: answers.with_label_values(&["allowed"]),
            denied: answers.with_label_values(&["denied"]),
            degraded: ByCause::new(&registered(registry, degraded)?, &[]),
            valid: registered(registry, valid)?,
            loads,
            xds_connected: registered(registry, xds_connected)?,
            xds_failures: counter(
                "headgate_envoy_xds_failures_total",
                "Times that the management server could not be connected to, or its stream ended.",
            )?,
            known: Arc::default(),
        })
    }

    pub(super) fn add_to(&self, totals: &mut Totals) {
        totals.allowed += self.allowed.get();
        totals.denied += self.denied.get();
        totals.degraded += self.degraded.total();
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

    /// Notes whether the management server has sent a response on the current connection.
    pub(crate) fn xds_connected(&self, connected: bool) {
        self.xds_connected.set(i64::from(connected));
    }

    /// Notes that it is not, or no longer.
    pub(crate) fn xds_failed(&self) {
        self.xds_connected(false);
        self.xds_failures.inc();
    }

    /// Notes whether a configuration that had changed is in force.
    pub(crate) fn loaded(&self, valid: bool) {
        self.valid.set(i64::from(valid));
        self.loads.with_label_values(&[LOADS[usize::from(!valid)]]).inc();
    }

    /// The numbers of a rule; `rule` stands in a file.
    pub(crate) fn series(&self, domain: &str, rule: &str) -> EnvoySeries {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.rules.insert((domain.to_owned(), rule.to_owned()));
        EnvoySeries::new(&self.descriptors, domain, rule)
    }

    /// The numbers of a rule whose name holds what a caller sent.
    pub(crate) fn detailed(&self, domain: &str, rule: &str) -> EnvoySeries {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let name = (domain.to_owned(), rule.to_owned());
        let has_name = rule.len() <= MAX_NAME_BYTES
            && (known.detailed.contains(&name)
                || (known.detailed.len() < MAX_DETAILED && known.detailed.insert(name)));
        EnvoySeries::new(&self.descriptors, domain, if has_name { rule } else { OTHER })
    }

    /// Forgets the numbers of rules that are none of `rules` any more.
    pub(crate) fn keep(&self, rules: &HashSet<(String, String)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = known.rules.difference(rules).chain(&known.detailed);
        for (domain, rule) in gone {
            for outcome in OUTCOMES {
                // It may have been forgotten already.
                let _ = self.descriptors.remove_label_values(&[domain, rule, outcome]);
            }
        }
        known.rules.clone_from(rules);
        known.detailed.clear();
        // There is a number from the beginning: what appears with its first event grows by nothing.
        for (domain, rule) in rules {
            EnvoySeries::new(&self.descriptors, domain, rule);
        }
    }
}

// === impl EnvoySeries ===

impl EnvoySeries {
    fn new(descriptors: &IntCounterVec, domain: &str, rule: &str) -> Self {
        let [within, near, over, shadow] =
            OUTCOMES.map(|outcome| descriptors.with_label_values(&[domain, rule, outcome]));
        Self { within, near, over, shadow }
    }

    /// Counts one descriptor. Near its limit is what has less than a fifth of it left.
    pub(crate) fn count(&self, status: &Status, limit: u32, shadow: bool) {
        let series = match status.over {
            true if shadow => &self.shadow,
            true => &self.over,
            false if limit > 0 && status.remaining.saturating_mul(5) < u64::from(limit) => {
                &self.near
            }
            false => &self.within,
        };
        series.inc();
    }
}
