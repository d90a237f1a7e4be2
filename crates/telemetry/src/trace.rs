//! Traces: a span for each request and for its calls to the store and the database, exported to a
//! collector over OTLP.

mod collector;
mod database;
mod span;
mod tracer;

pub use opentelemetry::trace::TraceId;

pub use self::{
    database::{DatabaseTracer, EndedStatement, TracedStore},
    span::{Span, within, within_current},
    tracer::{Tracer, TracerError},
};
