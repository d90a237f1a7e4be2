//! Shutdown without lost requests.

use std::time::Duration;

use headgate_serve::{Bounds, Drain, Timeouts};
use tokio::{io::AsyncReadExt as _, net::TcpStream, time};

use super::{
    frames::{Frame, FramePeer},
    harness::{self, BOUNDS, LARGE, LIMIT, Peer, Running, TIMEOUTS, ask},
};

/// Reads one response.
async fn read(stream: &mut TcpStream) -> String {
    let mut answer = String::new();
    let mut part = vec![0; 1024];
    while !answer.ends_with("small") {
        let read = time::timeout(LIMIT, stream.read(&mut part)).await.unwrap().unwrap();
        assert!(read > 0, "it was closed after {answer:?}");
        answer += str::from_utf8(&part[..read]).unwrap();
    }
    answer
}

#[tokio::test]
async fn an_idle_connection_is_served_during_the_grace_period() {
    let server = Running::start(BOUNDS, TIMEOUTS).await;
    let address = server.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    ask(&mut stream, "/small").await;
    assert!(!read(&mut stream).await.contains("connection: close"));
    let stopping = server.stop();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    ask(&mut stream, "/small").await;
    let answer = read(&mut stream).await;
    assert!(answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn queued_connections_are_served_on_shutdown() {
    let server = Running::start(BOUNDS, TIMEOUTS).await;
    let mut streams = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        ask(&mut stream, "/small").await;
        streams.push(stream);
    }
    let stopping = server.stop();
    for mut stream in streams {
        read(&mut stream).await;
    }
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_http2_peer_gets_goaway_and_its_responses() {
    let server = Running::start(BOUNDS, TIMEOUTS).await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/large").await);
    let answer = peer.answer().await.unwrap();
    let stopping = server.stop();
    assert_eq!(harness::read(answer.into_body()).await, LARGE);
    let end = time::timeout(LIMIT, peer.connection).await.expect("the connection ends").unwrap();
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_http2_peer_gets_goaway_with_a_response_and_requests_in_transit_are_served() {
    let server = Running::start(BOUNDS, TIMEOUTS).await;
    let address = server.address;
    let mut peer = FramePeer::connect(address).await;
    peer.ask(1, "/small").await;
    assert_eq!(peer.next().await, Frame::Headers(1));
    assert_eq!(peer.next().await, Frame::End(1));
    let stopping = server.stop();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    // The connection is idle: the GOAWAY waits for the next request, and precedes its response.
    peer.ask(3, "/small").await;
    assert_eq!(peer.next().await, Frame::GoAway(u32::MAX >> 1), "one that refuses no request");
    let Frame::Ping(ping) = peer.next().await else { panic!("no PING after the GOAWAY") };
    assert_eq!(peer.next().await, Frame::Headers(3));
    assert_eq!(peer.next().await, Frame::End(3));
    // Sent before the peer has seen the GOAWAY.
    peer.ask(5, "/small").await;
    assert_eq!(peer.next().await, Frame::Headers(5));
    assert_eq!(peer.next().await, Frame::End(5));
    peer.pong(ping).await;
    assert_eq!(peer.next().await, Frame::GoAway(5));
    assert_eq!(peer.next().await, Frame::Eof);
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_idle_http2_connection_gets_goaway_after_the_grace_period() {
    let grace = Duration::from_millis(200);
    let server = Running::start(BOUNDS, Timeouts { grace, ..TIMEOUTS }).await;
    let mut peer = FramePeer::connect(server.address).await;
    peer.ask(1, "/small").await;
    assert_eq!(peer.next().await, Frame::Headers(1));
    assert_eq!(peer.next().await, Frame::End(1));
    let stopping = server.stop();
    assert_eq!(peer.next().await, Frame::GoAway(u32::MAX >> 1));
    let Frame::Ping(ping) = peer.next().await else { panic!("no PING after the GOAWAY") };
    peer.ask(3, "/small").await;
    assert_eq!(peer.next().await, Frame::Headers(3));
    assert_eq!(peer.next().await, Frame::End(3));
    peer.pong(ping).await;
    assert_eq!(peer.next().await, Frame::GoAway(3));
    assert_eq!(peer.next().await, Frame::Eof);
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_the_grace_period() {
    let grace = Duration::from_millis(200);
    let server = Running::start(BOUNDS, Timeouts { grace, ..TIMEOUTS }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    ask(&mut stream, "/small").await;
    read(&mut stream).await;
    assert_eq!(server.stop().await.unwrap(), Drain::Complete);
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_request_without_a_response_is_cut_off() {
    let timeouts = Timeouts { grace: Duration::ZERO, drain: Duration::ZERO, ..TIMEOUTS };
    let server = Running::start(BOUNDS, timeouts).await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/never").await);
    harness::until("it is connected", || server.connections.open() == 1).await;
    assert_eq!(server.stop().await.unwrap(), Drain::CutOff(1));
}

#[tokio::test]
async fn a_server_without_a_free_slot_stops() {
    let bounds = Bounds { max_connections: 1, ..BOUNDS };
    let timeouts = Timeouts { grace: Duration::ZERO, drain: Duration::ZERO, ..TIMEOUTS };
    let server = Running::start(bounds, timeouts).await;
    let mut peer = Peer::connect(server.address, 65_535).await;
    assert!(peer.ask("/endless").await);
    // Kept: dropping the response cancels the request.
    let answer = peer.answer().await.unwrap();
    assert_eq!(answer.status(), 200);
    let _waiting = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(server.stop().await.unwrap(), Drain::CutOff(1));
}
