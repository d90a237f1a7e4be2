use std::time::Duration;

use headgate_persistence::{Query, QueryObserver};
use prometheus::{Error, HistogramOpts, HistogramVec, Registry};

use super::{registered, requests::BUCKETS};

/// How long the database took, by what it was asked. As many series as there are kinds of statements.
#[derive(Clone)]
pub(crate) struct Queries(HistogramVec);

impl Queries {
    pub(super) fn new(registry: &Registry) -> Result<Self, Error> {
        let duration = HistogramOpts::new(
            "db_query_duration_seconds",
            "Time the database took for a statement, failed ones included, by what it does and the table.",
        );
        let labels = ["query_name", "table"];
        let duration = HistogramVec::new(duration.buckets(BUCKETS.into()), &labels)?;
        Ok(Self(registered(registry, duration)?))
    }
}

impl QueryObserver for Queries {
    fn answered(&self, query: Query, took: Duration) {
        self.0.with_label_values(&[query.name, query.table]).observe(took.as_secs_f64());
    }
}
