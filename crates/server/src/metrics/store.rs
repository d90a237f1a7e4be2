use prometheus::{Error, Histogram, HistogramOpts};

use super::checks::BUCKETS;
use crate::stores::StoreKind;

/// How long calls to a store in another process took. Only those that were made: what is answered
/// because the store is left alone is not, and a batch is one. Memory is not timed: a decision is
/// little else.
pub(crate) fn durations(store: StoreKind) -> Result<Histogram, Error> {
    let duration = HistogramOpts::new(
        "headgate_store_duration_seconds",
        "Time a call to a store in another process took, failed ones included.",
    );
    let duration = duration.const_label("store", store.name());
    Histogram::with_opts(duration.buckets(BUCKETS.into()))
}
