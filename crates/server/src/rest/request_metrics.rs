use std::time::Duration;

use headgate_telemetry::{
    metrics::{Latencies, Metrics, REQUEST_BUCKETS, registered},
    trace::TraceId,
};
use prometheus::{Error, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};

use super::check;

/// Metrics of HTTP requests.
pub(crate) struct RequestMetrics {
    answered: IntCounterVec,
    duration: Latencies,
    /// The series of successful checks, which are almost all requests, looked up once.
    checks: (IntCounter, Histogram),
}

/// An answered request.
pub(super) struct Answered<'a> {
    pub(super) method: &'static str,
    /// The route's template.
    pub(super) path: &'a str,
    pub(super) status: &'a str,
    pub(super) took: Duration,
    /// Its trace, if that is sampled.
    pub(super) trace: Option<TraceId>,
}

impl RequestMetrics {
    pub(crate) fn new(metrics: &Metrics) -> Result<Self, Error> {
        let answered =
            Opts::new("http_requests_total", "HTTP requests, by method, route and status.");
        let answered = IntCounterVec::new(answered, &["method", "path", "status"])?;
        let duration = HistogramOpts::new(
            "http_request_duration_seconds",
            "Duration of HTTP requests, by method and route.",
        );
        let duration =
            metrics.latencies(duration.buckets(REQUEST_BUCKETS.into()), &["method", "path"])?;
        let (method, path) = ("POST", check::PATH);
        let checks =
            (answered.with_label_values(&[method, path, "200"]), duration.series(&[method, path]));
        Ok(Self { answered: registered(metrics.registry(), answered)?, duration, checks })
    }

    pub(super) fn answered(&self, request: &Answered<'_>) {
        let Answered { method, path, status, took, trace } = *request;
        if (method, path, status) == ("POST", check::PATH, "200") {
            let (answered, duration) = &self.checks;
            answered.inc();
            duration.observe(took.as_secs_f64());
            self.duration.note(&[method, path], took, trace);
            return;
        }
        self.answered.with_label_values(&[method, path, status]).inc();
        self.duration.observe(&[method, path], took, trace);
    }
}
