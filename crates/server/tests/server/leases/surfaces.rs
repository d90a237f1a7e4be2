//! Leases of rules, keys and descriptors, by REST, gRPC and Envoy's protocol.

use std::fs;

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use super::{Connection, explained, metric, rule, start, until_leased};
use crate::{
    envoy::client::{Client as Envoy, of},
    grpc::client::{
        CheckRateLimitRequest, CreateRuleRequest, Lease, UpdateRuleRequest, assert_invalid, by,
        connect, create, rule_of,
    },
    harness::{RULES, Server},
};

#[tokio::test]
async fn a_rule_has_a_lease_that_an_update_keeps_changes_or_removes() {
    let server = Server::start(&[]).await;
    let mut rule = rule("u1", 1_000, "token_bucket", &json!({"share_percent": 10, "hold_ms": 200}));
    let id = server.create_rule(&rule).await;
    let path = format!("{RULES}/{id}");
    let shown = server.admin("GET", &path, "").await.json();
    assert_eq!(shown["lease"], json!({"share_percent": 10, "hold_ms": 200}));
    let put = async |rule: &Value| server.admin("PUT", &path, &rule.to_string()).await;

    let lease = rule.as_object_mut().unwrap().remove("lease").unwrap();
    assert_eq!(put(&rule).await.json()["lease"], lease, "left out");
    rule["lease"] = json!({"share_percent": 0});
    let off = put(&rule).await.json();
    assert_eq!(off["lease"], json!({"share_percent": 0, "hold_ms": 0}));
    rule["lease"] = Value::Null;
    assert_eq!(put(&rule).await.json().get("lease"), None, "removed");
}

#[tokio::test]
async fn everything_invalid_in_a_lease_is_reported_at_once() {
    let server = Server::start(&[]).await;
    let details = async |window: u64, lease: Value| {
        let mut rule = rule("u1", 1_000, "token_bucket", &lease);
        rule["window_seconds"] = json!(window);
        let reply = server.admin("POST", RULES, &rule.to_string()).await;
        assert_eq!(reply.status, 400, "{reply:?}");
        reply.details()
    };
    let detail = |field: &str, message: &str| (field.to_owned(), message.to_owned());
    assert_eq!(
        details(0, json!({"share_percent": 51, "hold_ms": "long"})).await,
        [
            detail("window_seconds", "window_seconds must be greater than 0"),
            detail(
                "lease.share_percent",
                "lease.share_percent must be 1 to 50, or 0 for no leases"
            ),
            detail("lease.hold_ms", "lease.hold_ms must be a whole number, got a string"),
        ]
    );
    assert_eq!(
        details(1, json!({"share_percent": 5, "hold_ms": 101})).await,
        [detail("lease.hold_ms", "lease.hold_ms must be at most 100, a tenth of the window")]
    );
    let expected = "lease must be an object with share_percent and hold_ms, got ";
    assert_eq!(
        details(60, json!("10%/200ms")).await,
        [detail("lease", &format!("{expected}a string"))]
    );
    assert_eq!(
        details(60, json!({"share": 5, "hold_ms": 100})).await,
        [detail("lease", &format!("{expected}an object with other fields"))]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_that_it_is_leased_and_explain_shows_what_is_held() {
    let redis = require!(Redis::start());
    let server = start(&redis, &[]).await;
    let lease = json!({"share_percent": 50, "hold_ms": 1_000});
    server.create_rule(&rule("u*", 100_000, "fixed_window", &lease)).await;
    let mut held = Value::Null;
    for attempt in 0..20 {
        let user = format!("u{attempt}");
        let (answer, _) = until_leased(&server, &user).await;
        assert_eq!((&answer["allowed"], &answer["limit"]), (&json!(true), &json!(100_000)));
        until_leased(&server, &user).await;
        let shown = explained(&server, &user).await;
        assert_eq!(shown["lease"], lease);
        held = shown["held"].clone();
        if held["units"].as_u64() > Some(0) {
            break;
        }
    }
    assert!(held["until"].as_str().is_some_and(|until| until.contains('T')), "{held}");
    assert!(metric(&server, "headgate_lease_units_total", r#"event="granted""#).await > 0);
    let reset = json!({"scope": "user", "identifier": "u0", "reason": "a test"}).to_string();
    server.admin("POST", "/api/v1/ratelimit/reset", &reset).await;
    assert_eq!(explained(&server, "u0").await.get("held"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn grpc_has_the_same_lease_and_says_so() {
    let redis = require!(Redis::start());
    let server = start(&redis, &[]).await;
    let (client, token) = (connect(server.grpc_address).await, server.admin_token.clone().unwrap());
    let lease = Some(Lease { share_percent: 50, hold_ms: 1_000 });
    let request =
        CreateRuleRequest { limit: 100_000, window_secs: 8_640_000, lease, ..rule_of("user:u1") };
    let made = create(&client, &token, request.clone()).await;
    assert_eq!(made.lease, lease);
    let check = CheckRateLimitRequest {
        rule_id: "user".into(),
        subject: "u1".into(),
        ..CheckRateLimitRequest::default()
    };
    let mut leased = false;
    for _ in 0..10_000 {
        let answer = client.clone().check_rate_limit(check.clone()).await.unwrap().into_inner();
        assert!(answer.allowed);
        leased |= answer.leased;
        if leased {
            break;
        }
    }
    assert!(leased);

    let update = UpdateRuleRequest {
        rule_id: made.id,
        key: "user:u1".into(),
        limit: 10,
        window_secs: 60,
        ..UpdateRuleRequest::default()
    };
    let send = async |update| client.clone().update_rule(by(&token, update)).await;
    let rule = |answer: tonic::Response<_>| {
        let answer: crate::grpc::client::UpdateRuleResponse = answer.into_inner();
        answer.rule.unwrap().lease
    };
    assert_eq!(rule(send(update.clone()).await.unwrap()), lease, "kept");
    let short = UpdateRuleRequest { window_secs: 1, ..update.clone() };
    let message = "lease.hold_ms must be at most 100, a tenth of the window";
    assert_invalid(&send(short).await.unwrap_err(), &[("lease.hold_ms", message)]);
    let cleared = UpdateRuleRequest { clear_lease: true, ..update };
    assert_eq!(rule(send(cleared).await.unwrap()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_leased_by_its_section_or_override() {
    let redis = require!(Redis::start());
    let keys = [
        ("rate_limiter.lease", "50%/1000ms"),
        ("rate_limiter.fixed_window.max_requests", "100000"),
        ("rate_limiter.fixed_window.window_size", "1000h"),
        ("rate_limiter.overrides", "[{prefix: 'exact:', lease: off}]"),
    ];
    let server = start(&redis, &keys).await;
    let mut connection = Connection::open(server.address).await;
    let mut leased = [false; 2];
    for (key, leased) in ["shared:1", "exact:1"].iter().zip(&mut leased) {
        let path = format!("/api/v1/rate-limit/check?key={key}&algorithm=FIXED_WINDOW");
        for _ in 0..500 {
            let answer = connection.post(&path, String::new()).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let says = answer.json()["leased"] == true;
            assert_eq!(answer.header("x-ratelimit-leased") == "true", says);
            *leased |= says;
        }
    }
    assert_eq!(leased, [true, false]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_descriptor_is_leased_if_its_limit_says_so() {
    let redis = require!(Redis::start());
    let folder = tempfile::tempdir().unwrap();
    let domain = "domain: d\ndescriptors:\n\
        - {key: leased, rate_limit: {unit: day, requests_per_unit: 100000, lease: 50%/1000ms}}\n\
        - {key: exact, rate_limit: {unit: day, requests_per_unit: 100000}}\n";
    fs::write(folder.path().join("d.yaml"), domain).unwrap();
    let keys = [
        ("envoy.enabled", "true"),
        ("envoy.config_dir", folder.path().to_str().unwrap()),
        ("envoy.response_headers", "all"),
        ("envoy.dynamic_metadata", "true"),
    ];
    let server = start(&redis, &keys).await;
    let client = Envoy::connect(server.grpc_address).await;
    let mut leased = [false; 2];
    for (key, leased) in ["leased", "exact"].iter().zip(&mut leased) {
        for _ in 0..500 {
            let answer = client.ask("d", &[of(&[(key, "1")])]).await;
            assert!(!answer.is_over());
            let says = answer.header("x-ratelimit-leased") == Some("true");
            let metadata = answer.0.dynamic_metadata.unwrap();
            assert_eq!(metadata.fields.contains_key("leased"), says);
            *leased |= says;
        }
    }
    assert_eq!(leased, [true, false]);
}
