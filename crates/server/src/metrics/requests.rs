use std::time::Duration;

use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use super::registered;
use crate::rest::check;

/// Seconds.
pub(super) const BUCKETS: [f64; 15] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0,
];

/// What was asked over HTTP.
pub(crate) struct Requests {
    answered: IntCounterVec,
    duration: HistogramVec,
    /// What almost every request adds to, looked up once.
    checks: (IntCounter, Histogram),
}

/// A request that was answered.
pub(crate) struct Answered<'a> {
    pub(crate) method: &'static str,
    /// The route's template.
    pub(crate) path: &'a str,
    pub(crate) status: &'a str,
    pub(crate) took: Duration,
}

impl Requests {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let answered =
            Opts::new("http_requests_total", "HTTP requests, by method, route and status.");
        let answered = IntCounterVec::new(answered, &["method", "path", "status"])?;
        let duration = HistogramOpts::new(
            "http_request_duration_seconds",
            "Time an HTTP request took, by method and route.",
        );
        let duration = HistogramVec::new(duration.buckets(BUCKETS.into()), &["method", "path"])?;
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

    pub(crate) fn answered(&self, request: &Answered<'_>) {
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
