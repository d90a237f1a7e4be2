use std::time::Duration;

use headgate_telemetry::metrics::{REQUEST_BUCKETS, registered};
use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use super::check;

/// Metrics of HTTP requests.
pub(crate) struct RequestMetrics {
    answered: IntCounterVec,
    duration: HistogramVec,
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
}

impl RequestMetrics {
    pub(crate) fn new(registry: &Registry) -> Result<Self, Error> {
        let answered =
            Opts::new("http_requests_total", "HTTP requests, by method, route and status.");
        let answered = IntCounterVec::new(answered, &["method", "path", "status"])?;
        let duration = HistogramOpts::new(
            "http_request_duration_seconds",
            "Duration of HTTP requests, by method and route.",
        );
        let duration =
            HistogramVec::new(duration.buckets(REQUEST_BUCKETS.into()), &["method", "path"])?;
        let (method, path) = ("POST", check::PATH);
        let checks = (
            answered.with_label_values(&[method, path, "200"]),
            duration.with_label_values(&[method, path]),
        );
        Ok(Self {
            answered: registered(registry, answered)?,
            duration: registered(registry, duration)?,
            checks,
        })
    }

    pub(super) fn answered(&self, request: &Answered<'_>) {
        let Answered { method, path, status, took } = request;
        if (*method, *path, *status) == ("POST", check::PATH, "200") {
            let (answered, duration) = &self.checks;
            answered.inc();
            duration.observe(took.as_secs_f64());
            return;
        }
        self.answered.with_label_values(&[method, path, status]).inc();
        self.duration.with_label_values(&[method, path]).observe(took.as_secs_f64());
    }
}
