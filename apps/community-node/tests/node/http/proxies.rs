//! The client's address behind proxies.

use hyper::{Request, http::request::Builder};
use serde_json::json;

use super::harness::Server;

const HINT: &str = "/v1/bootstrap/hints/latest";

#[tokio::test]
async fn fifty_clients_behind_a_trusted_proxy_have_fifty_budgets() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 2}})).await;
    for client in 1..=50 {
        let address = format!("198.51.100.{client}");
        // The client's own header is to the left of what the proxy appended.
        for pretended in ["203.0.113.1", "203.0.113.2"] {
            let chain = format!("{pretended}, {address}");
            server.get_from(&chain, HINT).await.is(204);
        }
        server.get_from(&format!("203.0.113.3, {address}"), HINT).await.is_limited();
    }
}

#[tokio::test]
async fn without_trusted_proxies_forwarding_headers_are_ignored() {
    let server = Server::with(&[("CN_TRUSTED_PROXIES", "")]).await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 3}})).await;
    for header in ["x-forwarded-for", "forwarded", "x-real-ip"] {
        let value = if header == "forwarded" { "for=192.0.2.1" } else { "192.0.2.1" };
        server.send(Request::get(HINT).header(header, value), "").await.is(204);
    }
    for n in 1..=5 {
        server.get_from(&format!("192.0.2.{n}"), HINT).await.is_limited();
    }
}

#[tokio::test]
async fn only_the_configured_header_of_a_proxy_is_trusted() {
    let server = Server::with(&[("CN_FORWARDED_BY", "x_real_ip")]).await;
    let rates = json!({"rate_limit": {"public_per_minute": 2}});
    server.configure("user-api", rates).await;
    let from = |client: &str, pretended: u8, request: Builder| {
        let request = request.header("x-real-ip", client);
        let request = request.header("x-forwarded-for", format!("192.0.2.{pretended}"));
        server.send(request.header("forwarded", format!("for=192.0.2.{pretended}")), "")
    };
    for n in 1..=2 {
        from("198.51.100.1", n, Request::get(HINT)).await.is(204);
    }
    for n in 3..=6 {
        from("198.51.100.1", n, Request::get(HINT)).await.is_limited();
    }
    from("198.51.100.2", 1, Request::get(HINT)).await.is(204);

    // The relay finds the same address.
    server.configure("relay", json!({"rate_limit": {"ws": {"conns_per_minute": 1}}})).await;
    from("198.51.100.1", 1, upgrade()).await.is(101);
    from("198.51.100.1", 2, upgrade()).await.is(429);
    from("198.51.100.2", 1, upgrade()).await.is(101);
}

fn upgrade() -> Builder {
    let request = Request::get("/relay").header("connection", "upgrade");
    let request = request.header("upgrade", "websocket").header("sec-websocket-version", "13");
    request.header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn an_ipv6_network_is_one_address() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 1}})).await;
    server.get_from("2001:db8:1:2::1", HINT).await.is(204);
    server.get_from("2001:db8:1:2:ffff::7", HINT).await.is_limited();
    server.get_from("2001:db8:1:3::1", HINT).await.is(204);
}
