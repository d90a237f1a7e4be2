//! Admitted requests are forwarded; denied ones get 429.

use std::{net::Ipv6Addr, sync::atomic::Ordering};

use futures_util::future::join_all;
use headgate_testkit::{Skip, require};
use serde_json::json;
use tokio::net::TcpListener;

use super::gateway::{Gateway, counted, headers, pass_on};
use crate::harness::Server;

const LIMITS: [(&str, &str); 2] =
    [("ratelimit.default_limit", "2"), ("ratelimit.default_window_seconds", "3600")];

#[tokio::test]
async fn admitted_requests_are_forwarded_and_denied_ones_get_retry_after() {
    let server = Server::start(&LIMITS).await;
    let gateway = require!(Gateway::start(server.grpc_address, "").await);
    for remaining in ["1", "0"] {
        let reply = gateway.get(&[("x-test-consumer", "alice")]).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, "upstream"));
        let [limit, left, reset, retry_after] = headers(&reply);
        // The upstream service sends 7 as its own limit.
        assert_eq!((limit, left, retry_after), ("2", remaining, ""));
        assert!(reset.parse::<u64>().unwrap() > 1_700_000_000, "{reset}");
        assert_eq!(reply.headers.get_all("x-ratelimit-limit").iter().count(), 1);
    }
    let denied = gateway.get(&[("x-test-consumer", "alice")]).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.json(), json!({ "message": "API rate limit exceeded" }));
    let [limit, left, reset, retry_after] = headers(&denied);
    assert_eq!((limit, left), ("2", "0"));
    assert!(reset.parse::<u64>().unwrap() > 1_700_000_000, "{reset}");
    assert!((1..=1800).contains(&retry_after.parse().unwrap()), "{retry_after}");

    let other = gateway.get(&[("x-test-consumer", "bob")]).await;
    assert_eq!(other.status, 200);
    // Other clients of Headgate see the units taken by the gateway.
    let elsewhere = server.check_user("alice").await.json();
    assert_eq!(elsewhere["allowed"], false, "{elsewhere}");
}

#[tokio::test]
async fn a_server_is_found_by_its_ipv6_address() {
    let server = Server::start(&LIMITS).await;
    let loopback = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await;
    let reason =
        |error: std::io::Error| Skip { component: "IPv6".into(), reason: error.to_string() };
    let listener = require!(loopback.map_err(reason));
    let address = listener.local_addr().unwrap();
    tokio::spawn(pass_on(listener, server.grpc_address));
    for host in ["::1", "[::1]"] {
        let conf = format!(
            "host = \"{host}\", port = {}, timeout = 60000, fault_tolerant = false",
            address.port()
        );
        let gateway = require!(Gateway::start_with(&conf, "").await);
        let reply = gateway.get(&[("x-test-consumer", host)]).await;
        assert_eq!((reply.status.as_u16(), &*reply.text), (200, "upstream"), "{}", gateway.log());
        assert_eq!(headers(&reply)[..2], ["2", "1"]);
    }
}

#[tokio::test]
async fn of_60_at_once_exactly_20_are_forwarded() {
    let limits =
        [("ratelimit.default_limit", "20"), ("ratelimit.default_window_seconds", "31000000")];
    let server = Server::start(&limits).await;
    let conf = "timeout = 60000, fault_tolerant = false";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    let replies = join_all((0..60).map(|_| gateway.get(&[("x-test-consumer", "alice")]))).await;
    let count = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((count(200), count(429)), (20, 40), "{}", gateway.log());
}

#[tokio::test]
async fn one_connection_serves_request_after_request() {
    let server = Server::start(&[]).await;
    let (address, connections) = counted(server.grpc_address).await;
    let gateway = require!(Gateway::start(address, "timeout = 60000").await);
    for _ in 0..20 {
        assert_eq!(gateway.get(&[]).await.status, 200);
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1, "{}", gateway.log());
}

#[tokio::test]
async fn rule_cost_and_message_are_configurable() {
    let server = Server::start(&[]).await;
    let rule = json!({
        "scope": "endpoint", "identifier_pattern": "*", "limit": 10, "window_seconds": 3600
    });
    server.create_rule(&rule).await;
    let conf = "scope = \"endpoint\", limit_by = \"route\", cost = 4, error_message = 'a \"b\"'";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    let route = [("x-test-route", "orders")];
    let left: Vec<String> = {
        let mut left = Vec::new();
        for _ in 0..2 {
            left.push(headers(&gateway.get(&route).await)[1].to_owned());
        }
        left
    };
    assert_eq!(left, ["6", "2"]);
    let denied = gateway.get(&route).await;
    assert_eq!((denied.status.as_u16(), denied.json()), (429, json!({ "message": "a \"b\"" })));
}

#[tokio::test]
async fn the_configured_rule_decides_alone() {
    let server = Server::start(&[]).await;
    let rule = json!({
        "scope": "user", "identifier_pattern": "gold-*", "limit": 3, "window_seconds": 3600
    });
    let id = server.create_rule(&rule).await;
    let conf = format!("rule_id = \"{id}\"");
    let gateway = require!(Gateway::start(server.grpc_address, &conf).await);
    let reply = gateway.get(&[("x-test-consumer", "gold-1")]).await;
    assert_eq!(headers(&reply)[..2], ["3", "2"]);
}

#[tokio::test]
async fn headers_can_be_hidden() {
    let limits = [("ratelimit.default_limit", "1"), LIMITS[1]];
    let server = Server::start(&limits).await;
    let conf = "hide_client_headers = true";
    let gateway = require!(Gateway::start(server.grpc_address, conf).await);
    let allowed = gateway.get(&[]).await;
    // The upstream service's own header remains.
    assert_eq!((allowed.status.as_u16(), headers(&allowed)), (200, ["7", "", "", ""]));
    let denied = gateway.get(&[]).await;
    assert_eq!((denied.status.as_u16(), headers(&denied)), (429, ["", "", "", ""]));
}
