use std::time::Duration;

use headgate::{Decision, Degraded, Source};
use headgate_resilience::{ByCause, REASON};
use headgate_telemetry::metrics::{DECISION_BUCKETS, Totals, registered};
use prometheus::{Error, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts, Registry};

/// Metrics of checks by rules. Each series is looked up once, when the server starts.
pub struct CheckMetrics {
    allowed: IntCounter,
    denied: IntCounter,
    /// In the order of [`Source::ALL`].
    degraded: [ByCause; Source::ALL.len()],
    duration: Histogram,
    reservations: IntCounterVec,
    refunds: IntCounterVec,
}

/// Operations on reservations.
const OPERATIONS: [&str; 4] = ["reserve", "use", "settle", "cancel"];

/// Outcomes of operations on reservations.
const OUTCOMES: [&str; 6] = ["done", "replayed", "denied", "expired", "invalid", "failed"];

impl CheckMetrics {
    /// Registers the metrics.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let decisions = Opts::new("headgate_decisions_total", "Checks, by outcome.");
        let decisions = registered(registry, IntCounterVec::new(decisions, &["outcome"])?)?;
        let degraded = Opts::new(
            "headgate_degraded_decisions_total",
            "Checks decided by the failure policy, by mode and reason.",
        );
        let degraded = registered(registry, IntCounterVec::new(degraded, &["mode", REASON])?)?;
        let duration =
            HistogramOpts::new("headgate_check_duration_seconds", "Duration of decisions.")
                .buckets(DECISION_BUCKETS.into());
        let reservations = Opts::new(
            "headgate_reservations_total",
            "Operations on reservations of rate limits, by operation and outcome.",
        );
        let reservations =
            registered(registry, IntCounterVec::new(reservations, &["operation", "outcome"])?)?;
        for operation in OPERATIONS {
            for outcome in OUTCOMES {
                reservations.with_label_values(&[operation, outcome]);
            }
        }
        let refunds = Opts::new("headgate_refunds_total", "Refunds of checks, by outcome.");
        let refunds = registered(registry, IntCounterVec::new(refunds, &["outcome"])?)?;
        for outcome in ["done", "replayed", "invalid", "failed"] {
            refunds.with_label_values(&[outcome]);
        }
        Ok(Self {
            reservations,
            refunds,
            allowed: decisions.with_label_values(&["allowed"]),
            denied: decisions.with_label_values(&["denied"]),
            degraded: Source::ALL.map(|source| ByCause::new(&degraded, &[source.name()])),
            duration: registered(registry, Histogram::with_opts(duration)?)?,
        })
    }

    /// Adds all decisions so far.
    pub fn add_to(&self, totals: &mut Totals) {
        totals.allowed += self.allowed.get();
        totals.denied += self.denied.get();
        totals.degraded += self.degraded.iter().map(ByCause::total).sum::<u64>();
        totals.observe(&self.duration);
    }

    pub(super) fn decided(&self, decision: &Decision, took: Duration) {
        let outcome = if decision.allowed { &self.allowed } else { &self.denied };
        outcome.inc();
        if let Some(degraded) = decision.degraded {
            self.degraded(degraded);
        }
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts an operation on a reservation.
    pub(super) fn reserved(&self, operation: &str, outcome: &str) {
        self.reservations.with_label_values(&[operation, outcome]).inc();
    }

    /// Counts a refund.
    pub(super) fn refunded(&self, outcome: &str) {
        self.refunds.with_label_values(&[outcome]).inc();
    }

    /// Counts a check that no rule limits.
    pub(super) fn unlimited(&self, took: Duration) {
        self.allowed.inc();
        self.duration.observe(took.as_secs_f64());
    }

    fn degraded(&self, degraded: Degraded) {
        let known = Source::ALL.into_iter().zip(&self.degraded);
        for (_, counters) in known.filter(|(source, _)| *source == degraded.source) {
            counters.count(degraded.cause);
        }
    }
}
