//! Responses that are sent before the request body is read.

use std::net::SocketAddr;

use headgate_testkit::{Nginx, Skip, require};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::harness::{Server, send};

/// Size of an upload that is refused by its length, and ends in a 502 behind a proxy if it is not
/// drained.
const UPLOAD: usize = 50_000;

/// Uploads through the proxy.
const COUNT: usize = 100;

async fn proxy_of(upstream: SocketAddr) -> Result<Nginx, Skip> {
    let start = move || {
        Nginx::start(|port| {
            format!(
                "upstream posts {{ server {upstream}; keepalive 8; }}\n\
                 server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass http://posts;\n\
                 proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n}}\n}}\n"
            )
        })
    };
    tokio::task::spawn_blocking(start).await.expect("no panic")
}

#[tokio::test]
async fn uploads_that_are_too_large_behind_nginx_are_413_and_never_502() {
    let server = Server::embedded().await;
    let nginx = require!(proxy_of(server.address).await);
    let proxy = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    let upload = "x".repeat(UPLOAD);
    for n in 0..COUNT {
        let request = Request::post("/api/posts").header("content-type", "application/json");
        let reply = send(proxy, request, &upload).await.expect("a response");
        assert_eq!(reply.status, 413, "upload {n}: {}", reply.text);
    }
    // Nothing of that counts as a post.
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
}

#[tokio::test]
async fn an_upload_that_is_too_large_keeps_its_connection() {
    let server = Server::embedded().await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        sender.ready().await.expect("the connection is kept");
        let body = Full::new(Bytes::from("x".repeat(4 * UPLOAD)));
        let request = Request::post("/api/posts").header("host", "test").body(body).unwrap();
        let response = sender.send_request(request).await.expect("a response");
        assert_eq!(response.status(), 413);
        response.into_body().collect().await.expect("a whole response");
    }
}
