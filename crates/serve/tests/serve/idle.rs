//! Connections that are idle or stalled are closed.

use std::time::Duration;

use bytes::Bytes;
use headgate_serve::{EndReason, Timeouts};
use http::Request;
use tokio::{io::AsyncReadExt as _, net::TcpStream, time};

use super::harness::{BOUNDS, LIMIT, Peer, Running, TIMEOUTS, ask, until};

const IDLE: Duration = Duration::from_millis(400);

async fn impatient() -> Running {
    Running::start(BOUNDS, Timeouts { idle: IDLE, ..TIMEOUTS }).await
}

#[tokio::test]
async fn a_peer_without_a_flow_control_window_is_closed() {
    let server = impatient().await;
    let mut peer = Peer::connect(server.address, 0).await;
    for _ in 0..50 {
        assert!(peer.ask("/large").await);
    }
    server.ended(EndReason::Stalled, 1).await;
    peer.ended().await;
    until("nothing is buffered", || server.connections.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn other_requests_do_not_keep_a_stalled_stream_alive() {
    let server = impatient().await;
    let mut peer = Peer::connect(server.address, 1_000).await;
    assert!(peer.ask("/large").await);
    let mut asked = 0;
    let asking = async {
        while peer.ask("/small").await {
            peer.answer().await.ok()?;
            asked += 1;
            time::sleep(IDLE / 10).await;
        }
        Some(())
    };
    time::timeout(LIMIT, asking).await.expect("the connection ends");
    assert!(asked > 0, "it was served meanwhile");
    assert_eq!(server.connections.ended(EndReason::Stalled), 1);
}

#[tokio::test]
async fn an_idle_http2_connection_gets_goaway_and_is_closed() {
    let server = impatient().await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/small").await);
    assert_eq!(peer.answer().await.unwrap().status(), 200);
    // A GOAWAY without an error is a graceful end.
    let end = time::timeout(LIMIT, peer.connection).await.expect("the connection ends").unwrap();
    assert!(end.is_ok(), "{end:?}");
}

#[tokio::test]
async fn a_cancelled_request_is_not_in_flight() {
    let server = impatient().await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/never").await);
    time::sleep(IDLE / 4).await;
    peer.responses.clear();
    peer.ended().await;
}

#[tokio::test]
async fn an_open_response_keeps_its_connection() {
    let server = impatient().await;
    let mut http2 = Peer::connect(server.address, 65_535).await;
    assert!(http2.ask("/endless").await);
    let mut body = http2.answer().await.unwrap().into_body();
    assert_eq!(body.data().await.unwrap().unwrap(), Bytes::from_static(b"first"));
    let mut http1 = TcpStream::connect(server.address).await.unwrap();
    ask(&mut http1, "/endless").await;
    let mut answer = vec![0; 1024];
    assert!(http1.read(&mut answer).await.unwrap() > 0);
    // Meanwhile another connection exceeds the idle timeout four times.
    for ended in 1..=4 {
        let _idle = TcpStream::connect(server.address).await.unwrap();
        server.ended(EndReason::Idle, ended).await;
    }
    assert!(!http2.connection.is_finished());
    assert!(http1.try_read(&mut answer).is_err(), "it is still open");
}

#[tokio::test]
async fn an_http1_peer_that_does_not_read_is_closed() {
    let server = impatient().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // More than fits into socket buffers.
    let asking = async {
        for _ in 0..1_000 {
            let request = b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n";
            if tokio::io::AsyncWriteExt::write_all(&mut stream, request).await.is_err() {
                return;
            }
        }
    };
    let _ = time::timeout(LIMIT, asking).await;
    server.ended(EndReason::Stalled, 1).await;
}

#[tokio::test]
async fn an_endless_request_is_counted_until_it_is_dropped() {
    let server = impatient().await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    let mut uploads = Vec::new();
    for _ in 0..20 {
        let request = Request::post("http://test/upload").body(()).unwrap();
        let (response, mut body) = peer.requests.send_request(request, false).unwrap();
        body.send_data(Bytes::from(vec![0; 20_000]), false).unwrap();
        uploads.push((response, body));
    }
    let counted = || server.connections.buffered_bytes() >= 300_000;
    until("the parts are counted", counted).await;
    drop(uploads);
    let forgotten = || server.connections.buffered_bytes() == 0;
    until("they are forgotten", forgotten).await;
}
