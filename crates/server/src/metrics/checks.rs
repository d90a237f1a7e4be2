use std::time::Duration;

use headgate::{Decision, FailMode};
use prometheus::{Error, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

use super::{registered, totals::Totals};

/// Seconds, from what memory takes to what a time-out takes.
pub(super) const BUCKETS: [f64; 16] = [
    0.000_001,
    0.000_002_5,
    0.000_005,
    0.000_01,
    0.000_025,
    0.000_05,
    0.000_1,
    0.000_25,
    0.000_5,
    0.001,
    0.002_5,
    0.005,
    0.01,
    0.05,
    0.1,
    1.0,
];

/// What was decided, and how fast. Each counter is looked up once, when the server starts.
pub(crate) struct Checks {
    allowed: IntCounter,
    denied: IntCounter,
    degraded_open: IntCounter,
    degraded_closed: IntCounter,
    degraded_local: IntCounter,
    duration: Histogram,
}

impl Checks {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let decisions =
            Opts::new("headgate_decisions_total", "Checks that were decided, by outcome.");
        let decisions = registered(registry, IntCounterVec::new(decisions, &["outcome"])?)?;
        let degraded = Opts::new(
            "headgate_degraded_decisions_total",
            "Checks that the failure policy decided because the store could not, by mode.",
        );
        let degraded = registered(registry, IntCounterVec::new(degraded, &["mode"])?)?;
        let duration =
            HistogramOpts::new("headgate_check_duration_seconds", "Time a decision took.")
                .buckets(BUCKETS.into());
        Ok(Self {
            allowed: decisions.with_label_values(&["allowed"]),
            denied: decisions.with_label_values(&["denied"]),
            degraded_open: degraded.with_label_values(&[FailMode::Open.name()]),
            degraded_closed: degraded.with_label_values(&[FailMode::Closed.name()]),
            degraded_local: degraded.with_label_values(&[FailMode::Local.name()]),
            duration: registered(registry, Histogram::with_opts(duration)?)?,
        })
    }

    pub(super) fn add_to(&self, totals: &mut Totals) {
        totals.allowed += self.allowed.get();
        totals.denied += self.denied.get();
        for degraded in [&self.degraded_open, &self.degraded_closed, &self.degraded_local] {
            totals.degraded += degraded.get();
        }
        totals.observe(&self.duration);
    }

    pub(crate) fn decided(&self, decision: &Decision, took: Duration) {
        let outcome = if decision.allowed { &self.allowed } else { &self.denied };
        outcome.inc();
        match decision.degraded {
            None => {}
            Some(FailMode::Open) => self.degraded_open.inc(),
            Some(FailMode::Closed) => self.degraded_closed.inc(),
            Some(FailMode::Local) => self.degraded_local.inc(),
        }
        self.duration.observe(took.as_secs_f64());
    }
}
