//! gRPC-Web over HTTP/1.1, for clients without HTTP/2.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1, http::request::Builder};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use tokio::net::TcpStream;

use super::{
    client::{CheckRateLimitResponse, GetRuleRequest},
    raw::{self, CHECK, Reply},
};
use crate::harness::Server;

const MESSAGE: &[u8] = b"\x0a\x04user\x12\x02u1";

/// Long enough that nothing refills during a test.
const FOREVER: (&str, &str) = ("ratelimit.default_window_seconds", "8640000");
const GET_RULE: &str = "/k1s0.system.ratelimit.v1.RateLimitService/GetRule";

/// One connection for several calls.
struct Connection(http1::SendRequest<Full<Bytes>>);

fn call(path: &str) -> Builder {
    Request::post(path)
        .header("host", "test")
        .header("content-type", "application/grpc-web+proto")
        .header("x-grpc-web", "1")
}

impl Connection {
    async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    async fn send(&mut self, call: Builder, message: &[u8]) -> Reply {
        let mut frame = vec![0];
        frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
        frame.extend(message);
        self.0.ready().await.unwrap();
        let answer = self.0.send_request(call.body(Full::from(frame)).unwrap()).await.unwrap();
        let (head, body) = answer.into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned().unwrap_or_default();
        Reply { status: head.status, headers: head.headers, trailers, body: collected.to_bytes() }
    }
}

/// The frames of a body: flags and content.
fn frames(mut body: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [mark, a, b, c, d, rest @ ..] = body {
        let (frame, after) = rest.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        frames.push((*mark, frame));
        body = after;
    }
    assert_eq!(body, b"", "half a frame");
    frames
}

#[tokio::test]
async fn a_check_is_answered_with_its_status_in_the_last_frame() {
    let server = Server::start(&[("ratelimit.default_limit", "2"), FOREVER]).await;
    let mut connection = Connection::open(server.grpc_address).await;
    for (allowed, remaining) in [(true, 1), (true, 0), (false, 0)] {
        let reply = connection.send(call(CHECK).header("x-request-id", "web-1"), MESSAGE).await;
        assert_eq!((reply.status.as_u16(), reply.meta("x-request-id")), (200, "web-1"));
        assert_eq!(reply.meta("content-type"), "application/grpc-web+proto");
        let frames = frames(&reply.body);
        let [(0, message), (0x80, trailers)] = frames[..] else { panic!("{frames:?}") };
        let answer = CheckRateLimitResponse::decode(message).unwrap();
        assert_eq!((answer.allowed, answer.remaining, answer.limit), (allowed, remaining, 2));
        assert_eq!(trailers, b"grpc-status: 0\r\n");
    }
}

#[tokio::test]
async fn an_error_has_its_status_in_the_head_and_keeps_the_connection() {
    let server = Server::start(&[]).await;
    let mut connection = Connection::open(server.grpc_address).await;
    let refused = connection.send(call(CHECK), b"").await;
    assert_eq!((refused.status.as_u16(), refused.meta("grpc-status")), (200, "3"));
    assert_eq!(
        (refused.meta("grpc-message"), &refused.body[..]),
        ("validation%20failed", &b""[..])
    );
    let unknown = connection.send(call("/nothing"), b"").await;
    assert_eq!(unknown.meta("grpc-status"), "12");
    let answered = connection.send(call(CHECK), MESSAGE).await;
    assert_eq!(frames(&answered.body).len(), 2);
}

#[tokio::test]
async fn tokens_have_the_same_permissions_on_both_surfaces() {
    let server = Server::start(&[]).await;
    let mut connection = Connection::open(server.grpc_address).await;
    let message = GetRuleRequest { rule_id: uuid_of_nothing() }.encode_to_vec();
    let stranger = connection.send(call(GET_RULE), &message).await;
    assert_eq!(stranger.meta("grpc-status"), "16");
    let token = server.admin_token.clone().unwrap();
    let admin = call(GET_RULE).header("authorization", format!("Bearer {token}"));
    assert_eq!(connection.send(admin, &message).await.meta("grpc-status"), "5");
}

fn uuid_of_nothing() -> String {
    "00000000-0000-4000-8000-000000000000".to_owned()
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused() {
    let server = Server::start(&[]).await;
    let mut connection = Connection::open(server.grpc_address).await;
    let refused = connection.send(call(CHECK), &vec![b'x'; 70_000]).await;
    assert_eq!(refused.meta("grpc-status"), "8", "{refused:?}");
}

#[tokio::test]
async fn both_dialects_share_a_port_and_a_limit() {
    let server = Server::start(&[("ratelimit.default_limit", "5"), FOREVER]).await;
    let mut connection = Connection::open(server.grpc_address).await;
    connection.send(call(CHECK), MESSAGE).await;
    let proper = raw::send(server.grpc_address, raw::call(CHECK), MESSAGE).await;
    assert_eq!(proper.meta("grpc-status"), "0");
    let answer = CheckRateLimitResponse::decode(&proper.body[5..]).unwrap();
    assert_eq!(answer.remaining, 3);
    assert_eq!(proper.trailers["grpc-status"], "0");
    // HTTP/2 carries gRPC-Web as well.
    let web = Request::post(format!("http://test{CHECK}"));
    let web = web.header("content-type", "application/grpc-web");
    let reply = raw::send(server.grpc_address, web, MESSAGE).await;
    assert_eq!(frames(&reply.body).len(), 2);
}
