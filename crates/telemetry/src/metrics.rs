//! The registry that every area adds its metrics to, and the text that Prometheus scrapes.
//!
//! An area defines its metrics beside the code that updates them (`rest/request_metrics.rs`,
//! `rate_limits/check_metrics.rs`, ...) and registers them here. No label ever holds what a caller
//! sent: identifiers stay out, and so do unknown paths and methods. Updating a metric is an atomic
//! addition or two.

mod stopwatch;
mod text;
mod totals;

use std::collections::HashMap;

use bytes::Bytes;
use prometheus::{Error, IntGauge, Opts, Registry, TextEncoder, core::Collector};

use self::text::MetricsText;
use crate::AppConfig;

pub use self::{stopwatch::Stopwatch, totals::Totals};

/// Bucket bounds for requests and statements, in seconds.
pub const REQUEST_BUCKETS: [f64; 15] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0,
];

/// Bucket bounds for decisions, in seconds: from the memory store to a timeout.
pub const DECISION_BUCKETS: [f64; 16] = [
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

/// The metrics of one server, as text.
pub struct Metrics {
    registry: Registry,
    text: MetricsText,
}

impl Metrics {
    /// Creates a registry whose metrics carry the name of `app`, with its build info.
    pub fn new(app: &AppConfig) -> Result<Self, Error> {
        let service = HashMap::from([("service".to_owned(), app.name.clone())]);
        let registry = Registry::new_custom(None, Some(service))?;
        registered(&registry, build_info(app)?)?;
        Ok(Self { registry, text: MetricsText::default() })
    }

    /// Returns the registry that areas add their metrics to.
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Returns a recent text that another reader is still receiving, if there is one.
    pub fn recent_text(&self) -> Option<Bytes> {
        self.text.shared()
    }

    /// Renders all metrics in Prometheus' text format.
    pub fn render(&self) -> Result<Bytes, Error> {
        let text = TextEncoder::new().encode_to_string(&self.registry.gather())?;
        Ok(self.text.share(text))
    }
}

/// Registers `metric` and returns it.
pub fn registered<M: Collector + Clone + 'static>(
    registry: &Registry,
    metric: M,
) -> Result<M, Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

fn build_info(app: &AppConfig) -> Result<IntGauge, Error> {
    let opts = Opts::new("headgate_build_info", "Build information: always 1.")
        .const_label("version", env!("CARGO_PKG_VERSION"))
        .const_label("app_version", &app.version)
        .const_label("environment", &app.environment);
    let info = IntGauge::with_opts(opts)?;
    info.set(1);
    Ok(info)
}
