//! Responses that are sent before the request body is read.

use std::net::SocketAddr;

use headgate_testkit::{Nginx, Skip, require};
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, body::Bytes, client::conn::http1, http::request::Builder};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use super::harness::Server;

/// Size of an upload that ends in a 502 behind a proxy if it is not drained.
const UPLOAD: usize = 50_000;

/// Uploads through the proxy.
const COUNT: usize = 100;

const PATH: &str = "/v1/auth/challenge";

/// A request from the one address that is limited.
fn from_one(request: Builder) -> Builder {
    request.header("x-forwarded-for", "198.51.100.1").header("content-type", "application/json")
}

/// Sends requests until they are limited; the clock stands still.
async fn limit(server: &Server) {
    let request = json!({"pubkey": "ab"}).to_string();
    while server.send(from_one(Request::post(PATH)), &request).await.status != 429 {}
}

async fn proxy_of(upstream: SocketAddr) -> Result<Nginx, Skip> {
    let start = move || {
        Nginx::start(|port| {
            format!(
                "upstream node {{ server {upstream}; keepalive 8; }}\n\
                 server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass http://node;\n\
                 proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n}}\n}}\n"
            )
        })
    };
    tokio::task::spawn_blocking(start).await.unwrap()
}

#[tokio::test]
async fn rate_limited_uploads_behind_nginx_are_429_and_never_502() {
    let server = Server::start().await;
    let nginx = require!(proxy_of(server.address).await);
    let proxy = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    limit(&server).await;
    let upload = "x".repeat(UPLOAD);
    for n in 0..COUNT {
        let reply = Server::send_to(proxy, from_one(Request::post(PATH)), &upload).await;
        assert_eq!(reply.status, 429, "upload {n}: {}", reply.text);
        reply.is_limited();
    }
}

#[tokio::test]
async fn a_rate_limited_upload_keeps_its_connection() {
    let server = Server::start().await;
    limit(&server).await;
    upload_thrice(&server, PATH, 429).await;
}

#[tokio::test]
async fn an_upload_without_a_token_keeps_its_connection() {
    let server = Server::start().await;
    upload_thrice(&server, "/v1/reports", 401).await;
}

/// Uploads on one connection, which are refused with `status`.
async fn upload_thrice(server: &Server, path: &str, status: u16) {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        sender.ready().await.expect("the connection is kept");
        let body = Full::new(Bytes::from("x".repeat(4 * UPLOAD)));
        let request = from_one(Request::post(path)).header("host", "test").body(body).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status);
        response.into_body().collect().await.unwrap();
    }
}
