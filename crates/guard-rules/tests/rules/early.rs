//! Denials that are sent before the request body is read.

use std::net::SocketAddr;

use axum::{Router, routing::any};
use headgate_guard_rules::{Extractors, RuleLayer, RuleSet};
use headgate_testkit::{Nginx, Skip, require};
use tokio::net::TcpListener;

use crate::client::Client;

/// Size of an upload that ends in a 502 behind a proxy if it is not read.
const UPLOAD: usize = 50_000;

/// Starts a server whose rules deny every request after the first, and sends that one.
async fn start_denying() -> SocketAddr {
    let rules = RuleSet::in_memory();
    rules.replace("- {name: all, per: [service], limit: 1, window_seconds: 8640000}").unwrap();
    let layer = RuleLayer::new(&rules, Extractors::new().constant("service", "shop")).unwrap();
    let app: Router = Router::new().fallback(any(async || "hello")).layer(layer);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let first = move || Client::connect(address).upload(0).status();
    assert_eq!(tokio::task::spawn_blocking(first).await.unwrap(), 200);
    address
}

/// Statuses of uploads through nginx, one after the other.
fn upload_through_nginx(upstream: SocketAddr, count: usize) -> Result<Vec<u16>, Skip> {
    let nginx = Nginx::start(|port| {
        format!(
            "upstream guarded {{ server {upstream}; keepalive 8; }}\n\
             server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass http://guarded;\n\
             proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n\
             proxy_request_buffering off;\n}}\n}}\n"
        )
    })?;
    let address = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    Ok((0..count).map(|_| Client::connect(address).upload(UPLOAD).status()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_upload_keeps_its_connection() {
    let address = start_denying().await;
    let talk = move || {
        let mut client = Client::connect(address);
        for _ in 0..3 {
            let answer = client.upload(UPLOAD);
            assert_eq!((answer.status(), answer.header("connection")), (429, ""), "{answer:?}");
        }
    };
    tokio::task::spawn_blocking(talk).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_is_denied_at_once_with_connection_close() {
    let address = start_denying().await;
    // Far more than fits into socket buffers: if the server did not read it, writing would block or
    // the connection would be reset.
    let talk = move || Client::connect(address).upload_part(100 << 20, 900_000);
    let answer = tokio::task::spawn_blocking(talk).await.unwrap();
    assert_eq!((answer.status(), answer.header("connection")), (429, "close"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_uploads_behind_nginx_are_429_and_never_502() {
    let address = start_denying().await;
    let statuses = tokio::task::spawn_blocking(move || upload_through_nginx(address, 100));
    let statuses = require!(statuses.await.unwrap());
    assert_eq!(statuses, [429; 100]);
}
