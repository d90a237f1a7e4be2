//! Whose address counts.

use hyper::Request;
use serde_json::json;

use super::harness::Server;

const HINT: &str = "/v1/bootstrap/hints/latest";

#[tokio::test]
async fn fifty_clients_behind_a_trusted_proxy_have_fifty_budgets() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 2}})).await;
    for client in 1..=50 {
        let address = format!("198.51.100.{client}");
        // What the client pretends stands to the left of what the proxy wrote.
        for pretended in ["203.0.113.1", "203.0.113.2"] {
            let chain = format!("{pretended}, {address}");
            server.get_from(&chain, HINT).await.is(204);
        }
        server.get_from(&format!("203.0.113.3, {address}"), HINT).await.is_limited();
    }
}

#[tokio::test]
async fn without_trusted_proxies_pretending_gains_nothing() {
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
async fn an_ipv6_subscriber_is_one_address() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 1}})).await;
    server.get_from("2001:db8:1:2::1", HINT).await.is(204);
    server.get_from("2001:db8:1:2:ffff::7", HINT).await.is_limited();
    server.get_from("2001:db8:1:3::1", HINT).await.is(204);
}
