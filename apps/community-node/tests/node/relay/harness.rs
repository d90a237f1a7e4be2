//! A node on a free port, with a document and a clock that the test sets.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use headgate::{Clock as _, ManualClock, SystemClock, Timestamp};
use headgate_community_node::{
    App, Config, Node,
    relay::{Bounds, Timing},
};
use headgate_quota::Author;
use headgate_service_config::{DenyUpdate, ServiceConfig};
use nostr_sdk::{Event, EventBuilder, Keys, Tag, Timestamp as At};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle, time};

/// Generous timeout of things that should happen at once.
pub(crate) const SOON: Duration = Duration::from_secs(120);

/// A running node.
pub(crate) struct Running {
    pub(crate) node: Arc<Node>,
    pub(crate) address: SocketAddr,
    pub(crate) clock: Arc<ManualClock>,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<std::io::Result<()>>,
    version: i64,
    _data: TempDir,
}

/// Settings of a node's start.
pub(crate) struct Start {
    variables: Vec<(String, String)>,
    timing: Timing,
    bounds: Bounds,
    denied: Option<String>,
}

// === impl Start ===

impl Start {
    pub(crate) fn new() -> Self {
        let timing = Timing { tick: Duration::from_millis(20), ..Timing::default() };
        Self { variables: Vec::new(), timing, bounds: Bounds::default(), denied: None }
    }

    pub(crate) fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    /// With a denylist from the start.
    pub(crate) fn denying(self, subject: String) -> Self {
        Self { denied: Some(subject), ..self }
    }

    pub(crate) fn timing(self, change: impl FnOnce(Timing) -> Timing) -> Self {
        Self { timing: change(self.timing), ..self }
    }

    pub(crate) fn bounds(self, bounds: Bounds) -> Self {
        Self { bounds, ..self }
    }

    /// Starts a node on a document with high limits, changed by `document`.
    pub(crate) async fn on(mut self, document: Value) -> Running {
        let data = TempDir::new().unwrap();
        let database = format!("sqlite://{}", data.path().join("node.db").display());
        self = self.variable("CN_DATABASE_URL", database);
        let clock = Arc::new(ManualClock::new(SystemClock::new().now()));
        let config = Config::load(self.variables).unwrap();
        let app = App::build(config, clock.clone()).await.unwrap();
        let app = app.relay_timing(self.timing).relay_bounds(self.bounds);
        let node = Arc::clone(app.node());
        // The node waits for it for two seconds, and a busy machine may take longer.
        node.database.migrate().await.unwrap();
        if let Some(subject) = &self.denied {
            put_denied(&node, subject).await;
            node.denylist.refresh().await.unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let mut version = 0;
        put(&node, &mut version, document);
        let shutdown = async move {
            let _ = stopped.await;
        };
        let served = tokio::spawn(app.serve(listener, shutdown));
        Running { node, address, clock, stop: Some(stop), served, version, _data: data }
    }
}

// === impl Running ===

impl Running {
    /// A node on a document with high limits, changed by `document`.
    pub(crate) async fn on(document: Value) -> Self {
        Start::new().on(document).await
    }

    /// Applies another document.
    pub(crate) fn put(&mut self, document: Value) {
        put(&self.node, &mut self.version, document);
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/relay", self.address)
    }

    pub(crate) fn now(&self) -> u64 {
        self.node.seconds()
    }

    /// Metrics of the node.
    pub(crate) fn metrics(&self) -> String {
        self.node.metrics.render().unwrap()
    }

    /// Waits until `line` is among the metrics.
    pub(crate) async fn counted(&self, line: &str) {
        let found = || self.metrics().lines().any(|counted| counted == line);
        eventually(found, || format!("{line} is not in\n{}", self.metrics())).await;
    }

    /// Stops the node, and waits until it has stopped.
    pub(crate) async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        time::timeout(SOON, &mut self.served).await.expect("the node to stop").unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.served.abort();
    }
}

/// Writes an entry to the denylist like another node.
pub(crate) async fn put_denied(node: &Node, subject: &str) {
    let update =
        DenyUpdate { subject: subject.to_owned(), reason: "spam".to_owned(), expires_at: None };
    let author =
        Author { actor: "admin".to_owned(), request_id: "1".to_owned(), at: node.clock.now() };
    node.database.denylist().put(&update, &author).await.unwrap();
}

fn put(node: &Node, version: &mut i64, mut document: Value) {
    let mut whole = roomy();
    merge(&mut whole, &mut document);
    *version += 1;
    node.relay.apply(Ok(Some(ServiceConfig {
        service: "relay".to_owned(),
        version: *version,
        config: whole,
        updated_at: Timestamp::from_micros(0),
        updated_by: "test".to_owned(),
    })));
    assert_eq!(node.relay.source().version(), Some(*version), "the document is valid");
}

/// High limits.
fn roomy() -> Value {
    json!({
        "rate_limit": {
            "ws": {
                "events_per_minute": 10_000, "reqs_per_minute": 10_000, "conns_per_minute": 10_000,
                "concurrent_by_ip": 1_000, "backfill_by_ip": 10_000, "backfill_by_pubkey": 10_000,
                "invalid_by_ip": 10_000,
            },
            "iroh": {"by_peer": 10_000, "global": 100_000},
        },
    })
}

fn merge(into: &mut Value, from: &mut Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.take(),
    }
}

/// Waits until `done`.
pub(crate) async fn eventually(mut done: impl FnMut() -> bool, problem: impl Fn() -> String) {
    let deadline = time::Instant::now() + SOON;
    while !done() {
        assert!(time::Instant::now() < deadline, "{}", problem());
        time::sleep(Duration::from_millis(5)).await;
    }
}

/// An event about `topic`, signed by `keys`.
pub(crate) fn note(keys: &Keys, topic: &str, content: &str, at: u64) -> Event {
    let builder = EventBuilder::text_note(content).tag(Tag::hashtag(topic));
    builder.custom_created_at(At::from_secs(at)).sign_with_keys(keys).unwrap()
}
