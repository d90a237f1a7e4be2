//! Rules over the entries of descriptors: `envoy.rules`.

use std::slice;

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use super::{
    DOMAINS,
    client::{Client, of, request, taking},
    counted, metric, start_with,
    stores::assert_one_script,
};
use crate::{
    harness::{CHECK, RULES, Server},
    redis::{PATIENT, ready},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

async fn start(keys: &[(&str, &str)]) -> (Server, Client) {
    let own = [("envoy.enabled", "true"), ("envoy.rules", "true")];
    let server = Server::start(&[&own, keys].concat()).await;
    let client = Client::connect(server.grpc_address).await;
    (server, client)
}

fn rule(name: &str, when: &Value, per: &[&str], limit: u64) -> Value {
    json!({"name": name, "when": when, "per": per, "limit": limit, "window_seconds": FOREVER})
}

#[tokio::test]
async fn entries_are_attributes_and_counters_are_those_of_all_callers() {
    let (server, client) = start(&[]).await;
    let when = json!({"domain": "edge", "path": "/v1/*", "address": {"in": ["192.0.2.0/24"]}});
    server.create_rule(&rule("exports", &when, &["tenant"], 4)).await;
    let exports = of(&[("tenant", "acme"), ("path", "/v1/x"), ("remote_address", "192.0.2.7")]);

    let answer = client.ask("edge", slice::from_ref(&exports)).await;
    assert_eq!(answer.each(), [(false, 3)]);
    let limit = answer.0.statuses[0].current_limit.clone().unwrap();
    assert_eq!((limit.name.as_str(), limit.requests_per_unit), ("exports", 4));
    // 100 days.
    assert_eq!((limit.unit, limit.unit_multiplier), (4, Some(100)));

    let attributes = json!({"tenant": "acme", "path": "/v1/y", "domain": "edge",
        "address": "192.0.2.9"});
    let body = json!({"attributes": attributes, "cost": 2}).to_string();
    assert_eq!(server.post(CHECK, &body).await.json()["remaining"], 1);
    assert_eq!(client.ask("edge", slice::from_ref(&exports)).await.each(), [(false, 0)]);
    assert!(client.ask("edge", slice::from_ref(&exports)).await.is_over());

    // Nothing else matches.
    for (domain, entries) in [
        ("other", [("tenant", "acme"), ("path", "/v1/x"), ("remote_address", "192.0.2.7")]),
        ("edge", [("tenant", "acme"), ("path", "/v2/x"), ("remote_address", "192.0.2.7")]),
        ("edge", [("tenant", "acme"), ("path", "/v1/x"), ("remote_address", "198.51.100.1")]),
        ("edge", [("tenant", "other"), ("path", "/v1/x"), ("remote_address", "192.0.2.7")]),
    ] {
        let answer = client.ask(domain, &[of(&entries)]).await;
        assert!(!answer.is_over(), "{domain} {entries:?}");
    }
    let over = counted("edge", "rule:exports", "over_limit");
    assert_eq!(metric(&server, &over).await, Some(1));
    // Its decisions are counted as all others: 2 here, 1 over REST, 1 of another tenant; 1 denied.
    let listed = server.admin("GET", RULES, "").await.json();
    assert_eq!(listed["rules"][0]["name"], "exports", "{listed}");
}

#[tokio::test]
async fn a_domain_of_a_caller_does_not_become_a_long_label() {
    let (server, client) = start(&[]).await;
    server.create_rule(&rule("all", &json!({}), &["k"], 100)).await;
    for i in 0..3 {
        let domain = format!("{i}{}", "x".repeat(20_000));
        client.ask(&domain, &[of(&[("k", "v")])]).await;
    }
    let shared = counted("other", "other", "within_limit");
    assert_eq!(metric(&server, &shared).await, Some(3));
    assert!(!server.get("/metrics").await.text.contains("xxxx"));
}

#[tokio::test]
async fn rules_apply_besides_the_limits_of_files_and_all_or_nothing() {
    let server = start_with(DOMAINS, &[("envoy.rules", "true")]).await;
    let client = Client::connect(server.grpc_address).await;
    server.create_rule(&rule("small", &json!({"domain": "mail"}), &["mailbox"], 3)).await;
    server.create_rule(&rule("first", &json!({"descriptor": 0}), &["mailbox"], 1000)).await;
    let plain = start_with(DOMAINS, &[]).await;
    let reference = Client::connect(plain.grpc_address).await;
    let mailbox = of(&[("mailbox", "m1")]);

    // The file has a limit of 4: the least is shown.
    let file = reference.ask("mail", slice::from_ref(&mailbox)).await;
    assert_eq!(file.each(), [(false, 3)]);
    assert_eq!(client.ask("mail", slice::from_ref(&mailbox)).await.each(), [(false, 2)]);
    // A request that the rule denies takes nothing from the file's limit either.
    let many = taking(3, &[("mailbox", "m1")]);
    assert_eq!(client.ask("mail", slice::from_ref(&many)).await.each(), [(true, 2)]);
    assert_eq!(client.ask("mail", slice::from_ref(&mailbox)).await.each(), [(false, 1)]);
    // Units are given back to all.
    let mut back = taking(2, &[("mailbox", "m1")]);
    back.is_negative_hits = true;
    client.ask("mail", slice::from_ref(&back)).await;
    let peek = taking(0, &[("mailbox", "m1")]);
    assert_eq!(client.ask("mail", slice::from_ref(&peek)).await.each(), [(false, 3)]);

    // One descriptor is denied, so none takes anything.
    let both = [of(&[("mailbox", "m2")]), taking(4, &[("mailbox", "m3")])];
    let answer = client.ask("mail", &both).await;
    assert_eq!((answer.is_over(), answer.each()), (true, vec![(false, 3), (true, 3)]));
    let mut twice = request("mail", &[mailbox.clone(), mailbox]);
    twice.hits_addend = 1;
    assert_eq!(client.send(twice).await.each(), [(false, 2), (false, 1)]);
}

#[tokio::test]
async fn headers_name_every_limit_and_exceptions_stop_rules() {
    let (server, client) = start(&[("envoy.response_headers", "draft_version_03")]).await;
    server.create_rule(&rule("a", &json!({}), &["k"], 5)).await;
    server.create_rule(&rule("b", &json!({"k": {"exists": true}}), &[], 9)).await;
    let mut staff = rule("staff", &json!({"role": "staff"}), &[], 1);
    staff["priority"] = 9.into();
    staff["stops"] = true.into();
    staff["enabled"] = false.into();
    server.create_rule(&staff).await;
    let answer = client.ask("d", &[of(&[("k", "v")])]).await;
    assert_eq!(answer.each(), [(false, 4)]);
    let expected = "5, 5;w=8640000;name=\"a\", 9;w=8640000;name=\"b\"";
    assert_eq!(answer.header("x-ratelimit-limit"), Some(expected));
    let staff = client.ask("d", &[of(&[("k", "v"), ("role", "staff")])]).await;
    assert_eq!(staff.header("x-ratelimit-limit"), None);
    // Values that are no identifiers are counted too, and do not fail the request.
    server
        .create_rule(&json!({"scope": "user", "identifier_pattern": "*", "limit": 1,
            "window_seconds": FOREVER}))
        .await;
    for user in ["{", "", "\n", &"x".repeat(5000)] {
        assert!(!client.ask("d", &[of(&[("user", user)])]).await.is_over(), "{user}");
        assert!(client.ask("d", &[of(&[("user", user)])]).await.is_over(), "{user}");
    }
}

#[tokio::test]
async fn without_the_setting_rules_do_not_apply() {
    let server = start_with(DOMAINS, &[]).await;
    server.create_rule(&rule("all", &json!({}), &[], 1)).await;
    let client = Client::connect(server.grpc_address).await;
    for left in [3, 2, 1] {
        assert_eq!(client.ask("mail", &[of(&[("mailbox", "m1")])]).await.each(), [(false, left)]);
    }
}

#[tokio::test]
async fn too_many_rules_or_entries_are_an_error_that_says_what_to_do() {
    let (server, client) = start(&[]).await;
    let rules: Vec<Value> =
        (0..33).map(|i| rule(&format!("r{i}"), &json!({}), &["k"], 1)).collect();
    let reply = server.admin("PUT", RULES, &json!({"rules": rules}).to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let ask = async |descriptor| {
        client.0.clone().should_rate_limit(request("d", &[descriptor])).await.unwrap_err()
    };
    let status = ask(of(&[("k", "v")])).await;
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let reason = |status: &tonic::Status| String::from_utf8_lossy(status.details()).into_owned();
    assert!(reason(&status).contains("more than 32 rules"), "{status:?}");
    let keys: Vec<String> = (0..40).map(|i| format!("e{i}")).collect();
    let entries: Vec<(&str, &str)> = keys.iter().map(|key| (key.as_str(), "v")).collect();
    let status = ask(of(&entries)).await;
    assert!(reason(&status).contains("at most 32 attributes"), "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_and_files_are_decided_in_one_call_and_by_the_fail_mode_of_the_rule() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [("redis.url", url.as_str()), PATIENT, ("envoy.rules", "true")];
    let server = start_with(DOMAINS, &keys).await;
    let client = Client::connect(server.grpc_address).await;
    ready(&server).await;
    let mut strict = rule("strict", &json!({"mailbox": "m1"}), &[], 100);
    strict["fail_mode"] = "closed".into();
    server.create_rule(&strict).await;
    server.create_rule(&rule("each", &json!({}), &["mailbox"], 100)).await;
    let both = [of(&[("mailbox", "m1")]), of(&[("mailbox", "m2")])];
    assert!(!client.ask("mail", &both).await.is_over());
    assert_one_script(&redis, async || {
        assert_eq!(client.ask("mail", &both).await.each(), [(false, 2), (false, 2)]);
    })
    .await;

    redis.kill();
    assert!(client.ask("mail", &both[..1]).await.is_over());
    assert!(!client.ask("mail", &both[1..]).await.is_over());
}
