//! Tracing: opens a span for each request and exports it in the background.

use std::time::Duration;

use headgate_tls_client::TlsFileError;
use http::HeaderMap;
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::{SpanKind, TraceContextExt as _, Tracer as _, TracerProvider as _},
};
use opentelemetry_otlp::ExporterBuildError;
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider},
};
use thiserror::Error;
use tokio::task;
use tracing::warn;

use super::{DatabaseTracer, Span, collector::Collector};
use crate::{AppConfig, TraceConfig, resource};

/// Most spans in the queue; more are dropped.
const QUEUE: usize = 4096;

/// Spans in a batch.
const BATCH: usize = 512;

/// Longest delay of a batch.
const DELAY: Duration = Duration::from_secs(1);

/// Timeout of the last batch when the server stops.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Opens spans. Only this and [`Span`] set attributes, so that no personal data or secret gets into
/// a span.
#[derive(Clone, Debug)]
pub struct Tracer {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// Tracing that cannot be started.
#[derive(Debug, Error)]
pub enum TracerError {
    /// The exporter cannot be created.
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
    /// The system's certificate authorities cannot be read.
    #[error("cannot prepare TLS: {0}")]
    Tls(#[from] tonic::transport::Error),
    /// A certificate file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
}

/// Trace context of the caller. `tracestate` is not read: there are no services downstream.
struct Caller<'a>(&'a HeaderMap);

// === impl Tracer ===

impl Tracer {
    /// Starts tracing, if it is enabled. Must be called within a tokio runtime.
    pub fn start(app: &AppConfig, trace: &TraceConfig) -> Result<Option<Self>, TracerError> {
        if !trace.enabled {
            return Ok(None);
        }
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY)
            .build();
        let sending = BatchSpanProcessor::new(Collector::new(trace)?, batches);
        let undecided = Sampler::TraceIdRatioBased(trace.sample_rate.get());
        let provider = SdkTracerProvider::builder()
            .with_resource(resource::of(app))
            .with_sampler(Sampler::ParentBased(Box::new(undecided)))
            .with_span_processor(sending)
            .build();
        Ok(Some(Self { tracer: provider.tracer("headgate"), provider }))
    }

    /// Returns a tracer of calls to a database. `system` is a well-known value of `db.system.name`;
    /// `server` is its address, if there is only one.
    pub fn database(&self, system: &'static str, server: Option<(String, u16)>) -> DatabaseTracer {
        DatabaseTracer::new(self.tracer.clone(), system, server)
    }

    /// Opens the span of an HTTP request; `route` is the template of its path, if known.
    pub fn http(
        &self,
        headers: &HeaderMap,
        method: &'static str,
        route: Option<&str>,
        id: &str,
    ) -> Span {
        let (verb, method) = if method == "other" { ("HTTP", "_OTHER") } else { (method, method) };
        let name = route.map_or_else(|| verb.to_owned(), |route| format!("{verb} {route}"));
        let mut attributes = vec![KeyValue::new("http.request.method", method)];
        attributes.extend(route.map(|route| KeyValue::new("http.route", route.to_owned())));
        self.open(headers, name, attributes, id)
    }

    /// The span of a gRPC call of a method, given as its service and name; `None` for unknown
    /// methods.
    pub fn call(
        &self,
        headers: &HeaderMap,
        method: Option<(&'static str, &'static str)>,
        id: &str,
    ) -> Span {
        let system = KeyValue::new("rpc.system.name", "grpc");
        let name = match method {
            Some((service, name)) => format!("{service}/{name}"),
            None => "_OTHER".to_owned(),
        };
        let called = KeyValue::new("rpc.method", name.clone());
        self.open(headers, name, vec![system, called], id)
    }

    fn open(
        &self,
        headers: &HeaderMap,
        name: String,
        mut attributes: Vec<KeyValue>,
        id: &str,
    ) -> Span {
        attributes.push(KeyValue::new("headgate.request_id", id.to_owned()));
        let parent =
            TraceContextPropagator::new().extract_with_context(&Context::new(), &Caller(headers));
        let span = self.tracer.span_builder(name).with_kind(SpanKind::Server);
        let span = span.with_attributes(attributes).start_with_context(&self.tracer, &parent);
        Span::new(parent.with_span(span))
    }

    /// Sends the remaining spans, with a short timeout.
    pub async fn finish(&self) {
        let provider = self.provider.clone();
        let sent =
            task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_PATIENCE)).await;
        if let Ok(Err(error)) = sent {
            warn!(%error, "failed to send the last spans; dropping them");
        }
    }
}

// === impl Caller ===

impl Extractor for Caller<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => self.0.get(key)?.to_str().ok(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent"]
    }
}
