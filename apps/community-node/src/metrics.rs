//! What is counted. No label ever holds what a client sent.

mod memory;

use headgate_service_config::Source;
use prometheus::{
    Error, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};

/// The numbers of one node. Clones are the same numbers.
#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    /// `ingest_received_total{service, source}`: what came in, over `ws` or `gossip`.
    pub ingest_received: IntCounterVec,
    /// `ingest_rejected_total{service, reason, kind}`: what was turned away; see [`Reason`] and [`Kind`].
    pub ingest_rejected: IntCounterVec,
    /// `ws_connections`: those that are open.
    pub ws_connections: IntGauge,
    /// `ws_unauthenticated_connections`: those that have not said who they are.
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
    /// `dedupe_hits_total`: events that came before.
    pub dedupe_hits: IntCounter,
    /// `dedupe_misses_total`: events that came for the first time.
    pub dedupe_misses: IntCounter,
    /// `quota_exceeded_total{service, metric}`.
    pub quota_exceeded: IntCounterVec,
    /// `auth_success_total{service}`.
    pub auth_success: IntCounterVec,
    /// `auth_failure_total{service}`.
    pub auth_failure: IntCounterVec,
    /// `rate_limited_total{service, class, limit}`: requests over HTTP that had to wait, and which limit said so.
    pub rate_limited: IntCounterVec,
    /// `denylist_entries`: those that were loaded.
    pub denylist_entries: IntGauge,
    resident_memory: IntGauge,
    config_source: IntGaugeVec,
    config_version: IntGaugeVec,
    /// `http_requests_total{service, route, method, status}`.
    pub http_requests: IntCounterVec,
    /// `http_request_duration_seconds{service, route, method, status}`.
    pub http_request_duration: HistogramVec,
}

/// Why something was turned away: the label `reason` of `ingest_rejected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Too often.
    RateLimit,
    /// It makes no sense.
    Invalid,
    /// Nobody knows who sent it.
    Auth,
    /// Whoever sent it may not.
    Restricted,
    /// Nothing is left for today.
    Quota,
    /// The operator denies whoever sent it.
    Denied,
    /// Anything else.
    Other,
}

/// What was turned away: the label `kind` of `ingest_rejected_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request over HTTP.
    Http,
    /// The opening of a WebSocket.
    Connection,
    /// An event.
    Event,
    /// A subscription.
    Req,
    /// A subscription that asks for what is kept.
    Backfill,
    /// A login over a WebSocket.
    Auth,
    /// A frame that makes no sense.
    Invalid,
    /// Any other frame.
    Other,
    /// A message of a peer.
    Gossip,
    /// A message of a peer, because of who wrote it.
    GossipAuthor,
}

/// The labels of a request.
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
    /// Numbers that are all zero.
    pub fn new() -> Result<Self, Error> {
        let registry = Registry::new();
        let all = &registry;
        let up = gauge(all, "cn_up", "1 while the node runs")?;
        up.set(1);
        let duration = HistogramOpts::new(
            "http_request_duration_seconds",
            "How long requests took, by the template of their route",
        );
        let service = ["service"];
        let service_and_source = ["service", "source"];
        let rejections = ["service", "reason", "kind"];
        let service_and_metric = ["service", "metric"];
        Ok(Self {
            ingest_received: counters(
                all,
                ("ingest_received_total", "What came in"),
                &service_and_source,
            )?,
            ingest_rejected: counters(
                all,
                ("ingest_rejected_total", "What was turned away"),
                &rejections,
            )?,
            ws_connections: gauge(all, "ws_connections", "WebSockets that are open")?,
            ws_unauthenticated_connections: gauge(
                all,
                "ws_unauthenticated_connections",
                "WebSockets that have not said who they are",
            )?,
            ws_req: counter(all, "ws_req_total", "Subscriptions that were asked for")?,
            ws_event: counter(all, "ws_event_total", "Events that were sent to the relay")?,
            ws_auth_disconnect: counters(
                all,
                ("ws_auth_disconnect_total", "WebSockets that did not say in time who they are"),
                &["reason"],
            )?,
            gossip_received: counter(all, "gossip_received_total", "Messages that peers sent")?,
            gossip_sent: counter(all, "gossip_sent_total", "Messages that went to peers")?,
            dedupe_hits: counter(all, "dedupe_hits_total", "Events that came before")?,
            dedupe_misses: counter(
                all,
                "dedupe_misses_total",
                "Events that came for the first time",
            )?,
            quota_exceeded: counters(
                all,
                ("quota_exceeded_total", "Requests for which nothing was left today"),
                &service_and_metric,
            )?,
            auth_success: counters(all, ("auth_success_total", "Logins"), &service)?,
            auth_failure: counters(all, ("auth_failure_total", "Logins that failed"), &service)?,
            rate_limited: counters(
                all,
                ("rate_limited_total", "Requests that had to wait, by the limit that said so"),
                &["service", "class", "limit"],
            )?,
            denylist_entries: gauge(all, "denylist_entries", "Entries of the denylist")?,
            resident_memory: resident_memory(all)?,
            config_source: gauges(
                all,
                ("cn_config_source", "1 for what a service runs on"),
                &service_and_source,
            )?,
            config_version: gauges(
                all,
                ("cn_config_version", "The version of the document in force, 0 for none"),
                &service,
            )?,
            http_requests: counters(
                all,
                ("http_requests_total", "Requests, by the template of their route"),
                &REQUEST,
            )?,
            http_request_duration: registered(all, HistogramVec::new(duration, &REQUEST)?)?,
            registry,
        })
    }

    /// Counts a request over HTTP that `service` turned away.
    pub fn reject(&self, service: &str, reason: Reason) {
        self.reject_kind(service, reason, Kind::Http);
    }

    /// Counts what `service` turned away.
    pub fn reject_kind(&self, service: &str, reason: Reason, kind: Kind) {
        self.ingest_rejected.with_label_values(&[service, reason.name(), kind.name()]).inc();
    }

    /// Notes what a service runs on.
    pub fn config_is(&self, service: &str, source: &Source) {
        for name in Source::NAMES {
            let is = i64::from(name == source.name());
            self.config_source.with_label_values(&[service, name]).set(is);
        }
        let version = source.version().unwrap_or_default();
        self.config_version.with_label_values(&[service]).set(version);
    }

    /// Adds numbers that are kept elsewhere.
    pub fn register(&self, collector: impl Collector + 'static) -> Result<(), Error> {
        self.registry.register(Box::new(collector))
    }

    /// Everything, as Prometheus reads it.
    pub fn render(&self) -> Result<String, Error> {
        if let Some(bytes) = memory::resident_bytes() {
            self.resident_memory.set(bytes);
        }
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

/// A gauge of memory, shown where the system says how much there is.
fn resident_memory(registry: &Registry) -> Result<IntGauge, Error> {
    let (name, help) = ("process_resident_memory_bytes", "Memory that the process holds");
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
