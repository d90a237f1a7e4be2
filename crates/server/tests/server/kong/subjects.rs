//! The subject of a request.

use headgate_guard::{AddressKey, Ipv6Prefix};
use headgate_testkit::require;

use super::gateway::{Gateway, headers};
use crate::harness::Server;

/// Units that `subject` has left of 100.
async fn left(server: &Server, scope: &str, subject: &str) -> i64 {
    let body = serde_json::json!({"scope": scope, "identifier": subject, "dry_run": true});
    let reply = server.post(crate::harness::CHECK, &body.to_string()).await;
    reply.json()["remaining"].as_i64().unwrap_or_else(|| panic!("{}", reply.text))
}

async fn server() -> Server {
    Server::start(&[("ratelimit.default_window_seconds", "31000000")]).await
}

#[tokio::test]
async fn each_limit_by_setting_finds_its_subject() {
    let server = server().await;
    let by_header = "limit_by = \"header\", header_name = \"X-Tenant\"";
    let cases = [
        ("limit_by = \"consumer\"", ("x-test-consumer", "alice"), "alice"),
        ("limit_by = \"consumer\"", ("x-test-credential", "cred-1"), "cred-1"),
        ("limit_by = \"consumer\"", ("x-test-address", "192.0.2.1"), "ip:192.0.2.1"),
        ("limit_by = \"credential\"", ("x-test-credential", "cred-2"), "cred-2"),
        ("limit_by = \"ip\"", ("x-test-consumer", "bob"), "ip:127.0.0.1"),
        (by_header, ("x-tenant", "acme"), "acme"),
        (by_header, ("x-test-address", "192.0.2.2"), "ip:192.0.2.2"),
        ("limit_by = \"service\"", ("x-test-service", "billing"), "billing"),
        ("limit_by = \"route\"", ("x-test-route", "orders"), "orders"),
    ];
    for (conf, header, subject) in cases {
        let gateway = require!(Gateway::start(server.grpc_address, conf).await);
        let reply = gateway.get(&[header]).await;
        assert_eq!((reply.status.as_u16(), headers(&reply)[1]), (200, "99"), "{subject}");
        assert_eq!(left(&server, "user", subject).await, 99, "{subject}: {}", gateway.log());
    }
}

#[tokio::test]
async fn an_address_is_counted_as_the_server_counts_it() {
    let server = server().await;
    let gateway = require!(Gateway::start(server.grpc_address, "limit_by = \"ip\"").await);
    let cases = [
        ("198.51.100.7", "ip:198.51.100.7"),
        ("::ffff:198.51.100.8", "ip:198.51.100.8"),
        ("2001:db8:1:2:3:4:5:6", "ip:2001:db8:1:2::/64"),
        ("2001:0DB8:0001:0003::1", "ip:2001:db8:1:3::/64"),
        ("2001:db8::1", "ip:2001:db8::/64"),
        ("2001:db8:0:7::", "ip:2001:db8:0:7::/64"),
        ("fe80::1%eth0", "ip:fe80::/64"),
        ("::1", "ip:::/64"),
    ];
    for (address, subject) in cases {
        let reply = gateway.get(&[("x-test-address", address)]).await;
        assert_eq!(headers(&reply)[1], "99", "{address}: {}", gateway.log());
        assert_eq!(left(&server, "user", subject).await, 99, "{address}");
    }
    let neighbour = gateway.get(&[("x-test-address", "2001:db8:1:2:ffff::1")]).await;
    assert_eq!(headers(&neighbour)[1], "98");
}

#[tokio::test]
async fn networks_have_the_configured_length_as_on_the_server() {
    let server = server().await;
    let address = "2001:db8:1:2ff:3::4".parse().unwrap();
    for bits in [48, 56, 60, 63, 64] {
        let conf = format!("limit_by = \"ip\", ipv6_prefix_length = {bits}");
        let gateway = require!(Gateway::start(server.grpc_address, &conf).await);
        let reply = gateway.get(&[("x-test-address", "2001:db8:1:2ff:3::4")]).await;
        assert_eq!(headers(&reply)[1], "99", "{bits}: {}", gateway.log());
        let subject = AddressKey::grouped("ip:", address, Ipv6Prefix::new(bits).unwrap());
        assert_eq!(left(&server, "user", &subject).await, 99, "{subject}");
    }
    let rule = serde_json::json!({"name": "networks", "per": ["network"], "limit": 2,
        "window_seconds": 8_640_000});
    server.create_rule(&rule).await;
    let conf = "attributes = { network = \"$client_network\" }, ipv6_prefix_length = 56";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    for (address, remaining) in [("2001:db8:1:200::1", "1"), ("2001:db8:1:2ff::1", "0")] {
        let reply = gateway.get(&[("x-test-address", address)]).await;
        assert_eq!(headers(&reply)[1], remaining, "{}", gateway.log());
    }
}

#[tokio::test]
async fn no_header_bypasses_the_limit() {
    let keys = [("ratelimit.default_limit", "1"), ("ratelimit.default_window_seconds", "31000000")];
    let server = Server::start(&keys).await;
    let conf = "limit_by = \"header\", header_name = \"x-key\"";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    let long = [b'x'; 4000];
    // Too long, braces, not UTF-8, a tab: the server would refuse each as a subject.
    let values: [&[u8]; 4] = [&long, b"{slot}", b"\xff\xfe", b"a\tb"];
    for value in values {
        let first = gateway.get_bytes(&[("x-key", value)]).await;
        assert_eq!((first.status.as_u16(), headers(&first)[0]), (200, "1"), "{}", gateway.log());
        assert_eq!(gateway.get_bytes(&[("x-key", value)]).await.status, 429);
    }
    // Of two values, the first one counts.
    let twice: [(&str, &[u8]); 2] = [("x-key", b"a\tb"), ("x-key", b"fresh")];
    assert_eq!(gateway.get_bytes(&twice).await.status, 429);
}

#[tokio::test]
async fn no_header_is_counted_as_the_address_of_another_client() {
    let server = server().await;
    let rule = serde_json::json!({"scope": "user", "identifier_pattern": "*", "limit": 100,
        "window_seconds": 8_640_000});
    server.create_rule(&rule).await;
    let cases = [
        (
            "limit_by = \"header\", header_name = \"x-key\"",
            [
                "ip:203.0.113.9",
                "ip:2001:db8:1:2::/64",
                "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709",
            ],
        ),
        (
            "attributes = { user = \"$header.x-key\" }",
            [
                "ip:203.0.113.10",
                "ip:2001:db8:1:3::/64",
                "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
            ],
        ),
    ];
    for (conf, values) in cases {
        let gateway = require!(Gateway::start(server.grpc_address, conf).await);
        for value in values {
            let first = gateway.get(&[("x-key", value)]).await;
            assert_eq!(headers(&first)[1], "99", "{value}: {}", gateway.log());
            assert_eq!(left(&server, "user", value).await, 100, "{value}");
            let second = gateway.get(&[("x-key", value)]).await;
            assert_eq!(headers(&second)[1], "98", "{value}: {}", gateway.log());
        }
    }
}
