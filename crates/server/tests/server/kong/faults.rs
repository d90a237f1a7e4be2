//! Failures of Headgate: `fault_tolerant` decides, without delay.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use headgate_testkit::{free_port, require};
use hyper::body::Bytes;
use prost::Message as _;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::{Instant, interval},
};

use super::gateway::{Gateway, headers};
use crate::{grpc::client::CheckRateLimitResponse, harness::Server};

const TOLERANT: &str = "timeout = 300";
const STRICT: &str = "fault_tolerant = false";
const HASTY: &str = "timeout = 300, fault_tolerant = false";

/// Less than without a timeout: nginx itself waits for a minute.
const SOON: Duration = Duration::from_secs(45);

#[tokio::test]
async fn fail_open_admits_while_the_server_is_down() {
    let address = (Ipv4Addr::LOCALHOST, free_port()).into();
    let gateway = require!(Gateway::start(address, TOLERANT).await);
    let reply = gateway.get(&[]).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, "upstream"));
    assert_eq!(headers(&reply)[1], "");
    let log = gateway.log();
    assert!(
        log.contains("failed to check the rate limit: cannot connect: connection refused"),
        "{log}"
    );
}

#[tokio::test]
async fn fail_closed_denies_while_the_server_is_down() {
    let address = (Ipv4Addr::LOCALHOST, free_port()).into();
    let gateway = require!(Gateway::start(address, STRICT).await);
    let reply = gateway.get(&[]).await;
    assert_eq!(reply.status, 503);
    assert_eq!(reply.json(), json!({ "message": "The rate limit cannot be checked" }));
    assert_eq!(headers(&reply), ["", "", "", ""]);
}

#[tokio::test]
async fn a_server_that_stops_is_a_fault() {
    let server = Server::start(&[]).await;
    let gateway = require!(Gateway::start(server.grpc_address, STRICT).await);
    assert_eq!(gateway.get(&[]).await.status, 200);
    server.stop().await.unwrap();
    assert_eq!(gateway.get(&[]).await.status, 503);
}

/// Starts a server that answers each connection with these bytes, and nothing more.
async fn listen_and_say(words: impl Into<Bytes>) -> SocketAddr {
    let words = words.into();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let words = words.clone();
            tokio::spawn(async move {
                let mut heard = [0; 4096];
                let _ = stream.read(&mut heard).await;
                let _ = stream.write_all(&words).await;
                // Keep the connection open until the client closes it.
                let _ = stream.read(&mut heard).await;
            });
        }
    });
    address
}

/// Starts a server that answers one request per connection, and closes at the next.
async fn answer_once_each() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut heard = [0; 4096];
                let _ = stream.read(&mut heard).await;
                let answer = "HTTP/1.1 200 OK\r\ngrpc-status: 0\r\ncontent-length: 7\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.write_all(b"\0\0\0\0\x02\x08\x01").await;
                let _ = stream.read(&mut heard).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_pooled_connection_that_was_closed_fails_no_request() {
    let gateway = require!(Gateway::start(answer_once_each().await, STRICT).await);
    for _ in 0..6 {
        assert_eq!(gateway.get(&[]).await.status, 200, "{}", gateway.log());
    }
}

#[tokio::test]
async fn a_silent_server_is_not_waited_for() {
    let beginnings: [&[u8]; 4] = [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n",
    ];
    for words in beginnings {
        let gateway = require!(Gateway::start(listen_and_say(words).await, HASTY).await);
        let asked = Instant::now();
        assert_eq!(gateway.get(&[]).await.status, 503, "{words:?}");
        let took = asked.elapsed();
        assert!((Duration::from_millis(250)..SOON).contains(&took), "{took:?} for {words:?}");
        assert!(
            gateway.log().contains("failed to check the rate limit: timeout"),
            "{}",
            gateway.log()
        );
    }
}

#[tokio::test]
async fn a_server_that_never_finishes_is_not_waited_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Each byte arrives in time, the last one never.
        let mut drip = interval(Duration::from_millis(20));
        while stream.write_all(b"H").await.is_ok() {
            drip.tick().await;
        }
    });
    let gateway = require!(Gateway::start(address, HASTY).await);
    let asked = Instant::now();
    assert_eq!(gateway.get(&[]).await.status, 503);
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
}

#[tokio::test]
async fn varints_of_any_size_and_unknown_fields_are_accepted() {
    let answer = CheckRateLimitResponse {
        allowed: true,
        remaining: 4_294_967_295,
        reset_at: 9_007_199_254_740_991,
        limit: 1 << 40,
        rule_id: "x".repeat(300),
        ..CheckRateLimitResponse::default()
    };
    let mut message = answer.encode_to_vec();
    // Unknown fields: 20 as 64 bits, 21 as 32 bits, 22 as a varint, 23 as bytes.
    message.extend(b"\xa1\x01abcdefgh\xad\x01abcd\xb0\x01\xff\xff\x03\xba\x01\x02hi");
    let mut words = format!(
        "HTTP/1.1 200 OK\r\nGrpc-Status: 0\r\nContent-Length: {}\r\n\r\n\0",
        message.len() + 5
    )
    .into_bytes();
    words.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    words.extend(message);
    let gateway = require!(Gateway::start(listen_and_say(words).await, STRICT).await);
    let reply = gateway.get(&[]).await;
    assert_eq!(reply.status, 200, "{}", gateway.log());
    let expected = ["1099511627776", "4294967295", "9007199254740991", ""];
    assert_eq!(headers(&reply), expected);
}

#[tokio::test]
async fn an_invalid_response_is_a_fault() {
    let answers: [(&[u8], &str); 7] = [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "response is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "invalid header in response"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n",
            "without a length, or longer than",
        ),
        (b"HTTP/1.1 415 No\r\ncontent-length: 4\r\n\r\na\nb\n", "status 415: a b"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "grpc-status missing"),
        (b"HTTP/1.1 200 OK\r\ngrpc-status: 0\r\ncontent-length: 0\r\n\r\n", "empty response"),
        (
            b"HTTP/1.1 200 OK\r\ngrpc-status: 0\r\ncontent-length: 7\r\n\r\n\0\0\0\0\x02\x22\x7f",
            "invalid response message",
        ),
    ];
    for (answer, expected) in answers {
        let gateway = require!(Gateway::start(listen_and_say(answer).await, STRICT).await);
        assert_eq!(gateway.get(&[]).await.status, 503, "{expected}");
        assert!(gateway.log().contains(expected), "{expected}: {}", gateway.log());
    }
}

#[tokio::test]
async fn an_error_response_of_the_server_is_logged_as_a_fault() {
    let server = Server::start(&[]).await;
    let conf = "fault_tolerant = false, rule_id = \"00000000-0000-4000-8000-000000000000\"";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    assert_eq!(gateway.get(&[]).await.status, 503);
    assert!(gateway.log().contains("grpc-status 5: rule not found"), "{}", gateway.log());
}

#[tokio::test]
async fn tokens_and_ids_cannot_inject_headers() {
    let server = Server::start(&[]).await;
    let token = "fault_tolerant = false, token = \"abc\"";
    let gateway = require!(Gateway::start(server.grpc_address, token).await);
    assert_eq!(gateway.get(&[("x-request-id", "a b\tc")]).await.status, 200);
    let long = "x".repeat(4000);
    assert_eq!(gateway.get(&[("x-request-id", &long)]).await.status, 200);
    let smuggled = "{ token = \"abc\\r\\nevil: 1\" }";
    assert_eq!(gateway.judge(smuggled).await, "token: invalid value");
}
