//! Responses that are sent before the request body is read.

use std::net::SocketAddr;

use headgate_testkit::{Nginx, Skip, require};
use hyper::Request;
use serde_json::json;

use super::harness::Server;

/// Size of an upload that ends in a 502 behind a proxy if it is not drained.
const UPLOAD: usize = 50_000;

/// Uploads through the proxy.
const COUNT: usize = 100;

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
    let from = |request: hyper::http::request::Builder| {
        request.header("x-forwarded-for", "198.51.100.1").header("content-type", "application/json")
    };
    let path = "/v1/auth/challenge";
    let first = json!({"pubkey": "ab"}).to_string();
    while server.send(from(Request::post(path)), &first).await.status != 429 {}
    let upload = "x".repeat(UPLOAD);
    for n in 0..COUNT {
        let reply = Server::send_to(proxy, from(Request::post(path)), &upload).await;
        assert_eq!(reply.status, 429, "upload {n}: {}", reply.text);
        reply.is_limited();
    }
}
