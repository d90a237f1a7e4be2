use std::time::Duration;

use headgate::{Decision, Degraded, Source};
use headgate_resilience::{ByCause, REASON};
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
    /// In the order of [`Source::ALL`].
    degraded: [ByCause; Source::ALL.len()],
    duration: Histogram,
}

impl Checks {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let decisions =
            Opts::new("headgate_decisions_total", "Checks that were decided, by outcome.");
        let decisions = registered(registry, IntCounterVec::new(decisions, &["outcome"])?)?;
        let degraded = Opts::new(
            "headgate_degraded_decisions_total",
            "Checks that the failure policy decided because the store could not, by mode and reason.",
        );
        let degraded = registered(registry, IntCounterVec::new(degraded, &["mode", REASON])?)?;
        let duration =
            HistogramOpts::new("headgate_check_duration_seconds", "Time a decision took.")
                .buckets(BUCKETS.into());
        Ok(Self {
            allowed: decisions.with_label_values(&["allowed"]),
            denied: decisions.with_label_values(&["denied"]),
            degraded: Source::ALL.map(|source| ByCause::new(&degraded, &[source.name()])),
            duration: registered(registry, Histogram::with_opts(duration)?)?,
        })
    }

    pub(super) fn add_to(&self, totals: &mut Totals) {
        totals.allowed += self.allowed.get();
        totals.denied += self.denied.get();
        totals.degraded += self.degraded.iter().map(ByCause::total).sum::<u64>();
        totals.observe(&self.duration);
    }

    pub(crate) fn decided(&self, decision: &Decision, took: Duration) {
        let outcome = if decision.allowed { &self.allowed } else { &self.denied };
        outcome.inc();
        if let Some(degraded) = decision.degraded {
            self.degraded(degraded);
        }
        self.duration.observe(took.as_secs_f64());
    }

    fn degraded(&self, degraded: Degraded) {
        let known = Source::ALL.into_iter().zip(&self.degraded);
        for (_, counters) in known.filter(|(source, _)| *source == degraded.source) {
            counters.count(degraded.cause);
        }
    }
}
