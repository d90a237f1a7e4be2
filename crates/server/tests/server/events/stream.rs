//! `GET /api/v1/events/stream`

use std::time::Duration;

use headgate_server::Drain;
use http_body_util::{BodyExt, Empty};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    client::conn::http1,
    http::request::Builder,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};

use super::support::{exhausted, list};
use crate::harness::Server;

const STREAM: &str = "/api/v1/events/stream";
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the stream.
struct Follower {
    body: Incoming,
    text: String,
}

#[derive(Debug)]
struct StreamedEvent {
    id: String,
    event: String,
    data: Value,
}

impl Follower {
    async fn request(server: &Server, query: &str, last: Option<&str>) -> Response<Incoming> {
        let mut request = Request::get(format!("{STREAM}?{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Self::send(server, request, server.admin_token.as_deref()).await
    }

    async fn send(server: &Server, request: Builder, token: Option<&str>) -> Response<Incoming> {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = request.header("host", "test");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await.unwrap()
    }

    async fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let answer = Self::request(server, query, last).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["cache-control"], "no-store");
        Self { body: answer.into_body(), text: String::new() }
    }

    /// The next event; `None` when the stream has ended.
    async fn next(&mut self) -> Option<StreamedEvent> {
        loop {
            while let Some((block, _)) = self.text.split_once("\n\n") {
                let (streamed, length) = (StreamedEvent::read(block), block.len());
                self.text.drain(..length + 2);
                if streamed.is_some() {
                    return streamed;
                }
            }
            let frame = timeout(PATIENCE, self.body.frame()).await.expect("in time")?;
            let bytes = frame.expect("a stream that is not cut").into_data().unwrap();
            self.text.push_str(str::from_utf8(&bytes).unwrap());
        }
    }
}

impl StreamedEvent {
    fn read(block: &str) -> Option<Self> {
        let field = |name| block.lines().find_map(|line| line.strip_prefix(name));
        let data = serde_json::from_str(field("data: ")?).unwrap();
        Some(Self { id: field("id: ")?.to_owned(), event: field("event: ")?.to_owned(), data })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_streamed_live_and_a_disconnected_client_resumes() {
    let server = Server::start(&[]).await;
    let mut follower = Follower::open(&server, "", None).await;
    let id = exhausted(&server, "tenant-abc").await;
    let first = follower.next().await.unwrap();
    let second = follower.next().await.unwrap();
    assert_eq!(
        (first.event.as_str(), second.event.as_str()),
        ("QUOTA_THRESHOLD_REACHED", "QUOTA_EXCEEDED")
    );
    let listed = list(&server, "").await;
    assert_eq!([&first.data, &second.data], [&listed["events"][0], &listed["events"][1]]);
    assert_eq!(second.id, listed["next"]);
    drop(follower);

    let mut again = Follower::open(&server, "after=999", Some(&first.id)).await;
    assert_eq!(again.next().await.unwrap().id, second.id);
    let mut filtered = Follower::open(&server, "event_type=QUOTA_EXCEEDED", None).await;
    assert_eq!(filtered.next().await.unwrap().data["quota_id"], id);
    for (query, last) in [("", Some("x")), ("after=-1", None), ("", Some("-1"))] {
        assert_eq!(Follower::request(&server, query, last).await.status(), 400);
    }
    assert_eq!(server.get(STREAM).await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_outlives_the_request_and_idle_timeouts() {
    // Short enough to wait for, long enough for requests of a busy machine.
    let keys = [("server.request_timeout_seconds", "5"), ("server.idle_timeout_seconds", "5")];
    let server = Server::start(&keys).await;
    let mut follower = Follower::open(&server, "", None).await;
    // An idle connection is closed at its timeout.
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let closed = timeout(PATIENCE, idle.read(&mut [0])).await.expect("in time");
    assert_eq!(closed.unwrap(), 0);
    exhausted(&server, "tenant-abc").await;
    assert_eq!(follower.next().await.unwrap().event, "QUOTA_THRESHOLD_REACHED");
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_end_at_shutdown_without_delaying_it() {
    let server = Server::start(&[("server.shutdown_timeout_seconds", "3600")]).await;
    let mut follower = Follower::open(&server, "", None).await;
    let stopped = timeout(PATIENCE, server.stop());
    let (drain, end) = tokio::join!(stopped, follower.next());
    assert_eq!(drain.expect("in time").unwrap(), Drain::Complete);
    assert!(end.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_token_cannot_hold_every_stream() {
    let tokens = r#"[
        {"name": "greedy", "role": "sys_auditor", "token": "greedy-token-0123456789"},
        {"name": "modest", "role": "sys_auditor", "token": "modest-token-0123456789"}
    ]"#;
    let server = Server::start(&[("auth.tokens", tokens)]).await;
    let follow =
        async |token: &str| Follower::send(&server, Request::get(STREAM), Some(token)).await;
    let mut open = Vec::new();
    for _ in 0..16 {
        let answer = follow("greedy-token-0123456789").await;
        assert_eq!(answer.status(), 200);
        open.push(answer);
    }
    let refused = follow("greedy-token-0123456789").await;
    assert_eq!(refused.status(), 429);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["error"]["code"], "SYS_QUOTA_TOO_MANY_STREAMS");
    let message = "too many event streams open; use GET /api/v1/events instead";
    assert_eq!(body["error"]["message"], message);
    assert_eq!(follow("modest-token-0123456789").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_are_bounded() {
    let server = Server::start(&[("auth.mode", "off")]).await;
    let mut open = Vec::new();
    for _ in 0..64 {
        open.push(Follower::open(&server, "", None).await);
    }
    let refused = Follower::request(&server, "", None).await;
    assert_eq!(refused.status(), 503);
    let body = refused.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["error"]["code"], "SYS_QUOTA_TOO_MANY_STREAMS");
    drop(open);
    let freed = async {
        while Follower::request(&server, "", None).await.status() != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, freed).await.expect("in time");
}
