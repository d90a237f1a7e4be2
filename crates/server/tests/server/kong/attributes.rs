//! Attributes from a template, for rules over attributes.

use headgate_testkit::require;
use serde_json::{Value, json};

use super::gateway::{Gateway, headers};
use crate::harness::Server;

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

const TEMPLATE: &str = "attributes = { tenant = \"$header.x-tenant\", path = \"$path\", \
    method = \"$method\", consumer = \"$consumer.username\", user = \"$header.x-user\", \
    route = \"$route.name\", mode = \"$query.mode\", network = \"$client_network\", region = \"eu\", \
    host = \"$host\", scheme = \"$scheme\" }, fault_tolerant = false";

fn rule(name: &str, when: &Value, per: &[&str], limit: u64) -> Value {
    json!({"name": name, "when": when, "per": per, "limit": limit, "window_seconds": FOREVER})
}

async fn start() -> (Server, Result<Gateway, headgate_testkit::Skip>) {
    let server = Server::start(&[("ratelimit.default_limit", "1")]).await;
    let gateway = Gateway::start(server.grpc_address, TEMPLATE).await;
    (server, gateway)
}

#[tokio::test]
async fn rules_over_attributes_decide() {
    let (server, gateway) = start().await;
    let gateway = require!(gateway);
    // No rule matches: neither a limit nor headers.
    for _ in 0..3 {
        let reply = gateway.get(&[("x-tenant", "acme")]).await;
        assert_eq!((reply.status.as_u16(), headers(&reply)[1]), (200, ""), "{}", gateway.log());
    }
    let when = json!({"path": "/", "method": "GET", "region": "eu", "scheme": "http",
        "host": "test", "consumer": ["alice", "bob"], "address": {"in": ["192.0.2.0/24"]},
        "route": {"exists": true}, "mode": {"exists": false}});
    server.create_rule(&rule("reads", &when, &["tenant"], 2)).await;
    let request = [
        ("x-tenant", "acme"),
        ("x-test-consumer", "alice"),
        ("x-test-route", "orders"),
        ("x-test-address", "192.0.2.7"),
    ];
    let other = |index: usize, value: &'static str| {
        let mut request = request;
        request[index].1 = value;
        request
    };
    for (left, status) in [("1", 200), ("0", 200), ("0", 429)] {
        let reply = gateway.get(&request).await;
        let [limit, remaining, _, retry_after] = headers(&reply);
        assert_eq!((limit, remaining, reply.status.as_u16()), ("2", left, status));
        assert_eq!(retry_after.is_empty(), status == 200);
    }
    assert_eq!(headers(&gateway.get(&other(0, "umbrella")).await)[1], "1");
    for unmatched in [other(1, "carol"), other(3, "198.51.100.1")] {
        let reply = gateway.get(&unmatched).await;
        assert_eq!((reply.status.as_u16(), headers(&reply)[1]), (200, ""), "{unmatched:?}");
    }
    assert_eq!(gateway.get(&request[..1]).await.status, 200);
}

#[tokio::test]
async fn values_that_the_server_would_reject_are_counted() {
    let (server, gateway) = start().await;
    let gateway = require!(gateway);
    server.create_rule(&rule("tenants", &json!({"tenant": {"prefix": ""}}), &["tenant"], 1)).await;
    let user = json!({"scope": "user", "identifier_pattern": "*", "limit": 1,
        "window_seconds": FOREVER});
    server.create_rule(&user).await;
    let long = vec![b'x'; 3000];
    let longer = [&long[..], b"y"].concat();
    let characters = "é".repeat(700).into_bytes();
    for name in ["x-tenant", "x-user"] {
        for value in
            [&long[..], &longer, &characters, b"a{b}", b"\xff\xfe", b"caf\xc3\xa9", b"\xe0\x80"]
        {
            let shown = value.escape_ascii().to_string();
            let first = gateway.get_bytes(&[(name, value)]).await;
            assert_eq!(first.status, 200, "{name} {shown} {}", gateway.log());
            assert_eq!(headers(&first)[0], "1", "{name} {shown}");
            assert_eq!(gateway.get_bytes(&[(name, value)]).await.status, 429, "{name} {shown}");
        }
    }
}

#[tokio::test]
async fn addresses_and_networks_are_attributes() {
    let (server, gateway) = start().await;
    let gateway = require!(gateway);
    let when = json!({"address": {"in": ["2001:db8::/32"]}});
    server.create_rule(&rule("networks", &when, &["network"], 2)).await;
    for (address, left) in
        [("2001:db8:1:2::1", "1"), ("2001:db8:1:2::9", "0"), ("2001:db8:1:3::1", "1")]
    {
        let reply = gateway.get(&[("x-test-address", address)]).await;
        assert_eq!(headers(&reply)[1], left, "{address} {}", gateway.log());
    }
}
