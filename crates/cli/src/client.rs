//! Asks a server: who answers, in whose name, and what came back.

mod refusal;
mod server;
mod token;

use std::{error::Error, time::Duration};

use clap::Args;
use reqwest::{
    Method, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::runtime::{self, Runtime};

pub(crate) use self::refusal::Refusal;
use self::{
    server::Server,
    token::{Token, TokenError, TokenOptions},
};
use crate::output::Output;

const TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More than any answer has: a page is 100 rules, and a plan names each of 100,000 rules twice.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Where `--help` lists what is the same for every command.
const HEADING: &str = "Server options";

/// Which server to ask, in whose name, and how to print what it says.
#[derive(Debug, Args)]
pub(crate) struct Asking {
    /// The server to ask.
    #[arg(
        long,
        global = true,
        help_heading = HEADING,
        env = "HEADGATE_SERVER",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    server: Server,
    #[command(flatten)]
    token: TokenOptions,
    /// How to print the answer.
    #[arg(long, global = true, help_heading = HEADING, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// A server that can be asked.
pub(crate) struct Client {
    http: reqwest::Client,
    runtime: Runtime,
    server: Server,
    area: &'static str,
    token: Option<Token>,
    patience: Duration,
}

/// What a server said when it did what it was asked.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    server: Server,
}

/// Why a server did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot reach a server at {server}: {cause}\n\
         Start one with `headgate serve`, or name another with --server or HEADGATE_SERVER"
    )]
    Unreachable { server: Server, cause: String },
    #[error("{server} did not answer within {} s", patience.as_secs())]
    TimedOut { server: Server, patience: Duration },
    #[error("{server} does not answer like a headgate server: {cause}")]
    Garbled { server: Server, cause: String },
    #[error(transparent)]
    Refused(Refusal),
    #[error("the rules kept changing while they were read: try again later")]
    Moving,
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("cannot start: {0}")]
    Start(String),
}

// === impl Asking ===

impl Asking {
    /// Whoever answers about rules.
    pub(crate) fn connect(&self) -> Result<Client, ClientError> {
        self.connect_to("ratelimit")
    }

    /// Whoever answers about an area, by its name in paths.
    pub(crate) fn connect_to(&self, area: &'static str) -> Result<Client, ClientError> {
        let token = self.token.find(&self.server)?;
        self.client(area, token, TIMEOUT)
    }

    /// Asks whether the server answers, in nobody's name, for at most so long.
    pub(crate) fn health(&self, patience: Duration) -> Result<Reply, ClientError> {
        let client = self.client("", None, patience)?;
        client.exchange(client.http.get(self.server.health()))
    }

    fn client(
        &self,
        area: &'static str,
        token: Option<Token>,
        patience: Duration,
    ) -> Result<Client, ClientError> {
        // Fails if it is there already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .timeout(patience)
            .connect_timeout(CONNECT_TIMEOUT.min(patience))
            // A token is for the server that was named, not for one it points to.
            .redirect(Policy::none());
        let builder = if self.server.is_secured() {
            builder
        } else {
            // The machine's authorities would be read for nothing, and it may have none.
            builder.tls_backend_preconfigured(trusting_nobody())
        };
        let builder = if self.server.is_loopback() { builder.no_proxy() } else { builder };
        let start = |error: &dyn Error| ClientError::Start(root(error));
        let http = builder.build().map_err(|error| start(&error))?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| start(&error))?;
        Ok(Client { http, runtime, server: self.server.clone(), area, token, patience })
    }
}

// === impl Client ===

impl Client {
    /// Reads what is at `path`, which has one item for each segment.
    pub(crate) fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Reply, ClientError> {
        let mut url = self.server.url(self.area, path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(self.http.get(url))
    }

    /// Sends JSON to `path`.
    pub(crate) fn send(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<Reply, ClientError> {
        self.exchange(self.with_json(method, path, body)?)
    }

    /// Puts JSON in the place of what is at `path`, if that still has the tag with which it was seen.
    pub(crate) fn send_if_seen(
        &self,
        path: &[&str],
        body: &impl Serialize,
        tag: Option<&HeaderValue>,
    ) -> Result<Reply, ClientError> {
        let request = self.with_json(Method::PUT, path, body)?;
        self.exchange(match tag {
            Some(tag) => request.header(IF_MATCH, tag),
            None => request,
        })
    }

    fn with_json(
        &self,
        method: Method,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<RequestBuilder, ClientError> {
        let url: Url = self.server.url(self.area, path);
        let body = serde_json::to_vec(body).map_err(|error| self.server.garbled(&error))?;
        let request = self.http.request(method, url).header(CONTENT_TYPE, "application/json");
        Ok(request.body(body))
    }

    pub(crate) fn delete(&self, path: &[&str]) -> Result<(), ClientError> {
        self.exchange(self.http.delete(self.server.url(self.area, path))).map(drop)
    }

    fn exchange(&self, request: RequestBuilder) -> Result<Reply, ClientError> {
        let request = match &self.token {
            Some(token) => request.header(AUTHORIZATION, token.bearer()),
            None => request,
        };
        self.runtime.block_on(async {
            let response = request.send().await.map_err(|error| self.failed(&error))?;
            let (status, headers) = (response.status(), response.headers().clone());
            let body = self.read(response).await?;
            if status.is_success() {
                return Ok(Reply { headers, body, server: self.server.clone() });
            }
            Err(match Refusal::read(status, body) {
                Some(refusal) => ClientError::Refused(refusal),
                None => self.server.garbled(&format!("status {status}")),
            })
        })
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + part.len() > MAX_BODY_BYTES {
                return Err(self.server.garbled(&"the answer is too long"));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// Leaves the server alone for a while.
    pub(crate) fn pause(&self, pause: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(pause).await });
    }

    /// The server said something that makes no sense.
    pub(crate) fn garbled(&self, cause: &dyn std::fmt::Display) -> ClientError {
        self.server.garbled(cause)
    }

    fn failed(&self, error: &reqwest::Error) -> ClientError {
        let server = self.server.clone();
        if error.is_connect() {
            ClientError::Unreachable { server, cause: root(error) }
        } else if error.is_timeout() {
            ClientError::TimedOut { server, patience: self.patience }
        } else {
            ClientError::Garbled { server, cause: root(error) }
        }
    }
}

fn trusting_nobody() -> rustls::ClientConfig {
    let nobody = rustls::RootCertStore::empty();
    rustls::ClientConfig::builder().with_root_certificates(nobody).with_no_client_auth()
}

/// What is at the bottom of an error: the layers above only say that something is below.
fn root(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| self.server.garbled(&error))
    }
}

// === impl Server ===

impl Server {
    fn garbled(&self, cause: &dyn std::fmt::Display) -> ClientError {
        ClientError::Garbled { server: self.clone(), cause: cause.to_string() }
    }
}
