//! The registry that every area adds its metrics to, and the text that Prometheus scrapes.
//!
//! An area defines its metrics beside the code that updates them (`rest/request_metrics.rs`,
//! `rate_limits/check_metrics.rs`, ...) and registers them here. No label ever holds what a caller
//! sent: identifiers stay out, and so do unknown paths and methods. Updating a metric is an atomic
//! addition or two.

mod exemplars;
mod export;
mod format;
mod open_metrics;
mod process;
mod runtime;
mod stopwatch;
mod text;
mod totals;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use headgate::{Clock, Timestamp};
use prometheus::{Error, HistogramOpts, IntGauge, Opts, Registry, TextEncoder, core::Collector};
use tokio::{sync::Mutex as AsyncMutex, task::spawn_blocking, time::Instant};

use self::{
    exemplars::{Exemplars, Found},
    process::ProcessCollector,
    runtime::RuntimeCollector,
    text::MetricsText,
};
use crate::AppConfig;

pub use self::{
    exemplars::Latencies,
    export::{ExportError, MetricsExporter},
    format::Format,
    runtime::Runtimes,
    stopwatch::Stopwatch,
    totals::Totals,
};

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
    clock: Arc<dyn Clock>,
    /// The time that counters count from.
    created: Timestamp,
    exemplars: Mutex<Vec<Arc<Exemplars>>>,
    /// In the order of [`Format::ALL`].
    texts: [Arc<AsyncMutex<MetricsText>>; Format::ALL.len()],
}

impl Metrics {
    /// Creates a registry whose metrics carry the name of `app`, with its build info and the metrics
    /// of the process.
    pub fn new(app: &AppConfig, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let service = HashMap::from([("service".to_owned(), app.name.clone())]);
        let registry = Registry::new_custom(None, Some(service))?;
        registered(&registry, build_info(app)?)?;
        registry.register(Box::new(ProcessCollector::new()?))?;
        let created = clock.now();
        let (exemplars, texts) = (Mutex::default(), Default::default());
        Ok(Self { registry, clock, created, exemplars, texts })
    }

    /// Returns the registry that areas add their metrics to.
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// Adds the metrics of the runtimes.
    pub fn watch(&self, runtimes: Vec<Runtimes>) -> Result<(), Error> {
        self.registry.register(Box::new(RuntimeCollector::new(runtimes)?))
    }

    /// Registers histograms of latencies that keep exemplars.
    pub fn latencies(&self, opts: HistogramOpts, labels: &[&str]) -> Result<Latencies, Error> {
        let latencies = Latencies::new(opts, labels, Arc::clone(&self.clock))?;
        registered(&self.registry, latencies.histograms().clone())?;
        self.exemplars().push(Arc::clone(latencies.exemplars()));
        Ok(latencies)
    }

    /// Returns all metrics in this format, after `measure` has updated those that are not counted.
    ///
    /// One request at a time writes a text, on a thread for blocking work, since a long one takes
    /// long, and pauses before if it was done a moment ago. Requests that arrive meanwhile wait, and
    /// share that text or the next.
    pub async fn text(
        self: &Arc<Self>,
        format: Format,
        measure: impl Future<Output = ()>,
    ) -> Result<Bytes, Error> {
        let asked_at = Instant::now();
        let mut last = Arc::clone(&self.texts[format.place()]).lock_owned().await;
        if let Some(text) = last.shared(asked_at) {
            return Ok(text);
        }
        last.pause().await;
        let began_at = Instant::now();
        measure.await;
        let metrics = Arc::clone(self);
        // The lock is released by the thread, also if this request is dropped before: clients that
        // do not wait for their answers must not start a thread each.
        let write = move || Ok(last.share(metrics.render(format)?, began_at));
        match spawn_blocking(write).await {
            Ok(written) => written,
            Err(error) => Err(Error::Msg(format!("cannot render the metrics: {error}"))),
        }
    }

    fn render(&self, format: Format) -> Result<String, Error> {
        let families = self.registry.gather();
        match format {
            Format::Prometheus => TextEncoder::new().encode_to_string(&families),
            Format::OpenMetrics => open_metrics::encode(&families, &self.found_exemplars())
                .map_err(|error| Error::Msg(error.to_string())),
        }
    }

    fn found_exemplars(&self) -> Found {
        self.exemplars().iter().map(|family| family.found()).collect()
    }

    fn exemplars(&self) -> MutexGuard<'_, Vec<Arc<Exemplars>>> {
        self.exemplars.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests;
