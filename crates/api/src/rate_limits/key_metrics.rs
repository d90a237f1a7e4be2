use std::time::Duration;

use headgate::Decision;
use headgate_ratelimit::{KeyedAlgorithm, PerAlgorithm};
use headgate_resilience::{ByCause, REASON};
use headgate_telemetry::metrics::{DECISION_BUCKETS, Totals, registered};
use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

/// Metrics of checks by key. Each series is looked up once, when the server starts.
pub struct KeyMetrics(PerAlgorithm<Series>);

/// The series of one algorithm.
struct Series {
    allowed: Answers,
    denied: Answers,
    degraded: ByCause,
}

struct Answers {
    count: IntCounter,
    duration: Histogram,
}

impl KeyMetrics {
    /// Registers the metrics.
    pub fn new(registry: &Registry, application: &str) -> Result<Self, Error> {
        let opts = |name, help| Opts::new(name, help).const_label("application", application);
        let labels = ["algorithm", "allowed"];
        let requests =
            opts("rate_limiter_requests_total", "Checks of keys, by algorithm and outcome.");
        let requests = registered(registry, IntCounterVec::new(requests, &labels)?)?;
        let duration = opts(
            "rate_limiter_check_seconds",
            "Duration of checks of keys, by algorithm and outcome.",
        );
        let duration = HistogramOpts::from(duration).buckets(DECISION_BUCKETS.into());
        let duration = registered(registry, HistogramVec::new(duration, &labels)?)?;
        let degraded = opts(
            "rate_limiter_degraded_total",
            "Checks of keys decided by the failure policy, by algorithm and reason.",
        );
        let degraded = IntCounterVec::new(degraded, &["algorithm", REASON])?;
        let degraded = registered(registry, degraded)?;
        let answers = |algorithm: KeyedAlgorithm, allowed| Answers {
            count: requests.with_label_values(&[algorithm.name(), allowed]),
            duration: duration.with_label_values(&[algorithm.name(), allowed]),
        };
        Ok(Self(PerAlgorithm::from_fn(|algorithm| Series {
            allowed: answers(algorithm, "true"),
            denied: answers(algorithm, "false"),
            degraded: ByCause::new(&degraded, &[algorithm.name()]),
        })))
    }

    /// Adds all decisions so far.
    pub fn add_to(&self, totals: &mut Totals) {
        for algorithm in KeyedAlgorithm::ALL {
            let series = self.0.get(algorithm);
            totals.allowed += series.allowed.count.get();
            totals.denied += series.denied.count.get();
            totals.degraded += series.degraded.total();
            totals.observe(&series.allowed.duration);
            totals.observe(&series.denied.duration);
        }
    }

    pub(super) fn decided(&self, algorithm: KeyedAlgorithm, decision: &Decision, took: Duration) {
        let series = self.0.get(algorithm);
        let answers = if decision.allowed { &series.allowed } else { &series.denied };
        answers.count.inc();
        answers.duration.observe(took.as_secs_f64());
        if let Some(degraded) = decision.degraded {
            series.degraded.count(degraded.cause);
        }
    }
}
