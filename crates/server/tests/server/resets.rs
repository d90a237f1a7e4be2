//! Resets while the store does not answer.

use std::time::Duration;

use headgate_testkit::{Postgres, Redis, require};
use serde_json::{Value, json};

use crate::{
    grpc::client as grpc,
    harness::{Reply, Server},
};

const RESET: &str = "/api/v1/ratelimit/reset";
const KEYED_RESET: &str = "/api/v1/rate-limit/reset?algorithm=FIXED_WINDOW&key=u1";
const UNCONFIRMED: &str =
    "the store of counters did not answer: the counter may or may not have been reset, ask again";
const NOT_ASKED: &str =
    "the store of counters cannot be reached: nothing was changed, try again later";

async fn reset(server: &Server) -> Reply {
    let body = json!({"scope": "user", "identifier": "u1", "reason": "by mistake"}).to_string();
    server.admin("POST", RESET, &body).await
}

fn message(reply: &Reply) -> String {
    assert_eq!(reply.status, 503, "{}", reply.text);
    let body = reply.json();
    assert_eq!(body["error"]["code"], "SYS_RATELIMIT_STORE_UNAVAILABLE");
    body["error"]["message"].as_str().unwrap().to_owned()
}

/// The resets in the audit log, oldest first.
async fn recorded(server: &Server) -> Vec<Value> {
    let path = "/api/v1/ratelimit/audit?action=counter.reset&page_size=100";
    let log = server.admin("GET", path, "").await.json();
    log["entries"].as_array().unwrap().iter().rev().cloned().collect()
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let wait = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), wait).await.expect(what);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_done_without_a_response_is_in_the_audit_log() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "10000"),
        ("ratelimit.default_window_seconds", "8640000"),
        ("rate_limiter.fixed_window.window_size", "8640000"),
    ];
    let server = Server::start(&keys).await;
    until("a store", async || server.get("/readyz").await.text.contains(r#""status":"ready""#))
        .await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);
    assert_eq!(
        server.get("/api/v1/rate-limit/check?algorithm=FIXED_WINDOW&key=u1").await.status,
        200
    );
    let states = ["ratelimit:user:u1:8640000", "rate_limiter:fixed_window:u1"];
    assert_eq!(redis.cli(&["EXISTS", states[0], states[1]]), "2");

    redis.pause();
    let (by_rules, by_key) = tokio::join!(reset(&server), server.admin("DELETE", KEYED_RESET, ""));
    assert_eq!(message(&by_rules), UNCONFIRMED);
    assert_eq!((by_key.status.as_u16(), &by_key.json()["message"]), (503, &json!(UNCONFIRMED)));
    redis.resume();

    // The reset was done nevertheless.
    until("both are forgotten", async || redis.cli(&["EXISTS", states[0], states[1]]) == "0").await;
    let mut log = recorded(&server).await;
    log.sort_by_key(|entry| entry["target"].to_string());
    let column = |key: &str| log.iter().map(|entry| entry[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("target"), ["rate_limiter:fixed_window:u1", "user:u1"]);
    assert_eq!(column("after"), vec![json!({"outcome": "unknown"}); 2]);
    assert_eq!(log[1]["request_id"], by_rules.header("x-request-id"));
    assert_eq!(log[1]["reason"], "by mistake");

    until("an answer", async || reset(&server).await.status == 200).await;
    assert_eq!(recorded(&server).await.last().unwrap()["after"], Value::Null);
}

#[tokio::test]
async fn resets_that_were_not_sent_are_recorded_as_not_done() {
    let server = Server::start(&[("redis.url", "redis://127.0.0.1:1")]).await;
    let mut tried = 0;
    // After some failures the breaker opens: then it is certain that nothing was done.
    loop {
        match message(&reset(&server).await).as_str() {
            UNCONFIRMED => tried += 1,
            reported => {
                assert_eq!(reported, NOT_ASKED);
                break;
            }
        }
        assert!(tried < 100, "the store is never left alone");
    }
    assert!(tried > 0);
    let log = recorded(&server).await;
    let outcomes: Vec<_> = log.iter().map(|entry| entry["after"]["outcome"].clone()).collect();
    assert_eq!(outcomes, [vec![json!("unknown"); tried], vec![json!("not_done")]].concat());
}

/// Creates a daily quota of 10 for tenant-abc; returns its id.
async fn create_quota(server: &Server) -> String {
    let quota = json!({
        "name": "requests", "subject_type": "tenant", "subject_id": "tenant-abc", "limit": 10, "period": "daily",
    });
    let reply = server.admin("POST", "/api/v1/quotas", &quota.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    reply.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_audit_log_nothing_is_reset() {
    let postgres = require!(Postgres::start());
    let url = postgres.url();
    let keys = [
        ("database.url", url.as_str()),
        ("database.connect_timeout_seconds", "5"),
        ("ratelimit.refresh_interval_seconds", "1"),
        ("ratelimit.default_window_seconds", "8640000"),
        ("rate_limiter.fixed_window.window_size", "8640000"),
    ];
    let server = Server::start(&keys).await;
    let quota = create_quota(&server).await;
    let (usage, quota_reset) =
        (format!("/api/v1/quotas/{quota}/usage"), format!("/api/v1/quotas/{quota}/usage/reset"));
    let take = json!({"amount": 3}).to_string();
    let taken = server.admin("POST", &format!("{usage}/increment"), &take).await;
    assert_eq!(taken.status, 200, "{}", taken.text);
    let check_key = "/api/v1/rate-limit/check?algorithm=FIXED_WINDOW&key=u1";
    let left_of_key = async || {
        let reply = server.get(check_key).await;
        reply.header("x-ratelimit-remaining").parse::<u64>().unwrap()
    };
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);
    let key_had = left_of_key().await;

    postgres.stop();
    let by_rules = reset(&server).await;
    assert_eq!(by_rules.status, 503, "{}", by_rules.text);
    assert_eq!(by_rules.json()["error"]["code"], "SYS_RATELIMIT_DATABASE_UNAVAILABLE");
    let by_key = server.admin("DELETE", KEYED_RESET, "").await;
    assert_eq!(by_key.status, 503, "{}", by_key.text);
    let client = grpc::connect(server.grpc_address).await;
    let wanted = grpc::ResetLimitRequest {
        scope: "user".to_owned(),
        identifier: "u1".to_owned(),
        ..grpc::ResetLimitRequest::default()
    };
    let wanted = grpc::by(server.admin_token.as_deref().unwrap(), wanted);
    let by_grpc = client.clone().reset_limit(wanted).await.unwrap_err();
    assert_eq!(by_grpc.code(), tonic::Code::Unavailable, "{by_grpc}");
    let why = json!({"reason": "by mistake"}).to_string();
    let of_quota = server.admin("POST", &quota_reset, &why).await;
    assert!(of_quota.status.is_server_error(), "{}", of_quota.text);
    assert_eq!(server.check_user("u1").await.json()["remaining"], 98, "nothing was reset");
    assert_eq!(left_of_key().await, key_had - 1, "nothing was reset");

    postgres.start_again();
    until("the database", async || reset(&server).await.status == 200).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);
    assert_eq!(server.admin("DELETE", KEYED_RESET, "").await.status, 200);
    assert_eq!(server.admin("GET", &usage, "").await.json()["used"], 3, "nothing was reset");
    assert_eq!(server.admin("POST", &quota_reset, &why).await.status, 200);
    let log = recorded(&server).await;
    let targets: Vec<_> = log.iter().map(|entry| entry["target"].clone()).collect();
    assert_eq!(targets, ["user:u1", "rate_limiter:fixed_window:u1"], "what was done is on record");
    assert!(log.iter().all(|entry| entry["after"].is_null()), "{log:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_whose_caller_disconnects_is_recorded_with_its_outcome() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "60000"),
        ("ratelimit.default_window_seconds", "8640000"),
    ];
    let server = Server::start(&keys).await;
    until("a store", async || server.get("/readyz").await.text.contains(r#""status":"ready""#))
        .await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);

    redis.pause();
    // The reset is recorded before the store is called; then the caller disconnects.
    let asked = reset(&server);
    let on_record = until("a record", async || recorded(&server).await.len() == 1);
    let hung_up = tokio::select! {
        reply = asked => panic!("the store is paused: {}", reply.text),
        () = on_record => recorded(&server).await,
    };
    assert_eq!(hung_up[0]["after"], json!({"outcome": "unknown"}));
    redis.resume();
    until("its outcome", async || recorded(&server).await[0]["after"].is_null()).await;
    assert_eq!(redis.cli(&["EXISTS", "ratelimit:user:u1:8640000"]), "0");
}
