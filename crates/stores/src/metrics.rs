use headgate_telemetry::metrics::{DECISION_BUCKETS, registered};
use prometheus::{Error, Histogram, HistogramOpts, IntGauge, Opts, Registry};

use crate::kind::StoreKind;

/// Duration of calls to a store in another process. A batch is one call, and requests while the
/// circuit breaker is open are none. The memory store is not timed: the duration of a decision is
/// the same.
pub(super) fn durations(registry: &Registry, store: StoreKind) -> Result<Histogram, Error> {
    let duration = HistogramOpts::new(
        "headgate_store_duration_seconds",
        "Duration of calls to a store in another process, including failed ones.",
    );
    let duration = duration.const_label("store", store.name());
    registered(registry, Histogram::with_opts(duration.buckets(DECISION_BUCKETS.into()))?)
}

/// Gauge of the last probe of the store.
pub(super) fn up(registry: &Registry, store: StoreKind) -> Result<IntGauge, Error> {
    let opts = Opts::new("headgate_store_up", "1 if the store answers, otherwise 0.");
    registered(registry, IntGauge::with_opts(opts.const_label("store", store.name()))?)
}
