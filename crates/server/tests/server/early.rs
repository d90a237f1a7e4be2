//! Errors that are sent before the body of a request was read.

use std::{collections::BTreeMap, net::SocketAddr};

use futures_util::future::join_all;
use headgate_testkit::{Nginx, Skip, require};
use hyper::Request;

use crate::harness::{Server, exchange};

/// Requests of each kind.
const COUNT: usize = 50;

/// Number of responses by status.
type Statuses = BTreeMap<u16, usize>;

/// Sends uploads of this size through nginx, several at a time.
async fn upload(nginx: SocketAddr, path: &str, content_type: &str, bytes: usize) -> Statuses {
    let body = "x".repeat(bytes);
    let mut statuses = Statuses::new();
    for _ in 0..COUNT / 5 {
        let send = || {
            let request = Request::post(path).header("content-type", content_type);
            exchange(nginx, request, &body)
        };
        for reply in join_all((0..5).map(|_| send())).await {
            *statuses.entry(reply.status.as_u16()).or_default() += 1;
        }
    }
    statuses
}

/// Starts nginx in front of a server, with kept connections.
fn proxy(upstream: SocketAddr) -> Result<Nginx, Skip> {
    Nginx::start(|port| {
        format!(
            "client_max_body_size 10m;\nupstream headgate {{ server {upstream}; keepalive 8; }}\n\
             server {{\nlisten 127.0.0.1:{port};\nlocation / {{\nproxy_pass http://headgate;\n\
             proxy_http_version 1.1;\nproxy_set_header Connection \"\";\n}}\n}}\n"
        )
    })
}

#[tokio::test]
async fn refused_uploads_behind_nginx_are_never_502() {
    // A window that does not end while the uploads are sent.
    let once = [
        ("rate_limiter.fixed_window.max_requests", "1"),
        ("rate_limiter.fixed_window.window_size", "86400"),
    ];
    let server = Server::start(&once).await;
    let nginx = require!(proxy(server.address));
    let nginx = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    let keyed = "/api/v1/rate-limit/check?algorithm=FIXED_WINDOW&key=k";
    assert_eq!(server.post(keyed, "").await.status, 200);
    let json = "application/json";
    let cases = [
        ("/api/v1/ratelimit/rules", json, 50_000, 401),
        ("/api/v1/nowhere", json, 50_000, 404),
        (keyed, json, 50_000, 429),
        ("/api/v1/ratelimit/check", json, 100_000, 413),
        ("/api/v1/ratelimit/check", json, 1_000_000, 413),
        ("/api/v1/ratelimit/check", "text/plain", 50_000, 415),
    ];
    for (path, content_type, bytes, status) in cases {
        let statuses = upload(nginx, path, content_type, bytes).await;
        assert_eq!(statuses, Statuses::from([(status, COUNT)]), "{path}, {bytes} bytes");
    }
}

#[tokio::test]
async fn refused_grpc_uploads_behind_nginx_are_never_502() {
    let server = Server::start(&[]).await;
    let nginx = require!(proxy(server.grpc_address));
    let nginx = SocketAddr::from(([127, 0, 0, 1], nginx.port()));
    let check = "/k1s0.system.ratelimit.v1.RateLimitService/CheckRateLimit";
    let web = "application/grpc-web";
    // gRPC-Web says what went wrong in its own status. `xxxxx` is the head of a frame of 2 GB.
    let cases = [
        (check, "application/grpc", 50_000, 415),
        (check, "text/plain", 1_000_000, 415),
        ("/nowhere", web, 50_000, 200),
        (check, web, 50_000, 200),
        (check, web, 1_000_000, 200),
    ];
    for (path, content_type, bytes, status) in cases {
        let statuses = upload(nginx, path, content_type, bytes).await;
        assert_eq!(statuses, Statuses::from([(status, COUNT)]), "{path}, {bytes} bytes");
    }
}
