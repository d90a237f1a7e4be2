//! Responses that are sent before the request body is read.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use axum::{Router, routing::post};
use headgate_guard::DrainLayer;
use headgate_testkit::{Nginx, Skip, require};
use http::StatusCode;

use crate::support::{Server, guard, hello};

/// Size of an upload that used to end in a 502 behind a proxy.
const UPLOAD: usize = 50_000;

/// Timeout of a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client on one connection.
struct Client(TcpStream);

/// The head of a response, whose body was read and discarded.
#[derive(Debug)]
struct Answer(String);

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn send_head(&mut self, length: usize, more: &str) {
        self.0.write_all(&head(length, more)).unwrap();
    }

    fn send(&mut self, bytes: usize) -> std::io::Result<()> {
        self.0.write_all(&vec![b'x'; bytes])
    }

    fn receive(&mut self) -> Answer {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let answer = Answer(String::from_utf8(head).unwrap().to_lowercase());
        let mut body = vec![0; answer.header("content-length").parse().unwrap()];
        self.0.read_exact(&mut body).unwrap();
        answer
    }

    fn upload(&mut self) -> Answer {
        // In one write: the server waits for the body for two seconds, and a busy machine may not
        // run this thread again for as long.
        let request = [head(UPLOAD, ""), vec![b'x'; UPLOAD]].concat();
        self.0.write_all(&request).unwrap();
        self.receive()
    }
}

/// Head of a request with a body of `length` bytes.
fn head(length: usize, more: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nhost: guarded\r\ncontent-length: {length}\r\n{more}\r\n").into()
}

impl Answer {
    fn status(&self) -> u16 {
        self.0.split(' ').nth(1).unwrap().parse().unwrap()
    }

    fn header(&self, name: &str) -> &str {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

/// Statuses of `count` uploads through nginx, several at a time.
fn upload_through_nginx(upstream: SocketAddr, count: usize) -> Result<Vec<u16>, Skip> {
    const THREADS: usize = 4;
    let nginx = Nginx::start(|port| {
        format!(
            "upstream guarded {{ server {upstream}; keepalive 8; }}\n\
             server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass http://guarded;\n\
             proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n}}\n}}\n"
        )
    })?;
    let address = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    let statuses = thread::scope(|scope| {
        let threads = [(); THREADS].map(|()| {
            scope.spawn(|| {
                let upload = |_| Client::connect(address).upload().status();
                (0..count / THREADS).map(upload).collect::<Vec<u16>>()
            })
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    Ok(statuses)
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_uploads_behind_nginx_are_429_and_never_502() {
    let server = Server::behind(&guard(1)).await;
    assert_eq!(server.status("/").await, 200);
    let address = server.address;
    let statuses = tokio::task::spawn_blocking(move || upload_through_nginx(address, 200));
    let statuses = require!(statuses.await.unwrap());
    assert_eq!(statuses, [429; 200]);
}

#[tokio::test(flavor = "multi_thread")]
async fn early_responses_of_a_drained_router_behind_nginx_are_never_502() {
    let router =
        Router::new().route("/", post(async || StatusCode::UNAUTHORIZED)).layer(DrainLayer);
    let server = Server::start(router).await;
    let address = server.address;
    let statuses = tokio::task::spawn_blocking(move || upload_through_nginx(address, 200));
    let statuses = require!(statuses.await.unwrap());
    assert_eq!(statuses, [401; 200]);
}

/// Runs `talk` with a client of a server that refuses every request.
async fn with_refused(talk: impl FnOnce(Client) + Send + 'static) {
    let server = Server::behind(&guard(1)).await;
    assert_eq!(server.status("/").await, 200);
    let address = server.address;
    tokio::task::spawn_blocking(move || talk(Client::connect(address))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_upload_keeps_its_connection() {
    with_refused(|mut client| {
        for _ in 0..3 {
            let answer = client.upload();
            assert_eq!((answer.status(), answer.header("connection")), (429, ""), "{answer:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_is_refused_at_once_with_connection_close() {
    with_refused(|mut client| {
        client.send_head(100 << 20, "");
        // Far more than fits into socket buffers: if the server did not read it, writing would
        // block or the connection would be reset.
        client.send(900_000).unwrap();
        let answer = client.receive();
        assert_eq!((answer.status(), answer.header("connection")), (429, "close"), "{answer:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunked_upload_without_end_is_cut_off() {
    with_refused(|mut client| {
        let head = "POST / HTTP/1.1\r\nhost: guarded\r\ntransfer-encoding: chunked\r\n\r\n";
        client.0.write_all(head.as_bytes()).unwrap();
        let chunk = [&b"4000\r\n"[..], &[b'x'; 0x4000], b"\r\n"].concat();
        // More than is read before the response, less than is read after it.
        for _ in 0..40 {
            client.0.write_all(&chunk).unwrap();
        }
        let answer = client.receive();
        assert_eq!((answer.status(), answer.header("connection")), (429, "close"), "{answer:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_expects_100_continue_does_not_get_it() {
    with_refused(|mut client| {
        client.send_head(UPLOAD, "expect: 100-continue\r\n");
        let answer = client.receive();
        assert_eq!((answer.status(), answer.header("connection")), (429, "close"), "{answer:?}");
        let mut rest = Vec::new();
        client.0.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "the connection closes, and nothing follows");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stalls_gets_a_response() {
    with_refused(|mut client| {
        client.send_head(UPLOAD, "");
        client.send(100).unwrap();
        let answer = client.receive();
        assert_eq!((answer.status(), answer.header("connection")), (429, "close"), "{answer:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_drain_layer_does_not_change_bodies() {
    let echo = post(async |body: axum::body::Bytes| body.len().to_string());
    let server = Server::start(Router::new().route("/", echo).merge(hello()).layer(DrainLayer));
    let server = server.await;
    let address = server.address;
    let talk = move || {
        let mut client = Client::connect(address);
        for _ in 0..3 {
            let answer = client.upload();
            assert_eq!((answer.status(), answer.header("connection")), (200, ""), "{answer:?}");
        }
    };
    tokio::task::spawn_blocking(talk).await.unwrap();
}
