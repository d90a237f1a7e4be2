use std::time::Duration;

use headgate_quota::usecase::{Drift, IncrementError, Incremented};
use headgate_telemetry::metrics::{REQUEST_BUCKETS, registered};
use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// Metrics of increments, of the ledger and of the counters. Clones share their series.
#[derive(Clone)]
pub struct QuotaMetrics {
    admitted: IntCounter,
    replayed: IntCounter,
    exceeded: IntCounter,
    invalid: IntCounter,
    failed: IntCounter,
    commit_size: Histogram,
    commit_seconds: Histogram,
    commit_failures: IntCounter,
    waiting: IntGauge,
    policies: IntGauge,
    behind: IntGauge,
    ahead: IntGauge,
    rebuilt: IntCounter,
    skew: Gauge,
}

/// Bucket bounds for increments per transaction: powers of two up to the maximum.
const SIZES: [f64; 10] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

// === impl QuotaMetrics ===

impl QuotaMetrics {
    /// Registers the metrics.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let increments =
            Opts::new("headgate_quota_increments_total", "Increments of quotas, by outcome.");
        let increments = registered(registry, IntCounterVec::new(increments, &["outcome"])?)?;
        let outcome = |name| increments.with_label_values(&[name]);
        let drift = Opts::new(
            "headgate_quota_counter_drift",
            "Difference between counters and ledger at the last comparison, in units, by direction.",
        );
        let drift = registered(registry, IntGaugeVec::new(drift, &["direction"])?)?;
        let size = HistogramOpts::new(
            "headgate_quota_commit_size",
            "Increments per committed transaction.",
        );
        let seconds = HistogramOpts::new(
            "headgate_quota_commit_seconds",
            "Duration of transactions of increments, including failed ones.",
        );
        let counter = |name, help| registered(registry, IntCounter::new(name, help)?);
        let gauge = |name, help| registered(registry, IntGauge::new(name, help)?);
        let histogram = |opts| registered(registry, Histogram::with_opts(opts)?);
        Ok(Self {
            admitted: outcome("admitted"),
            replayed: outcome("replayed"),
            exceeded: outcome("exceeded"),
            invalid: outcome("invalid"),
            failed: outcome("failed"),
            commit_size: histogram(size.buckets(SIZES.into()))?,
            commit_seconds: histogram(seconds.buckets(REQUEST_BUCKETS.into()))?,
            commit_failures: counter(
                "headgate_quota_commit_failures_total",
                "Transactions that the ledger did not confirm.",
            )?,
            waiting: gauge("headgate_quota_queue_depth", "Increments that wait for the ledger.")?,
            policies: gauge("headgate_quota_policies", "Quota policies in force, enabled or not.")?,
            behind: drift.with_label_values(&["behind"]),
            ahead: drift.with_label_values(&["ahead"]),
            rebuilt: counter(
                "headgate_quota_counters_rebuilt_total",
                "Missing counters that were rebuilt from the ledger.",
            )?,
            skew: registered(
                registry,
                Gauge::new(
                    "headgate_quota_clock_skew_seconds",
                    "Seconds by which this machine's clock is ahead of the database's, which decides the periods of quotas.",
                )?,
            )?,
        })
    }

    pub(super) fn incremented(&self, done: &Result<Incremented, IncrementError>) {
        let counter = match done {
            Ok(done) if !done.allowed => &self.exceeded,
            Ok(done) if done.replayed => &self.replayed,
            Ok(_) => &self.admitted,
            Err(IncrementError::Invalid(_) | IncrementError::Conflict(_)) => &self.invalid,
            Err(IncrementError::Repository(headgate_quota::RepositoryError::NotFound(_))) => {
                &self.invalid
            }
            Err(IncrementError::Overloaded | IncrementError::Repository(_)) => &self.failed,
        };
        counter.inc();
    }

    pub(super) fn committed(&self, increments: usize, took: Duration, confirmed: bool) {
        self.commit_size.observe(increments as f64);
        self.commit_seconds.observe(took.as_secs_f64());
        if !confirmed {
            self.commit_failures.inc();
        }
    }

    pub(super) fn drifted(&self, drift: Drift) {
        self.behind.set(drift.behind as i64);
        self.ahead.set(drift.ahead as i64);
        self.rebuilt.inc_by(drift.missing);
    }

    /// Sets the microseconds by which the machine's clock is ahead of the database's.
    pub(super) fn skewed(&self, micros: i64) {
        self.skew.set(micros as f64 / 1e6);
    }

    pub(super) fn set_sizes(&self, policies: usize, waiting: usize) {
        self.policies.set(policies as i64);
        self.waiting.set(waiting as i64);
    }
}
