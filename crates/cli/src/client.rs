//! The client of the server's REST API.

mod error_response;
mod server;
mod tls;
mod token;

use std::{error::Error, io, time::Duration};

use clap::Args;
use reqwest::{
    Method, RequestBuilder, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, IF_MATCH},
    redirect::Policy,
};
use serde::{Serialize, de::DeserializeOwned};
use thiserror::Error;
use tokio::runtime::{self, Runtime};

pub(crate) use self::error_response::ErrorResponse;
use self::{
    server::Server,
    tls::{TlsError, TlsOptions},
    token::{Token, TokenError, TokenOptions},
};
use crate::output::Output;

const TIMEOUT: Duration = Duration::from_secs(120);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More than any response has: a page is 100 rules, and a plan lists each of 100,000 rules twice.
const MAX_BODY_BYTES: usize = 64 * 1024 * 1024;

/// Body of the response of a TLS port to a request in plain text.
const SPEAKS_TLS: &[u8] = b"this port speaks TLS: use https:// in the URL";

/// Heading in `--help` for the options that all commands share.
const HEADING: &str = "Server options";

/// The server to send requests to, the credentials and the output format.
#[derive(Debug, Args)]
pub(crate) struct ServerOptions {
    /// URL of the server, or `unix:PATH` of its Unix domain socket.
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
    #[command(flatten)]
    tls: TlsOptions,
    /// Output format.
    #[arg(long, global = true, help_heading = HEADING, value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// A client of one area of a server's API.
pub(crate) struct Client {
    http: reqwest::Client,
    runtime: Runtime,
    server: Server,
    area: &'static str,
    token: Option<Token>,
    timeout: Duration,
}

/// A successful response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    server: Server,
}

/// An error of a request.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot reach a server at {server}: {cause}\n\
         Start one with `headgate serve`, or set another URL with --server or HEADGATE_SERVER"
    )]
    Unreachable { server: Server, cause: String },
    #[error("{server} did not respond within {} s", timeout.as_secs_f32())]
    TimedOut { server: Server, timeout: Duration },
    #[error("unexpected response from {server}, which may not be a headgate server: {cause}")]
    UnexpectedResponse { server: Server, cause: String },
    #[error(transparent)]
    Refused(ErrorResponse),
    #[error("the list kept changing while it was read; try again later")]
    KeepsChanging,
    #[error("{server} speaks TLS: use https:// in the URL")]
    SpeaksTls { server: Server },
    #[error("{server} does not speak TLS: use http:// in the URL, if the network is trusted")]
    SpeaksPlainText { server: Server },
    #[error(
        "the certificate of {server} is not accepted: {cause}\n\
         Name the authority that has signed it with --ca-file or HEADGATE_CA_FILE, and use the host \
         name that is in it"
    )]
    ServerCertificate { server: Server, cause: String },
    #[error(
        "{server} requires a client certificate, or does not accept this one: {cause}\n\
         Name one with --client-cert and --client-key"
    )]
    ClientCertificate { server: Server, cause: String },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot create the HTTP client: {0}")]
    Setup(String),
}

// === impl ServerOptions ===

impl ServerOptions {
    /// Returns a client of the rate limit API.
    pub(crate) fn connect(&self) -> Result<Client, ClientError> {
        self.connect_to("ratelimit")
    }

    /// Returns a client of the rate limit API whose requests take no longer than `timeout`.
    pub(crate) fn connect_within(&self, timeout: Duration) -> Result<Client, ClientError> {
        let token = self.token.find(&self.server)?;
        self.client("ratelimit", token, timeout)
    }

    /// Returns a client of the API below `/api/v1/{area}`.
    pub(crate) fn connect_to(&self, area: &'static str) -> Result<Client, ClientError> {
        let token = self.token.find(&self.server)?;
        self.client(area, token, TIMEOUT)
    }

    /// Requests the server's liveness, without a token.
    pub(crate) fn health(&self, timeout: Duration) -> Result<Reply, ClientError> {
        let client = self.client("", None, timeout)?;
        client.exchange(client.http.get(self.server.health()))
    }

    fn client(
        &self,
        area: &'static str,
        token: Option<Token>,
        timeout: Duration,
    ) -> Result<Client, ClientError> {
        // Fails if a provider is already installed, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder()
            .timeout(timeout)
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            // The token must not be sent to a server that a redirect names.
            .redirect(Policy::none());
        let builder = if self.server.is_https() {
            self.tls.apply(builder)?
        } else {
            // Do not load the system's root certificates for plain HTTP; there may be none.
            builder.tls_backend_preconfigured(tls_without_roots())
        };
        let builder = if self.server.is_loopback() { builder.no_proxy() } else { builder };
        let builder = match self.server.socket() {
            Some(path) => builder.unix_socket(path),
            None => builder,
        };
        let setup = |error: &dyn Error| ClientError::Setup(root_cause(error));
        let http = builder.build().map_err(|error| setup(&error))?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| setup(&error))?;
        Ok(Client { http, runtime, server: self.server.clone(), area, token, timeout })
    }
}

// === impl Client ===

impl Client {
    /// Sends a GET request; `path` has one item for each segment.
    pub(crate) fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Reply, ClientError> {
        let mut url = self.server.url(self.area, path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(self.http.get(url))
    }

    /// Sends a POST without a body to `path`.
    pub(crate) fn post(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Reply, ClientError> {
        let mut url = self.server.url(self.area, path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.exchange(self.http.post(url))
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

    /// Replaces the resource at `path`, on condition that its `ETag` is still `tag`.
    pub(crate) fn put_if_match(
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
        let body = serde_json::to_vec(body).map_err(|error| self.server.unexpected(&error))?;
        let request = self.http.request(method, url).header(CONTENT_TYPE, "application/json");
        Ok(request.body(body))
    }

    pub(crate) fn delete(&self, path: &[&str]) -> Result<(), ClientError> {
        self.exchange(self.http.delete(self.server.url(self.area, path))).map(drop)
    }

    /// Returns the timeout of requests.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Changes the timeout of further requests.
    pub(crate) const fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    fn exchange(&self, request: RequestBuilder) -> Result<Reply, ClientError> {
        let request = request.timeout(self.timeout);
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
            if !self.server.is_https() && body == SPEAKS_TLS {
                return Err(ClientError::SpeaksTls { server: self.server.clone() });
            }
            Err(match ErrorResponse::parse(status, body) {
                Some(response) => ClientError::Refused(response),
                None => self.server.unexpected(&format!("status {status}")),
            })
        })
    }

    async fn read(&self, mut response: Response) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| self.failed(&error))? {
            if body.len() + part.len() > MAX_BODY_BYTES {
                return Err(self.server.unexpected(&"the response is too long"));
            }
            body.extend_from_slice(&part);
        }
        Ok(body)
    }

    /// Sleeps.
    pub(crate) fn pause(&self, pause: Duration) {
        self.runtime.block_on(async { tokio::time::sleep(pause).await });
    }

    /// A response that cannot be interpreted.
    pub(crate) fn unexpected(&self, cause: &dyn std::fmt::Display) -> ClientError {
        self.server.unexpected(cause)
    }

    fn failed(&self, error: &reqwest::Error) -> ClientError {
        let server = self.server.clone();
        match tls_error(error) {
            Some(rustls::Error::InvalidMessage(_)) => {
                return ClientError::SpeaksPlainText { server };
            }
            Some(error @ rustls::Error::InvalidCertificate(_)) => {
                return ClientError::ServerCertificate { server, cause: error.to_string() };
            }
            Some(rustls::Error::AlertReceived(alert)) => {
                return ClientError::ClientCertificate { server, cause: format!("{alert:?}") };
            }
            _ => {}
        }
        if error.is_connect() {
            ClientError::Unreachable { server, cause: root_cause(error) }
        } else if error.is_timeout() {
            ClientError::TimedOut { server, timeout: self.timeout }
        } else {
            ClientError::UnexpectedResponse { server, cause: root_cause(error) }
        }
    }
}

fn tls_without_roots() -> rustls::ClientConfig {
    let roots = rustls::RootCertStore::empty();
    rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()
}

/// The error of TLS among the causes.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    // The source of an `io::Error` is not the error that it wraps, but the source of that.
    let cause: Option<&(dyn Error + 'static)> = match error.downcast_ref::<io::Error>() {
        Some(error) => error.get_ref().map(|inner| inner as _),
        None => error.source(),
    };
    cause.and_then(tls_error)
}

/// The innermost cause: reqwest's outer errors only say which step failed.
fn root_cause(error: &dyn Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

// === impl Reply ===

impl Reply {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|error| self.server.unexpected(&error))
    }
}

// === impl Server ===

impl Server {
    fn unexpected(&self, cause: &dyn std::fmt::Display) -> ClientError {
        ClientError::UnexpectedResponse { server: self.clone(), cause: cause.to_string() }
    }
}
