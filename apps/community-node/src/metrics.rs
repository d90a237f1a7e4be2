//! Metrics. No label holds anything that a client sent.

mod memory;
mod text;

use std::sync::Arc;

use axum::body::Bytes;
use headgate_serve::Tls;
use headgate_service_config::Source;
use prometheus::{
    Error, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};
use tokio::time::Instant;

use self::text::MetricsText;

/// Metrics of one node. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    text: Arc<MetricsText>,
    /// `ingest_received_total{service, source}`: received events, over `ws` or `gossip`.
    pub ingest_received: IntCounterVec,
    /// `ingest_rejected_total{service, reason, kind}`: rejections; see [`Reason`] and [`Kind`].
    pub ingest_rejected: IntCounterVec,
    /// `ws_connections`: open connections.
    pub ws_connections: IntGauge,
    /// `ws_pending_bytes`: bytes of events that are being sent.
    pub ws_pending_bytes: IntGauge,
    /// `ws_subscription_bytes`: memory of subscriptions.
    pub ws_subscription_bytes: IntGauge,
    /// `ws_unauthenticated_connections`: open connections without authentication.
    pub ws_unauthenticated_connections: IntGauge,
    /// `ws_req_total`.
    pub ws_req: IntCounter,
    /// `ws_event_total`.
    pub ws_event: IntCounter,
    /// `ws_auth_disconnect_total{reason}`: `timeout` or `deadline`.
    pub ws_auth_disconnect: IntCounterVec,
    /// `gossip_received_total`.
    pub gossip_received: IntCounter,
    /// `gossip_sent_total`.
    pub gossip_sent: IntCounter,
    /// `dedupe_hits_total`: duplicate events.
    pub dedupe_hits: IntCounter,
    /// `dedupe_misses_total`: events that are not duplicates.
    pub dedupe_misses: IntCounter,
    /// `quota_exceeded_total{service, metric}`.
    pub quota_exceeded: IntCounterVec,
    /// `auth_success_total{service}`.
    pub auth_success: IntCounterVec,
    /// `auth_failure_total{service}`.
    pub auth_failure: IntCounterVec,
    /// `rate_limited_total{service, class, limit}`: HTTP requests denied by a rate limit.
    pub rate_limited: IntCounterVec,
    /// `denylist_entries`: entries of the denylist in force.
    pub denylist_entries: IntGauge,
    resident_memory: IntGauge,
    config_source: IntGaugeVec,
    config_version: IntGaugeVec,
    certificate_expiry: IntGaugeVec,
    /// `http_requests_total{service, route, method, status}`.
    pub http_requests: IntCounterVec,
    /// `http_request_duration_seconds{service, route, method, status}`.
    pub http_request_duration: HistogramVec,
}

/// Reason of a rejection: the label `reason` of `ingest_rejected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A rate limit.
    RateLimit,
    /// It is invalid.
    Invalid,
    /// The client is not authenticated.
    Auth,
    /// The client is not authorized.
    Restricted,
    /// A daily quota.
    Quota,
    /// The operator's denylist.
    Denied,
    /// Anything else.
    Other,
}

/// Kind of the rejected item: the label `kind` of `ingest_rejected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An HTTP request.
    Http,
    /// A connection.
    Connection,
    /// An event.
    Event,
    /// A subscription.
    Req,
    /// A subscription that asks for stored events.
    Backfill,
    /// A login over WebSocket.
    Auth,
    /// An invalid frame.
    Invalid,
    /// Any other frame.
    Other,
    /// A message from a peer.
    Gossip,
    /// A message from a peer, because of its author.
    GossipAuthor,
}

/// Labels of a request.
const REQUEST: [&str; 4] = ["service", "route", "method", "status"];

// === impl Reason ===

impl Reason {
    /// The label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "ratelimit",
            Self::Invalid => "invalid",
            Self::Auth => "auth",
            Self::Restricted => "restricted",
            Self::Quota => "quota",
            Self::Denied => "denied",
            Self::Other => "other",
        }
    }
}

// === impl Kind ===

impl Kind {
    /// The label.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Connection => "conn",
            Self::Event => "event",
            Self::Req => "req",
            Self::Backfill => "backfill",
            Self::Auth => "auth",
            Self::Invalid => "invalid",
            Self::Other => "other",
            Self::Gossip => "gossip",
            Self::GossipAuthor => "gossip_author",
        }
    }
}

// === impl Metrics ===

impl Metrics {
    /// Metrics that are all zero.
    pub fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let all = &registry;
        let up = gauge(all, "cn_up", "1 while the node runs")?;
        up.set(1);
        let duration = HistogramOpts::new(
            "http_request_duration_seconds",
            "Duration of HTTP requests, by the template of their route",
        );
        let service = ["service"];
        let service_and_source = ["service", "source"];
        let rejections = ["service", "reason", "kind"];
        let service_and_metric = ["service", "metric"];
        Ok(Self {
            ingest_received: counters(
                all,
                ("ingest_received_total", "Received events"),
                &service_and_source,
            )?,
            ingest_rejected: counters(
                all,
                ("ingest_rejected_total", "Rejected requests, frames and messages"),
                &rejections,
            )?,
            ws_connections: gauge(all, "ws_connections", "Open WebSocket connections")?,
            ws_pending_bytes: gauge(
                all,
                "ws_pending_bytes",
                "Bytes of events that are being sent to WebSocket clients",
            )?,
            ws_subscription_bytes: gauge(
                all,
                "ws_subscription_bytes",
                "Bytes of memory of WebSocket clients' subscriptions",
            )?,
            ws_unauthenticated_connections: gauge(
                all,
                "ws_unauthenticated_connections",
                "Open WebSocket connections without authentication",
            )?,
            ws_req: counter(all, "ws_req_total", "Subscriptions requested")?,
            ws_event: counter(all, "ws_event_total", "Events sent to the relay")?,
            ws_auth_disconnect: counters(
                all,
                ("ws_auth_disconnect_total", "Connections closed for lack of authentication"),
                &["reason"],
            )?,
            gossip_received: counter(all, "gossip_received_total", "Messages from peers")?,
            gossip_sent: counter(all, "gossip_sent_total", "Messages to peers")?,
            dedupe_hits: counter(all, "dedupe_hits_total", "Duplicate events")?,
            dedupe_misses: counter(all, "dedupe_misses_total", "Events that are not duplicates")?,
            quota_exceeded: counters(
                all,
                ("quota_exceeded_total", "Requests denied by a daily quota"),
                &service_and_metric,
            )?,
            auth_success: counters(all, ("auth_success_total", "Logins"), &service)?,
            auth_failure: counters(all, ("auth_failure_total", "Failed logins"), &service)?,
            rate_limited: counters(
                all,
                ("rate_limited_total", "HTTP requests denied by a rate limit"),
                &["service", "class", "limit"],
            )?,
            denylist_entries: gauge(all, "denylist_entries", "Entries of the denylist")?,
            resident_memory: resident_memory(all)?,
            config_source: gauges(
                all,
                ("cn_config_source", "1 for the source of a service's settings"),
                &service_and_source,
            )?,
            config_version: gauges(
                all,
                ("cn_config_version", "Version of the document in force, 0 for none"),
                &service,
            )?,
            certificate_expiry: gauges(
                all,
                (
                    "tls_certificate_expiry_seconds",
                    "Seconds until a certificate expires; negative if it has",
                ),
                &["certificate"],
            )?,
            http_requests: counters(
                all,
                ("http_requests_total", "HTTP requests, by the template of their route"),
                &REQUEST,
            )?,
            http_request_duration: registered(all, HistogramVec::new(duration, &REQUEST)?)?,
            text: Arc::default(),
            registry,
        })
    }

    /// Counts an HTTP request that `service` rejected.
    pub fn reject(&self, service: &str, reason: Reason) {
        self.reject_kind(service, reason, Kind::Http);
    }

    /// Counts a rejection by `service`.
    pub fn reject_kind(&self, service: &str, reason: Reason, kind: Kind) {
        self.ingest_rejected.with_label_values(&[service, reason.name(), kind.name()]).inc();
    }

    /// Sets the source of a service's settings.
    pub fn config_is(&self, service: &str, source: &Source) {
        for name in Source::NAMES {
            let is = i64::from(name == source.name());
            self.config_source.with_label_values(&[service, name]).set(is);
        }
        let version = source.version().unwrap_or_default();
        self.config_version.with_label_values(&[service]).set(version);
    }

    /// Sets the certificates in force.
    pub fn certificates_are(&self, tls: &Tls) {
        self.certificate_expiry.reset();
        for certificate in tls.certificates() {
            let path = certificate.path.to_string_lossy();
            self.certificate_expiry.with_label_values(&[&*path]).set(certificate.seconds_left);
        }
    }

    /// Adds metrics of other parts.
    pub fn register(&self, collector: impl Collector + 'static) -> Result<(), Error> {
        self.registry.register(Box::new(collector))
    }

    /// All metrics in Prometheus text format, after `refresh` has set those that are not counted.
    /// While one client is receiving a text, others get the same for a second.
    pub fn shared_text(&self, refresh: impl FnOnce()) -> Result<Bytes, Error> {
        let now = Instant::now();
        if let Some(text) = self.text.shared(now) {
            return Ok(text);
        }
        refresh();
        Ok(self.text.share(self.render()?, now))
    }

    /// All metrics in Prometheus text format.
    pub fn render(&self) -> Result<String, Error> {
        if let Some(bytes) = memory::resident_bytes() {
            self.resident_memory.set(bytes);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// Gauge of resident memory, registered only where the system reports it.
fn resident_memory(registry: &Registry) -> Result<IntGauge, Error> {
    let (name, help) = ("process_resident_memory_bytes", "Resident memory of the process");
    match memory::resident_bytes() {
        Some(_) => gauge(registry, name, help),
        None => IntGauge::new(name, help),
    }
}

fn counter(registry: &Registry, name: &str, help: &str) -> Result<IntCounter, Error> {
    registered(registry, IntCounter::new(name, help)?)
}

fn gauge(registry: &Registry, name: &str, help: &str) -> Result<IntGauge, Error> {
    registered(registry, IntGauge::new(name, help)?)
}

fn counters(
    registry: &Registry,
    (name, help): (&str, &str),
    labels: &[&str],
) -> Result<IntCounterVec, Error> {
    registered(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauges(
    registry: &Registry,
    (name, help): (&str, &str),
    labels: &[&str],
) -> Result<IntGaugeVec, Error> {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, it: C) -> Result<C, Error> {
    registry.register(Box::new(it.clone()))?;
    Ok(it)
}
