//! A server on a free port, and a client.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use headgate_server::{App, Config, Drain, Listeners};
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Request, StatusCode, body::Bytes, client::conn::http1, http::request::Builder,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};

pub(crate) const CHECK: &str = "/api/v1/ratelimit/check";
pub(crate) const RULES: &str = "/api/v1/ratelimit/rules";

/// A server that stops with the runtime of the test, or by `stop`.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) grpc_address: SocketAddr,
    /// The token printed on the first start, if one was generated.
    pub(crate) admin_token: Option<String>,
    /// Deleted with the server.
    #[expect(dead_code, reason = "held for its drop")]
    data: Option<TempDir>,
    shutdown: oneshot::Sender<()>,
    running: JoinHandle<Drain>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

// === impl Server ===

impl Server {
    /// Starts with these keys set, such as `("ratelimit.default_limit", "5")`, and a data folder of
    /// its own.
    pub(crate) async fn start(keys: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let folder = data.path().to_str().expect("a path that is text").to_owned();
        let keys = [&[("server.data_dir", folder.as_str())], keys].concat();
        Self { data: Some(data), ..Self::launch(None, &keys).await }
    }

    /// Starts with the data folder that `keys` name.
    pub(crate) async fn start_in_place(keys: &[(&str, &str)]) -> Self {
        Self::launch(None, keys).await
    }

    /// Starts with a configuration file, overridden by `keys`, and a data folder of its own.
    pub(crate) async fn start_with_file(file: &Path, keys: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().expect("a folder");
        let folder = data.path().to_str().expect("a path that is text").to_owned();
        let keys = [&[("server.data_dir", folder.as_str())], keys].concat();
        Self { data: Some(data), ..Self::launch(Some(file), &keys).await }
    }

    /// Starts at this address, with the data folder that `keys` name.
    pub(crate) async fn start_at(address: SocketAddr, keys: &[(&str, &str)]) -> Self {
        Self::launch_at(address, None, keys).await
    }

    async fn launch(file: Option<&Path>, keys: &[(&str, &str)]) -> Self {
        Self::launch_at(SocketAddr::from(([127, 0, 0, 1], 0)), file, keys).await
    }

    async fn launch_at(address: SocketAddr, file: Option<&Path>, keys: &[(&str, &str)]) -> Self {
        let variables = keys.iter().map(|(key, value)| (variable(key), (*value).to_owned()));
        let (file, variables): (_, Vec<_>) = (file.map(Path::to_owned), variables.collect());
        let load = Arc::new(move || Config::load(file.as_deref(), variables.clone()));
        let config = load().expect("a configuration that fits");
        let app = App::build_reloadable(&config, load, None);
        let app = Box::pin(app).await.expect("a server");
        let rest = TcpListener::bind(address).await.expect("a free port");
        let grpc = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = rest.local_addr().expect("the listener's address");
        let grpc_address = grpc.local_addr().expect("the listener's address");
        let (shutdown, stopped) = oneshot::channel();
        let stop = async {
            // Dropping the sender stops the server, too.
            let _ = stopped.await;
        };
        let admin_token = app.new_admin_token().map(|token| token.expose().to_owned());
        let listeners = Listeners { rest, grpc, rest_socket: None, grpc_socket: None };
        let running = tokio::spawn(app.serve(listeners, stop));
        Self { address, grpc_address, admin_token, data: None, shutdown, running }
    }

    /// Asks the server to stop, without waiting for it.
    pub(crate) fn stop(self) -> JoinHandle<Drain> {
        self.shutdown.send(()).expect("a server that is running");
        self.running
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(Request::get(path), "").await
    }

    /// Posts JSON.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Reply {
        self.send(Request::post(path).header("content-type", "application/json"), body).await
    }

    /// Checks a user.
    pub(crate) async fn check_user(&self, identifier: &str) -> Reply {
        let body = serde_json::json!({"scope": "user", "identifier": identifier});
        self.post(CHECK, &body.to_string()).await
    }

    /// Sends a request as the administrator; an empty body is not sent.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &str) -> Reply {
        self.with_token(self.admin_token.as_deref(), method, path, body).await
    }

    /// Sends a request with this token; an empty body is not sent.
    pub(crate) async fn with_token(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &str,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        if !body.is_empty() {
            request = request.header("content-type", "application/json");
        }
        self.send(request, body).await
    }

    /// Waits until the server knows the issuer of this token. It fetches the keys when they are
    /// needed, and refuses the token if that takes more than two seconds, as on a busy machine.
    pub(crate) async fn until_known(&self, token: &str) {
        let known = async {
            while self.with_token(Some(token), "GET", RULES, "").await.status == 401 {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(Duration::from_secs(120), known).await.expect("an issuer that is known");
    }

    /// Creates a rule; returns its id.
    pub(crate) async fn create_rule(&self, rule: &Value) -> String {
        let reply = self.admin("POST", RULES, &rule.to_string()).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn send(&self, request: Builder, body: &str) -> Reply {
        exchange(self.address, request, body).await
    }
}

/// Sends a request to `address`.
pub(crate) async fn exchange(address: SocketAddr, request: Builder, body: &str) -> Reply {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
    tokio::spawn(connection);
    let body = Full::new(Bytes::from(body.to_owned()));
    let request = request.header("host", "test").body(body).expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let (head, body) = answer.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let text = String::from_utf8(body.to_vec()).expect("a text");
    Reply { status: head.status, headers: head.headers, text }
}

fn variable(key: &str) -> String {
    format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"))
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Invalid fields and their messages.
    pub(crate) fn details(&self) -> Vec<(String, String)> {
        let body = self.json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let details = body["error"]["details"].as_array().expect("details, always");
        details.iter().map(|detail| (text(&detail["field"]), text(&detail["message"]))).collect()
    }

    /// Value of a header, or empty.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a visible header"))
    }
}
