//! Connections at shutdown: requests in flight are answered, up to a timeout.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_server::Drain;
use hyper::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::harness::{CHECK, Server, exchange};

const BODY: &str = r#"{"scope":"user","identifier":"u1"}"#;

/// A request of which the server has the head and waits for the body.
async fn in_flight(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "POST {CHECK} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {}\r\nexpect: 100-continue\r\n\r\n",
        BODY.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server sends `100 Continue` when the handler reads the body.
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test]
async fn a_request_in_flight_is_answered() {
    let server = Server::start(&[("server.shutdown_timeout_seconds", "3600")]).await;
    let address = server.address;
    let mut request = in_flight(&server).await;
    let running = server.stop();
    // New connections are refused.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!running.is_finished());

    request.write_all(BODY.as_bytes()).await.unwrap();
    let mut answer = String::new();
    request.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#""allowed":true"#), "{answer}");
    assert_eq!(running.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn readiness_fails_first_and_requests_are_served_during_the_delay() {
    let server = Server::start(&[("server.shutdown_delay_seconds", "3600")]).await;
    let (address, grpc) = (server.address, server.grpc_address);
    let ready = async || exchange(address, Request::get("/readyz"), "").await;
    assert_eq!(ready().await.status, 200);
    let running = server.stop();
    let not_ready = async {
        loop {
            let reply = ready().await;
            if reply.status == 503 {
                return reply;
            }
        }
    };
    let reply = timeout(Duration::from_secs(60), not_ready).await.expect("it is not ready");
    assert_eq!(reply.json()["status"], "stopping");
    let check = Request::post(CHECK).header("content-type", "application/json");
    let answer = exchange(address, check, BODY).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("connection"), "");
    TcpStream::connect(grpc).await.unwrap();
    running.abort();
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let server = Server::start(&[]).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut answer = [0; 15];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200 OK");
    assert_eq!(server.stop().await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_unfinished_request_is_cut_off() {
    let server = Server::start(&[("server.shutdown_timeout_seconds", "0")]).await;
    let mut request = in_flight(&server).await;
    assert_eq!(server.stop().await.unwrap(), Drain::CutOff(1));
    assert!(matches!(request.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let server = Server::start(&[("server.idle_timeout_seconds", "1")]).await;
    // Nothing, the start of an HTTP/2 preface, half a head, and an idle connection after a
    // response.
    let beginnings: [&[u8]; 4] =
        [b"", b"PRI", b"POST / HTTP/1.1\r\nho", b"GET /healthz HTTP/1.1\r\nhost: test\r\n\r\n"];
    let ended = beginnings.map(async |beginning| {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // A connection that is closed before it is written to, or read from, is reset.
        let _ = stream.write_all(beginning).await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    join_all(ended).await;
}
