use std::time::Duration;

use headgate_quota::{
    RepositoryError,
    usecase::{
        Drift, IncrementError, Incremented, RefundDone, RefundError, ReservationError, Reserved,
    },
};
use headgate_telemetry::metrics::{REQUEST_BUCKETS, registered};
use prometheus::{
    Error, Gauge, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry,
};

/// Metrics of increments and reservations, of the ledger and of the counters. Clones share their series.
#[derive(Clone)]
pub struct QuotaMetrics {
    admitted: IntCounter,
    replayed: IntCounter,
    exceeded: IntCounter,
    invalid: IntCounter,
    failed: IntCounter,
    reservations: IntCounterVec,
    refunds: IntCounterVec,
    expired: IntCounter,
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

/// Operations on reservations.
const OPERATIONS: [&str; 4] = ["reserve", "use", "settle", "cancel"];

/// Outcomes of operations on reservations.
const OUTCOMES: [&str; 6] = ["done", "replayed", "exceeded", "expired", "invalid", "failed"];

// === impl QuotaMetrics ===

impl QuotaMetrics {
    /// Registers the metrics.
    pub fn new(registry: &Registry) -> Result<Self, Error> {
        let increments =
            Opts::new("headgate_quota_increments_total", "Increments of quotas, by outcome.");
        let increments = registered(registry, IntCounterVec::new(increments, &["outcome"])?)?;
        let outcome = |name| increments.with_label_values(&[name]);
        let reservations = Opts::new(
            "headgate_quota_reservations_total",
            "Operations on reservations of quotas, by operation and outcome.",
        );
        let reservations =
            registered(registry, IntCounterVec::new(reservations, &["operation", "outcome"])?)?;
        for operation in OPERATIONS {
            for outcome in OUTCOMES {
                reservations.with_label_values(&[operation, outcome]);
            }
        }
        let refunds =
            Opts::new("headgate_quota_refunds_total", "Refunds of increments, by outcome.");
        let refunds = registered(registry, IntCounterVec::new(refunds, &["outcome"])?)?;
        for outcome in ["done", "replayed", "invalid", "failed"] {
            refunds.with_label_values(&[outcome]);
        }
        let drift = Opts::new(
            "headgate_quota_counter_drift",
            "Difference between counters and ledger at the last comparison, in units, by direction.",
        );
        let drift = registered(registry, IntGaugeVec::new(drift, &["direction"])?)?;
        let size = HistogramOpts::new(
            "headgate_quota_commit_size",
            "Increments and other operations per committed transaction.",
        );
        let seconds = HistogramOpts::new(
            "headgate_quota_commit_seconds",
            "Duration of transactions of increments and other operations, including failed ones.",
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
            reservations,
            refunds,
            expired: counter(
                "headgate_quota_reservations_expired_total",
                "Reservations that this server ended in the background because their TTL was over.",
            )?,
            commit_size: histogram(size.buckets(SIZES.into()))?,
            commit_seconds: histogram(seconds.buckets(REQUEST_BUCKETS.into()))?,
            commit_failures: counter(
                "headgate_quota_commit_failures_total",
                "Transactions that the ledger did not confirm.",
            )?,
            waiting: gauge(
                "headgate_quota_queue_depth",
                "Increments and other operations that wait for the ledger.",
            )?,
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
            Err(
                IncrementError::Invalid(_)
                | IncrementError::Conflict(_)
                | IncrementError::Refunded(_)
                | IncrementError::Repository(RepositoryError::NotFound(_)),
            ) => &self.invalid,
            Err(IncrementError::Overloaded | IncrementError::Repository(_)) => &self.failed,
        };
        counter.inc();
    }

    pub(super) fn reserved(
        &self,
        operation: &'static str,
        done: &Result<Reserved, ReservationError>,
    ) {
        let outcome = match done {
            Ok(done) if done.replayed => "replayed",
            Ok(_) => "done",
            Err(ReservationError::Denied(_)) => "exceeded",
            Err(ReservationError::Expired(_)) => "expired",
            Err(
                ReservationError::Invalid(_)
                | ReservationError::Conflict(_)
                | ReservationError::Unknown(_)
                | ReservationError::Ended(_)
                | ReservationError::Repository(RepositoryError::NotFound(_)),
            ) => "invalid",
            Err(ReservationError::Overloaded | ReservationError::Repository(_)) => "failed",
        };
        self.reservations.with_label_values(&[operation, outcome]).inc();
    }

    pub(super) fn refunded(&self, done: &Result<RefundDone, RefundError>) {
        let outcome = match done {
            Ok(done) if done.replayed => "replayed",
            Ok(_) => "done",
            Err(
                RefundError::Invalid(_)
                | RefundError::Unknown(_)
                | RefundError::PeriodOver { .. }
                | RefundError::Repository(RepositoryError::NotFound(_)),
            ) => "invalid",
            Err(RefundError::Overloaded | RefundError::Repository(_)) => "failed",
        };
        self.refunds.with_label_values(&[outcome]).inc();
    }

    /// Counts reservations that were ended in the background.
    pub(super) fn expired(&self, reservations: u64) {
        self.expired.inc_by(reservations);
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
