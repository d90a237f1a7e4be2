use std::time::Duration;

use headgate_persistence::{Query, QueryObserver, SchemaVersion};
use headgate_telemetry::{
    metrics::{REQUEST_BUCKETS, registered},
    trace::{DatabaseTracer, EndedStatement},
};
use prometheus::{Error, HistogramOpts, HistogramVec, IntGauge, Registry};

/// Metrics and spans of the database: duration by kind of statement, writability, and schema version.
#[derive(Clone)]
pub(super) struct Queries {
    duration: HistogramVec,
    writable: IntGauge,
    schema_version: IntGauge,
    known_version: IntGauge,
    tracer: Option<DatabaseTracer>,
}

impl Queries {
    pub(super) fn new(registry: &Registry, tracer: Option<DatabaseTracer>) -> Result<Self, Error> {
        let duration = HistogramOpts::new(
            "db_query_duration_seconds",
            "Duration of database statements, including failed ones, by operation and table.",
        );
        let labels = ["query_name", "table"];
        let duration = HistogramVec::new(duration.buckets(REQUEST_BUCKETS.into()), &labels)?;
        let gauge = |name: &str, help: &str| registered(registry, IntGauge::new(name, help)?);
        let writable = gauge(
            "headgate_database_writable",
            "1 if the last write to the database succeeded, or failed because of its content; otherwise 0.",
        )?;
        // Writable until a write fails.
        writable.set(1);
        Ok(Self {
            duration: registered(registry, duration)?,
            writable,
            tracer,
            schema_version: gauge(
                "headgate_database_schema_version",
                "Schema version of the database; 0 before it was read.",
            )?,
            known_version: gauge(
                "headgate_database_schema_known_version",
                "Newest schema version of the database that this server knows; 0 before it was read.",
            )?,
        })
    }
}

impl QueryObserver for Queries {
    fn answered(&self, query: Query, took: Duration, error: Option<&'static str>) {
        let Query { name: operation, table } = query;
        self.duration.with_label_values(&[operation, table]).observe(took.as_secs_f64());
        if let Some(tracer) = &self.tracer {
            tracer.ended(&EndedStatement { operation, table, took, error });
        }
    }

    fn writable(&self, is_writable: bool) {
        self.writable.set(is_writable.into());
    }

    fn migrated(&self, version: SchemaVersion) {
        self.schema_version.set(version.applied);
        self.known_version.set(version.known);
    }
}
