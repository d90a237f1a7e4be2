//! Traces: a span for each request, exported to a collector over OTLP.

mod collector;
mod span;
mod tracer;

pub use self::{
    span::{Span, within},
    tracer::{Tracer, TracerError},
};
