//! A collector of spans and metrics that records what it receives.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use headgate_testkit::{CertificateAuthority, wait_until};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::{
        ExportMetricsServiceRequest, ExportMetricsServiceResponse,
        metrics_service_server::{MetricsService, MetricsServiceServer},
    },
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    common::v1::{KeyValue, any_value::Value},
    trace::v1::span::SpanKind,
};
use prost::Message as _;
use tokio::{net::TcpListener, runtime::Runtime};
use tonic::{
    Request, Response, Status,
    transport::{Certificate, Identity, Server, ServerTlsConfig, server::TcpIncoming},
};

use super::LIMIT;

/// A collector on a free port; stopped when dropped.
pub(crate) struct Collector {
    /// Keeps its tasks running.
    _runtime: Runtime,
    received: Received,
    metrics: ReceivedMetrics,
    port: u16,
}

/// The parts of a span that tests check.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    /// Nanoseconds since 1970.
    started: u64,
    pub(crate) name: String,
    pub(crate) kind: SpanKind,
    pub(crate) id: String,
    pub(crate) trace: String,
    pub(crate) parent: String,
    pub(crate) failed: bool,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
}

#[derive(Clone, Default)]
struct ReceivedMetrics(Arc<Mutex<Vec<Request<ExportMetricsServiceRequest>>>>);

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<ExportTraceServiceRequest>>>);

// === impl Collector ===

impl Collector {
    pub(crate) fn start() -> Self {
        Self::serve(Server::builder())
    }

    /// Starts a collector with TLS and the certificate in `folder`.
    pub(crate) fn start_with_tls(folder: &Path) -> Self {
        let read = |name| fs::read(folder.join(name)).unwrap();
        let tls = ServerTlsConfig::new();
        let tls = tls.identity(Identity::from_pem(read("cert.pem"), read("key.pem")));
        Self::serve(Server::builder().tls_config(tls).unwrap())
    }

    /// Starts a collector for clients with certificates of this authority.
    pub(crate) fn start_with_client_certificates(authority: &CertificateAuthority) -> Self {
        let own = authority.issue(&["127.0.0.1"]);
        let tls = ServerTlsConfig::new()
            .identity(Identity::from_pem(own.certificate, own.key))
            .client_ca_root(Certificate::from_pem(authority.pem()));
        Self::serve(Server::builder().tls_config(tls).unwrap())
    }

    fn serve(mut server: Server) -> Self {
        let (runtime, received) = (Runtime::new().unwrap(), Received::default());
        let listener = runtime.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let metrics = ReceivedMetrics::default();
        let router = server
            .add_service(TraceServiceServer::new(received.clone()))
            .add_service(MetricsServiceServer::new(metrics.clone()));
        runtime.spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
        Self { _runtime: runtime, received, metrics, port }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until `all` returns true for the spans. A server that stops gives the last ones up
    /// after two seconds, which a busy machine may exceed.
    pub(crate) fn wait(&self, all: impl Fn(&[Span]) -> bool) {
        assert!(wait_until(LIMIT, || all(&self.spans())), "{:#?}", self.spans());
    }

    /// Calls `use_them` with the received exports of metrics.
    pub(crate) fn with_metrics<T>(
        &self,
        use_them: impl FnOnce(&[Request<ExportMetricsServiceRequest>]) -> T,
    ) -> T {
        use_them(&self.metrics.0.lock().unwrap())
    }

    /// All received requests, encoded.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let received = self.received.0.lock().unwrap();
        received.iter().flat_map(ExportTraceServiceRequest::encode_to_vec).collect()
    }

    /// All received spans, in the order of their start.
    pub(crate) fn spans(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        for of_resource in
            self.received.0.lock().unwrap().iter().flat_map(|sent| &sent.resource_spans)
        {
            let resource = texts(&of_resource.resource.as_ref().unwrap().attributes);
            for span in of_resource.scope_spans.iter().flat_map(|of_scope| &of_scope.spans) {
                assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
                assert_eq!((span.events.len(), span.trace_state.as_str()), (0, ""));
                spans.push(Span {
                    started: span.start_time_unix_nano,
                    name: span.name.clone(),
                    kind: span.kind(),
                    id: hex(&span.span_id),
                    trace: hex(&span.trace_id),
                    parent: hex(&span.parent_span_id),
                    failed: span.status.as_ref().is_some_and(|status| status.code == 2),
                    attributes: texts(&span.attributes),
                    resource: resource.clone(),
                });
            }
        }
        spans.sort_by_key(|span| span.started);
        spans
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.0.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for ReceivedMetrics {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.0.lock().unwrap().push(request);
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

pub(crate) fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().unwrap().value.as_ref() {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(truth)) => truth.to_string(),
        other => panic!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.clone(), text(attribute))).collect()
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.map(|digit| char::from_digit(digit.into(), 16).unwrap()).collect()
}
