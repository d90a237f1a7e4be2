//! Bounds on slow peers.

use std::{pin::pin, time::Duration};

use bytes::Bytes;
use headgate_serve::{Bounds, EndReason, Timeouts};
use http::Request;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, time};

use super::harness::{BOUNDS, LARGE, LIMIT, Peer, Running, TIMEOUTS, read, until};

const MEGABYTE: usize = 1024 * 1024;

#[tokio::test]
async fn buffers_of_peers_that_do_not_read_are_bounded() {
    let bounds = Bounds { max_buffered_bytes: 4 * MEGABYTE, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let mut peers = Vec::new();
    let mut most = 0;
    for _ in 0..20 {
        let mut peer = Peer::connect(server.address, 0).await;
        for _ in 0..100 {
            peer.ask("/large").await;
            most = most.max(server.connections.buffered_bytes());
        }
        peers.push(peer);
        assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));
    }
    // Together they request 250 MB.
    until("answers are refused", || server.connections.refused() > 0).await;
    let streams = 20 * 100 * 4 * 1024;
    assert!(most <= 6 * MEGABYTE + streams, "{most}");
}

#[tokio::test]
async fn readers_get_the_buffers_of_stalled_peers() {
    let bounds = Bounds { max_buffered_bytes: MEGABYTE, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let mut stalled = Vec::new();
    // One response per connection, which may exceed the bound: 2.5 MB are requested, 1.25 MB
    // admitted.
    for _ in 0..20 {
        let mut peer = Peer::connect(server.address, 0).await;
        peer.ask("/large").await;
        stalled.push(peer);
    }
    until("there is no room left", || server.connections.refused() > 0).await;
    let reading = async {
        loop {
            let mut peer = Peer::connect(server.address, 65_535).await;
            assert!(peer.ask("/large").await);
            if let Ok(answer) = peer.answer().await {
                return read(answer.into_body()).await;
            }
            // A connection counts as stalled after a second.
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    let read = time::timeout(LIMIT, reading).await.expect("an honest reader gets its answer");
    assert_eq!(read, LARGE);
    assert!(server.connections.ended(EndReason::Pressure) > 0);
}

#[tokio::test]
async fn an_http2_peer_over_its_share_gets_enhance_your_calm() {
    let bounds = Bounds { max_buffered_bytes: MEGABYTE, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let mut peer = Peer::connect(server.address, 0).await;
    for _ in 0..10 {
        assert!(peer.ask("/large").await);
    }
    let error = peer.answer().await.expect_err("nine answers wait before this one");
    assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn heads_of_requests_that_never_end_are_bounded() {
    let bounds = Bounds { max_buffered_bytes: MEGABYTE, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    // Each has 10 KB of headers.
    for _ in 0..200 {
        assert!(peer.ask_with("/never", &"x".repeat(10_000)).await);
    }
    let error = peer.answer().await.expect_err("too many are in flight");
    assert_eq!(error.reason(), Some(h2::Reason::ENHANCE_YOUR_CALM));
    assert!(server.connections.buffered_bytes() < MEGABYTE);
    assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));

    // Cancelled, they hold nothing.
    peer.responses.clear();
    until("nothing is buffered", || server.connections.buffered_bytes() == 0).await;
    for _ in 0..200 {
        assert!(peer.ask_with("/small", &"x".repeat(10_000)).await);
        assert_eq!(peer.answer().await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn a_response_larger_than_all_bounds_is_sent_to_a_reader() {
    let bounds = Bounds { max_buffered_bytes: LARGE / 2, ..BOUNDS };
    let server = Running::start(bounds, TIMEOUTS).await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/large").await);
    let answer = peer.answer().await.unwrap();
    assert_eq!(read(answer.into_body()).await, LARGE);
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_a_new_one() {
    let server = Running::start(Bounds { max_connections: 3, ..BOUNDS }, TIMEOUTS).await;
    let mut busy = Peer::connect(server.address, 65_535).await;
    assert!(busy.ask("/endless").await);
    assert_eq!(busy.answer().await.unwrap().status(), 200);
    let _idle = (
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    );
    until("all places are taken", || server.connections.open() == 3).await;
    for _ in 0..5 {
        assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));
    }
    assert!(server.connections.ended(EndReason::Crowded) > 0);
    assert!(!busy.connection.is_finished());
}

#[tokio::test]
async fn a_connection_with_quiet_streams_makes_room_if_none_is_idle() {
    let timeouts = Timeouts { idle: Duration::from_millis(400), ..TIMEOUTS };
    let server = Running::start(Bounds { max_connections: 3, ..BOUNDS }, timeouts).await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Peer::connect(server.address, 65_535).await;
        assert!(peer.ask("/endless").await);
        let mut body = peer.answer().await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), Bytes::from_static(b"first"));
        peers.push((peer, body));
    }
    assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.connections.ended(EndReason::Crowded), 1);
    let is_open = |(peer, _): &&(Peer, _)| !peer.connection.is_finished();
    until("one connection is closed", || peers.iter().filter(is_open).count() == 2).await;
}

#[tokio::test]
async fn a_connection_that_becomes_idle_makes_room_for_one_that_waits() {
    let server = single().await;
    let mut first = Peer::connect(server.address, 65_535).await;
    assert!(first.ask("/endless").await);
    let body = first.answer().await.unwrap().into_body();
    let waiting = server.get("/small");
    let mut waiting = pin!(waiting);
    // No connection is idle yet.
    time::timeout(Duration::from_millis(200), &mut waiting).await.unwrap_err();
    assert!(!first.connection.is_finished());
    // The first connection stays open, without a request.
    drop(body);
    assert!(waiting.await.starts_with("HTTP/1.1 200"));
    server.ended(EndReason::Crowded, 1).await;
}

/// A server with a place for one connection.
async fn single() -> Running {
    Running::start(Bounds { max_connections: 1, ..BOUNDS }, TIMEOUTS).await
}

/// Waits until another client is served by a server with a single place, which a peer holds.
async fn served_by_single(server: &Running) {
    until("the only place is taken", || server.connections.open() == 1).await;
    assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.connections.ended(EndReason::Crowded), 1);
}

#[tokio::test]
async fn a_request_without_its_body_makes_room() {
    let server = single().await;
    let mut http1 = TcpStream::connect(server.address).await.unwrap();
    let head = b"POST /upload HTTP/1.1\r\nhost: test\r\ncontent-length: 2\r\n\r\na";
    http1.write_all(head).await.unwrap();
    served_by_single(&server).await;

    let server = single().await;
    let mut http2 = Peer::connect(server.address, 65_535).await;
    let request = Request::post("http://test/upload").body(()).unwrap();
    let _incomplete = http2.requests.send_request(request, false).unwrap();
    served_by_single(&server).await;
    http2.ended().await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_makes_room() {
    let server = single().await;
    let mut http1 = TcpStream::connect(server.address).await.unwrap();
    // More than fits into socket buffers.
    let asking = tokio::spawn(async move {
        while http1.write_all(b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n").await.is_ok() {}
    });
    served_by_single(&server).await;
    time::timeout(LIMIT, asking).await.expect("the connection ends").unwrap();

    let server = single().await;
    let mut http2 = Peer::connect(server.address, 0).await;
    assert!(http2.ask("/large").await);
    served_by_single(&server).await;
    http2.ended().await;
}

#[tokio::test]
async fn rapidly_cancelled_requests_leak_nothing() {
    let server = Running::start(BOUNDS, Timeouts { idle: LIMIT, ..TIMEOUTS }).await;
    let mut peer = Peer::connect(server.address, 0).await;
    for _ in 0..5_000 {
        if !peer.ask("/large").await {
            break;
        }
        // Dropping a response cancels its stream.
        peer.responses.clear();
    }
    until("nothing is buffered", || server.connections.buffered_bytes() == 0).await;
    assert!(server.get("/small").await.starts_with("HTTP/1.1 200"));
}
