//! Calls byte by byte, for requests that generated clients cannot send.

use std::{convert::Infallible, net::SocketAddr};

use futures_util::stream;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::{
    HeaderMap, Request, StatusCode,
    body::{Body, Bytes},
    client::conn::{http1, http2},
    http::request::Builder,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

pub(super) const CHECK: &str = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit";

/// A response with headers and trailers.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) trailers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    /// Value of a header or trailer, or empty.
    pub(super) fn meta(&self, name: &str) -> &str {
        let value = self.headers.get(name).or_else(|| self.trailers.get(name));
        value.map_or("", |value| value.to_str().unwrap())
    }
}

/// The head of a call of `path`.
pub(super) fn call(path: &str) -> Builder {
    Request::post(format!("http://test{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
}

/// Sends `message` in a frame.
pub(super) async fn send(address: SocketAddr, call: Builder, message: &[u8]) -> Reply {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    send_bytes(address, call, frame).await
}

/// Sends `bytes` as they are.
pub(super) async fn send_bytes(address: SocketAddr, call: Builder, bytes: Vec<u8>) -> Reply {
    send_body(address, call, Full::new(Bytes::from(bytes))).await
}

/// Sends a head, but no body.
pub(super) async fn send_unfinished(address: SocketAddr, call: Builder) -> Reply {
    send_body(address, call, StreamBody::new(stream::pending::<Result<_, Infallible>>())).await
}

async fn send_body<B>(address: SocketAddr, call: Builder, body: B) -> Reply
where
    B: Body<Data = Bytes, Error = Infallible> + Send + Unpin + 'static,
{
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let answer = sender.send_request(call.body(body).unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    let collected = body.collect().await.unwrap();
    let trailers = collected.trailers().cloned().unwrap_or_default();
    Reply { status: head.status, headers: head.headers, trailers, body: collected.to_bytes() }
}

/// Sends a head over HTTP/1.1; returns the status.
pub(super) async fn send_http1(address: SocketAddr, call: Builder) -> StatusCode {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = call.header("host", "test").body(Empty::<Bytes>::new()).unwrap();
    sender.send_request(request).await.unwrap().status()
}
