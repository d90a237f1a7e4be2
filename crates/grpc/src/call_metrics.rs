use std::time::Duration;

use headgate_telemetry::{
    metrics::{Latencies, Metrics, REQUEST_BUCKETS, registered},
    trace::TraceId,
};
use prometheus::{Error, Histogram, HistogramOpts, IntCounter, IntCounterVec, Opts};

use super::methods::{METHODS, Method};

/// Metrics of gRPC calls.
pub struct CallMetrics {
    handled: IntCounterVec,
    duration: Latencies,
    /// In the order of [`METHODS`]; unknown methods share the last.
    methods: Vec<Series>,
}

/// The series of one method, looked up once: a lookup by labels would cost every call.
struct Series {
    service: &'static str,
    name: &'static str,
    ok: IntCounter,
    duration: Histogram,
}

/// An answered call.
pub(super) struct Handled {
    /// The method's index in [`METHODS`].
    pub(super) method: Option<usize>,
    /// The name of the status; `None` for OK.
    pub(super) refused: Option<&'static str>,
    pub(super) took: Duration,
    /// Its trace, if that is sampled.
    pub(super) trace: Option<TraceId>,
}

impl CallMetrics {
    const UNMATCHED: &str = "unmatched";

    /// Registers the metrics.
    pub fn new(metrics: &Metrics) -> Result<Self, Error> {
        let handled = Opts::new(
            "grpc_server_handled_total",
            "gRPC calls that were answered, by service, method and status.",
        );
        let labels = ["grpc_service", "grpc_method", "grpc_code"];
        let handled = registered(metrics.registry(), IntCounterVec::new(handled, &labels)?)?;
        let duration = HistogramOpts::new(
            "grpc_server_handling_seconds",
            "Duration of gRPC calls, by service and method.",
        );
        let duration = duration.buckets(REQUEST_BUCKETS.into());
        let duration = metrics.latencies(duration, &labels[..2])?;
        let series = |service, name| Series {
            service,
            name,
            ok: handled.with_label_values(&[service, name, "OK"]),
            duration: duration.series(&[service, name]),
        };
        let known = METHODS.iter().map(|Method { service, name, .. }| series(service, name));
        let methods = known.chain([series(Self::UNMATCHED, Self::UNMATCHED)]).collect();
        Ok(Self { handled, duration, methods })
    }

    pub(super) fn handled(&self, call: &Handled) {
        let last = self.methods.len() - 1;
        let series = &self.methods[call.method.unwrap_or(last)];
        match call.refused {
            None => series.ok.inc(),
            Some(code) => {
                self.handled.with_label_values(&[series.service, series.name, code]).inc();
            }
        }
        series.duration.observe(call.took.as_secs_f64());
        self.duration.note(&[series.service, series.name], call.took, call.trace);
    }
}
