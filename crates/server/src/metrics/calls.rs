use std::time::Duration;

use prometheus::{
    Error, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry,
};

use super::{registered, requests::BUCKETS};
use crate::grpc::{METHODS, Method};

/// What was called over gRPC.
pub(crate) struct Calls {
    handled: IntCounterVec,
    /// In the order of the methods; what is called by no name of ours comes last.
    methods: Vec<Series>,
}

/// The numbers of one method, looked up once: going through the labels would cost every call.
struct Series {
    service: &'static str,
    name: &'static str,
    ok: IntCounter,
    duration: Histogram,
}

/// A call that was answered.
pub(crate) struct Handled {
    /// The method's place among all.
    pub(crate) method: Option<usize>,
    /// The name of the status; `None` when all went well.
    pub(crate) refused: Option<&'static str>,
    pub(crate) took: Duration,
}

impl Calls {
    const UNMATCHED: &str = "unmatched";

    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let handled = Opts::new(
            "grpc_server_handled_total",
            "gRPC calls that were answered, by service, method and status.",
        );
        let labels = ["grpc_service", "grpc_method", "grpc_code"];
        let handled = registered(registry, IntCounterVec::new(handled, &labels)?)?;
        let duration = HistogramOpts::new(
            "grpc_server_handling_seconds",
            "Time a gRPC call took, by service and method.",
        );
        let duration = HistogramVec::new(duration.buckets(BUCKETS.into()), &labels[..2])?;
        let duration = registered(registry, duration)?;
        let series = |service, name| Series {
            service,
            name,
            ok: handled.with_label_values(&[service, name, "OK"]),
            duration: duration.with_label_values(&[service, name]),
        };
        let known = METHODS.iter().map(|Method { service, name, .. }| series(service, name));
        let methods = known.chain([series(Self::UNMATCHED, Self::UNMATCHED)]).collect();
        Ok(Self { handled, methods })
    }

    pub(crate) fn handled(&self, call: &Handled) {
        let last = self.methods.len() - 1;
        let series = &self.methods[call.method.unwrap_or(last)];
        match call.refused {
            None => series.ok.inc(),
            Some(code) => {
                self.handled.with_label_values(&[series.service, series.name, code]).inc();
            }
        }
        series.duration.observe(call.took.as_secs_f64());
    }
}
