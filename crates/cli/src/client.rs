//! One request to a server.

use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    body::Bytes,
    client::conn::http1,
    header::{CONTENT_TYPE, HOST},
};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{net::TcpStream, runtime, time};

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY_BYTES: usize = 1024 * 1024;

/// A server, by its URL.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    url: String,
    host: String,
    port: u16,
}

/// What a server said.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why a server said nothing.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error(
        "cannot reach a server at {url}: {cause}\n\
         Start one with `headgate serve`, or name another with --server or HEADGATE_SERVER"
    )]
    Unreachable { url: String, cause: std::io::Error },
    #[error("{url} did not answer within {} s", TIMEOUT.as_secs())]
    TimedOut { url: String },
    #[error("{url} does not answer like a headgate server: {cause}")]
    Garbled { url: String, cause: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// A text that is no server's URL.
#[derive(Clone, Debug, Error)]
#[error("expected http://HOST[:PORT], such as http://127.0.0.1:8080")]
pub(crate) struct NotAServer;

// === impl Server ===

impl std::str::FromStr for Server {
    type Err = NotAServer;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        let url = url.trim_end_matches('/');
        let uri: Uri = url.parse().map_err(|_| NotAServer)?;
        if uri.scheme_str() != Some("http") || uri.path() != "/" || uri.query().is_some() {
            return Err(NotAServer);
        }
        let host = uri.host().ok_or(NotAServer)?;
        // A URL writes IPv6 addresses in brackets; a socket does not.
        let host = host.trim_matches(['[', ']']).to_owned();
        Ok(Self { url: url.to_owned(), host, port: uri.port_u16().unwrap_or(80) })
    }
}

impl Server {
    /// Posts JSON to `path`, and waits for the answer.
    pub(crate) fn post(&self, path: &str, body: Vec<u8>) -> Result<Reply, ClientError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let timed_out = |_| ClientError::TimedOut { url: self.url.clone() };
        runtime.block_on(async {
            time::timeout(TIMEOUT, self.exchange(path, body)).await.map_err(timed_out)?
        })
    }

    async fn exchange(&self, path: &str, body: Vec<u8>) -> Result<Reply, ClientError> {
        let stream = TcpStream::connect((self.host.as_str(), self.port))
            .await
            .map_err(|cause| ClientError::Unreachable { url: self.url.clone(), cause })?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.garbled(error))?;
        let connection = tokio::spawn(connection);

        let request = Request::post(path)
            .header(HOST, self.url.trim_start_matches("http://"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| self.garbled(error))?;
        let answer = sender.send_request(request).await.map_err(|error| self.garbled(error))?;
        let (head, body) = answer.into_parts();
        let body =
            Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(|e| self.garbled(e))?;
        connection.abort();
        Ok(Reply { status: head.status, headers: head.headers, body: body.to_bytes() })
    }

    pub(crate) fn garbled(
        &self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> ClientError {
        ClientError::Garbled { url: self.url.clone(), cause: cause.into() }
    }
}
