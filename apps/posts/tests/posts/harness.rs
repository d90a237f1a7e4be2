//! A service on a free port with a manual clock, and clients with any address.

use std::{error::Error, net::SocketAddr, path::PathBuf, sync::Arc};

use headgate::{Clock, LeaseId, ManualClock, Timestamp};
use headgate_posts::{App, Config};
use headgate_testkit::{DynamoDb, SharedDynamoDb, Skip};
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, StatusCode, body::Bytes, client::conn::http1, http::request::Builder,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

/// 2100-01-01T00:00:00Z: in the future, so that DynamoDB's own TTL deletes nothing.
pub(crate) const START: u64 = 4_102_444_800;

pub(crate) const LIMITED: &str = r#"{"error":"投稿頻度を制限中","code":"RATE_LIMITED"}"#;

/// Generous timeout of DynamoDB, in milliseconds.
const PATIENT: &str = "30000";

/// A service that stops with the test.
pub(crate) struct Server {
    pub(crate) clock: Arc<ManualClock>,
    /// The table of cooldowns.
    pub(crate) table: String,
    pub(crate) address: SocketAddr,
    data: TempDir,
    _shutdown: oneshot::Sender<()>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A DynamoDB that tests share.
pub(crate) async fn dynamodb() -> Result<SharedDynamoDb, Skip> {
    tokio::task::spawn_blocking(DynamoDb::shared).await.expect("no panic")
}

// === impl Server ===

impl Server {
    /// Starts with memory and a file. The test is a trusted proxy, which sets the client's address.
    pub(crate) async fn embedded() -> Self {
        Self::with(&[("POSTS_TRUSTED_PROXIES", "127.0.0.1")]).await
    }

    /// Cooldowns and posts in DynamoDB, in tables of this test's own.
    pub(crate) async fn on_dynamodb(dynamodb: &SharedDynamoDb) -> Self {
        Self::cooldowns_on(dynamodb.endpoint(), &[("POSTS_DATABASE", "dynamodb")]).await
    }

    /// Cooldowns in the DynamoDB at `endpoint`, in a table of this test's own, and posts in a file.
    pub(crate) async fn cooldowns_on(endpoint: &str, variables: &[(&str, &str)]) -> Self {
        let tables = format!("headgate-test-{:016x}", LeaseId::random().get());
        let ours = [
            ("POSTS_TRUSTED_PROXIES", "127.0.0.1"),
            ("POSTS_STORE", "dynamodb"),
            ("POSTS_CREATE_TABLES", "true"),
            ("DYNAMODB_ENDPOINT", endpoint),
            ("DYNAMODB_TABLE_PREFIX", &tables),
            ("DYNAMODB_TIMEOUT_MS", PATIENT),
        ];
        Self::with(&[&ours, variables].concat()).await
    }

    /// Starts with these variables; posts are in a file by default.
    pub(crate) async fn with(variables: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let file = data.path().join("posts.db");
        let defaults = [("POSTS_DATABASE", file.to_str().expect("a UTF-8 path"))];
        let variables = defaults.iter().chain(variables);
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let config = Config::load(variables).expect("a valid configuration");
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(START * 1_000_000)));
        let app = App::build(&config, Arc::clone(&clock) as Arc<dyn Clock>).await;
        let app = app.expect("a service");
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("the listener's address");
        let (shutdown, told) = oneshot::channel();
        let stop = async {
            // Dropping the sender stops the service.
            let _ = told.await;
        };
        tokio::spawn(app.serve(listener, stop));
        let table = config.tables.rate_limits;
        Self { clock, table, address, data, _shutdown: shutdown }
    }

    /// Path of the SQLite file of posts.
    pub(crate) fn database(&self) -> PathBuf {
        self.data.path().join("posts.db")
    }

    /// Prefix of its tables.
    pub(crate) fn prefix(&self) -> &str {
        self.table.strip_suffix("-rate-limits").expect("the table's name")
    }

    /// Posts as `nickname` from `address`.
    pub(crate) async fn post(&self, address: &str, nickname: &str, body: &str) -> Reply {
        let draft = json!({"post": {"nickname": nickname, "body": body}});
        self.post_json(address, &draft.to_string()).await
    }

    /// Posts this text as JSON from `address`.
    pub(crate) async fn post_json(&self, address: &str, json: &str) -> Reply {
        let request = Request::post("/api/posts").header("content-type", "application/json");
        self.send(request.header("x-forwarded-for", address), json).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path), "").await
    }

    pub(crate) async fn send(&self, request: Builder, body: &str) -> Reply {
        send(self.address, request, body).await.expect("a response")
    }
}

/// Sends a request to `address`.
pub(crate) async fn send(
    address: SocketAddr,
    request: Builder,
    body: &str,
) -> Result<Reply, Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let body = Full::new(Bytes::from(body.to_owned()));
    let answer = sender.send_request(request.header("host", "test").body(body)?).await?;
    let (head, body) = answer.into_parts();
    let text = String::from_utf8(body.collect().await?.to_bytes().to_vec())?;
    Ok(Reply { status: head.status, headers: head.headers, text })
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn retry_after(&self) -> Option<u64> {
        Some(self.headers.get("retry-after")?.to_str().ok()?.parse().expect("seconds"))
    }

    #[track_caller]
    pub(crate) fn is_created(&self) {
        assert_eq!(self.status, 201, "{}", self.text);
    }

    #[track_caller]
    pub(crate) fn is_limited(&self) {
        assert_eq!((self.status.as_u16(), self.text.as_str()), (429, LIMITED));
        assert!(self.retry_after().is_some_and(|seconds| seconds >= 1), "{:?}", self.headers);
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, code: &str, error: &str) {
        let expected = format!(r#"{{"error":"{error}","code":"{code}"}}"#);
        assert_eq!((self.status.as_u16(), self.text.as_str()), (status, expected.as_str()));
    }

    #[track_caller]
    pub(crate) fn is_invalid(&self, error: &str) {
        self.is_refused(422, "VALIDATION_ERROR", error);
    }
}
