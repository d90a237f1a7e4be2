//! A node on a free port with a manual clock, and clients with any address and key.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use headgate::{ManualClock, Timestamp};
use headgate_community_node::{App, Config, Node};
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, StatusCode, body::Bytes, client::conn::http1, http::request::Builder,
};
use hyper_util::rt::TokioIo;
use nostr::{
    event::{Event, EventBuilder, FinalizeEvent as _, Kind, Tag},
    key::{Keys, SecretKey},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OnceCell, oneshot},
};

/// 2026-02-23T10:00:00Z.
pub(crate) const START: u64 = 1_771_840_800;

pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// Makes the denylist unreadable, but still writable: a reason that is not UTF-8.
pub(crate) const UNREADABLE_ENTRY: &str =
    "INSERT INTO denylist VALUES ('192.0.2.99', CAST(x'ff' AS TEXT), NULL, 0, 'test')";

/// Generous: tests share few cores with the servers.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A node that stops with the test.
pub(crate) struct Server {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) node: Arc<Node>,
    pub(crate) address: SocketAddr,
    /// Address of `/metrics`, if it has one of its own.
    pub(crate) metrics_address: Option<SocketAddr>,
    data: TempDir,
    cookie: OnceCell<String>,
    _shutdown: oneshot::Sender<()>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

/// A client with a key, an address and a token.
pub(crate) struct Client<'s> {
    server: &'s Server,
    pub(crate) keys: Keys,
    address: String,
    pub(crate) token: String,
}

// === impl Server ===

impl Server {
    /// Starts with memory and a file. The test is a trusted proxy, which sets the client's address.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts on this database.
    pub(crate) async fn on(database_url: &str) -> Self {
        Self::with(&[("CN_DATABASE_URL", database_url)]).await
    }

    /// Starts with these variables, which override the usual ones.
    pub(crate) async fn with(variables: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let file = format!("sqlite://{}/node.db", data.path().display());
        let usual = [
            ("CN_DATABASE_URL", file.as_str()),
            ("CN_TRUSTED_PROXIES", "127.0.0.1"),
            ("CN_ADMIN_PASSWORD", PASSWORD),
        ];
        let variables = usual.iter().chain(variables);
        let variables: std::collections::BTreeMap<String, String> =
            variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let config = Config::load(variables).unwrap();
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(START * 1_000_000)));
        let metrics_listen = config.metrics_listen;
        let mut app = App::build(config, clock.clone()).await.unwrap();
        let mut metrics_address = None;
        if let Some(listen) = metrics_listen {
            let listener = TcpListener::bind(listen).await.unwrap();
            metrics_address = Some(listener.local_addr().unwrap());
            app = app.metrics_on(listener);
        }
        let node = Arc::clone(app.node());
        catch_up(&node).await;
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, told) = oneshot::channel::<()>();
        let stop = async {
            // Dropping the sender stops the node.
            let _ = told.await;
        };
        tokio::spawn(app.serve(listener, stop));
        let cookie = OnceCell::new();
        Self { clock, node, address, metrics_address, data, cookie, _shutdown: shutdown }
    }

    /// Path of its SQLite database.
    pub(crate) fn file(&self) -> PathBuf {
        self.data.path().join("node.db")
    }

    pub(crate) fn relay_url(&self) -> String {
        format!("ws://{}/relay", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path), "").await
    }

    /// Sends a GET request from `address`.
    pub(crate) async fn get_from(&self, address: &str, path: &str) -> Reply {
        self.send(Request::get(path).header("x-forwarded-for", address), "").await
    }

    pub(crate) async fn post(&self, address: &str, path: &str, body: &Value) -> Reply {
        let request = Request::post(path).header("x-forwarded-for", address);
        self.send(request, &body.to_string()).await
    }

    pub(crate) async fn send(&self, request: Builder, body: &str) -> Reply {
        Self::send_to(self.address, request, body).await
    }

    pub(crate) async fn send_to(address: SocketAddr, request: Builder, body: &str) -> Reply {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let body = Full::new(Bytes::from(body.to_owned()));
        let request = request.header("host", "test").body(body).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        let (head, body) = answer.into_parts();
        let text = body.collect().await.unwrap().to_bytes().to_vec();
        let text = String::from_utf8(text).unwrap();
        Reply { status: head.status, headers: head.headers, text }
    }

    /// Signs in as the administrator from an address of its own.
    pub(crate) async fn login(&self, password: &str) -> Reply {
        self.post("192.0.2.250", "/v1/admin/login", &json!({"password": password})).await
    }

    async fn cookie(&self) -> &str {
        let cookie = async {
            let reply = self.login(PASSWORD).await;
            assert_eq!(reply.status, 200, "{}", reply.text);
            let cookie = reply.headers["set-cookie"].to_str().unwrap().to_owned();
            cookie.split(';').next().unwrap().to_owned()
        };
        self.cookie.get_or_init(|| cookie).await
    }

    /// Sends a request as the administrator.
    pub(crate) async fn admin(&self, request: Builder, body: &str) -> Reply {
        let request = request.header("x-forwarded-for", "192.0.2.250");
        self.send(request.header("cookie", self.cookie().await), body).await
    }

    /// Writes a document as the administrator.
    pub(crate) async fn put(&self, service: &str, body: &Value) -> Reply {
        let path = format!("/v1/admin/services/{service}/config");
        self.admin(Request::put(path), &body.to_string()).await
    }

    /// Writes a valid document.
    pub(crate) async fn configure(&self, service: &str, config: Value) {
        let reply = self.put(service, &json!({"config_json": config})).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    }

    /// A client that has signed in.
    pub(crate) async fn client(&self, whose: u8, address: &str) -> Client<'_> {
        self.client_at(whose, address, START).await
    }

    /// A client that signs in at this time.
    pub(crate) async fn client_at(&self, whose: u8, address: &str, at: u64) -> Client<'_> {
        let keys = keys(whose);
        let token = self.sign_in(&keys, address, at).await;
        Client { server: self, keys, address: address.to_owned(), token }
    }

    pub(crate) async fn challenge(&self, keys: &Keys, address: &str) -> String {
        let ask = json!({"pubkey": keys.public_key().to_hex()});
        let reply = self.post(address, "/v1/auth/challenge", &ask).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()["challenge"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn verify(&self, event: &Event, address: &str) -> Reply {
        self.post(address, "/v1/auth/verify", &json!({"auth_event_json": event})).await
    }

    /// Event that signs a challenge.
    pub(crate) fn answer(&self, keys: &Keys, challenge: &str, at: u64) -> Event {
        let tags = [["challenge", challenge], ["relay", &self.relay_url()]];
        sign(keys, Kind::Authentication, &tags, at)
    }

    async fn sign_in(&self, keys: &Keys, address: &str, at: u64) -> String {
        let challenge = self.challenge(keys, address).await;
        let reply = self.verify(&self.answer(keys, &challenge, at), address).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()["access_token"].as_str().unwrap().to_owned()
    }
}

/// Reads what the node could not read at its start: it waits for its database for two seconds, and
/// a busy machine may take longer. Without a database, it changes nothing.
async fn catch_up(node: &Node) {
    if node.denylist.is_loaded() || node.database.migrate().await.is_err() {
        return;
    }
    let documents = node.database.service_configs();
    node.relay.refresh(&documents).await;
    node.user_api.refresh(&documents).await;
    node.bootstrap.refresh(&documents).await;
    // A test may have made it unreadable.
    let _ = node.denylist.refresh().await;
}

/// Keys of a test user.
pub(crate) fn keys(whose: u8) -> Keys {
    Keys::new(SecretKey::from_slice(&[whose; 32]).unwrap())
}

pub(crate) fn sign(keys: &Keys, kind: Kind, tags: &[[&str; 2]], at: u64) -> Event {
    signed(keys, EventBuilder::new(kind, ""), tags, at)
}

/// A user's note.
pub(crate) fn say(keys: &Keys, content: &str, tags: &[[&str; 2]], at: u64) -> Event {
    signed(keys, EventBuilder::new(Kind::TextNote, content), tags, at)
}

fn signed(keys: &Keys, event: EventBuilder, tags: &[[&str; 2]], at: u64) -> Event {
    let tags = tags.iter().map(|tag| Tag::parse(*tag).unwrap());
    let at = nostr::types::Timestamp::from_secs(at);
    event.tags(tags).custom_created_at(at).finalize(keys).unwrap()
}

// === impl Client ===

impl Client<'_> {
    pub(crate) fn pubkey(&self) -> String {
        self.keys.public_key().to_hex()
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.get_from(&self.address, path).await
    }

    /// Sends a request from another address.
    pub(crate) async fn get_from(&self, address: &str, path: &str) -> Reply {
        self.server.send(self.request(Request::get(path), address), "").await
    }

    /// Sends a GET request with a request id.
    pub(crate) async fn get_as(&self, id: &str, path: &str) -> Reply {
        let request = self.request(Request::get(path), &self.address);
        self.server.send(request.header("x-request-id", id), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        let request = self.request(Request::post(path), &self.address);
        self.server.send(request, &body.to_string()).await
    }

    /// Sends a request with a request id.
    pub(crate) async fn post_as(&self, id: &str, path: &str, body: &Value) -> Reply {
        let request = self.request(Request::post(path), &self.address);
        self.server.send(request.header("x-request-id", id), &body.to_string()).await
    }

    fn request(&self, request: Builder, address: &str) -> Builder {
        let token = format!("Bearer {}", self.token);
        request.header("x-forwarded-for", address).header("authorization", token)
    }
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    #[track_caller]
    pub(crate) fn is(&self, status: u16) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
    }

    #[track_caller]
    pub(crate) fn is_limited(&self) {
        let body = r#"{"code":"RATE_LIMITED","message":"rate limited","details":null}"#;
        assert_eq!((self.status.as_u16(), self.text.as_str()), (429, body));
        let seconds: u64 = self.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&seconds), "{seconds}");
    }

    #[track_caller]
    pub(crate) fn is_refused(&self, status: u16, code: &str) {
        self.is(status);
        let body = self.json();
        assert_eq!(body["code"], code, "{body}");
        assert!(body["message"].is_string() && body.get("details").is_some(), "{body}");
    }
}
