//! Daily quotas: 402, never 429.

use headgate::Timestamp;
use headgate_testkit::{Postgres, require};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use super::harness::Server;

const HERE: &str = "198.51.100.1";
const TRENDING: &str = "/v1/trending";

/// 2026-02-24T00:00:00Z.
const TOMORROW: u64 = 1_771_891_200;

/// A node on PostgreSQL with small quotas and large rate limits.
macro_rules! node {
    ($quota:expr) => {{
        let database = tokio::task::spawn_blocking(Postgres::shared).await.unwrap();
        let database = require!(database);
        let server = Server::on(database.url()).await;
        let rates = json!({"protected_per_minute": 1_000});
        server.configure("user-api", json!({"rate_limit": rates, "quota": $quota})).await;
        (server, database)
    }};
}

#[tokio::test]
async fn an_exceeded_quota_answers_402_with_its_reset_time() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 2}));
    let ada = server.client(1, HERE).await;
    for _ in 0..2 {
        ada.get(TRENDING).await.is(200);
    }
    let refused = ada.get(TRENDING).await;
    refused.is_refused(402, "QUOTA_EXCEEDED");
    assert_eq!(
        refused.json()["details"],
        json!({
            "metric": "index.trending_requests",
            "current": 2,
            "limit": 2,
            "reset_at": TOMORROW,
        })
    );
    assert_eq!(refused.header("retry-after"), None, "waiting a minute does not help");
    // Each key and metric has a quota of its own.
    ada.get("/v1/search?q=rust").await.is(200);
    server.client(2, HERE).await.get(TRENDING).await.is(200);

    let metrics = server.get("/metrics").await.text;
    let counted = r#"quota_exceeded_total{metric="index.trending_requests",service="user-api"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn a_rate_limited_request_answers_429_and_is_not_charged_to_the_quota() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 2}));
    let config = json!({
        "rate_limit": {"http": {"by_pubkey": 1}},
        "quota": {"trending_requests_per_day": 2},
    });
    server.configure("user-api", config).await;
    let ada = server.client(1, HERE).await;
    ada.get(TRENDING).await.is(200);
    for _ in 0..3 {
        ada.get(TRENDING).await.is_limited();
    }
    let config = json!({
        "rate_limit": {"http": {"by_pubkey": 100}},
        "quota": {"trending_requests_per_day": 2},
    });
    server.configure("user-api", config).await;
    ada.get(TRENDING).await.is(200);
    ada.get(TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn a_request_and_three_retries_with_its_id_are_charged_once() {
    let (server, _database) = node!(json!({"search_requests_per_day": 3}));
    let ada = server.client(1, HERE).await;
    let rust = "/v1/search?q=rust";
    for _ in 0..3 {
        let reply = ada.get_as("first", rust).await;
        reply.is(200);
        assert_eq!(reply.header("x-request-id"), Some("first"));
    }
    // Another request with the same id is not a retry.
    ada.get_as("first", "/v1/search?q=go").await.is(200);
    ada.get_as("second", rust).await.is(200);
    ada.get_as("third", rust).await.is_refused(402, "QUOTA_EXCEEDED");
    ada.get_as("first", rust).await.is(200);
    // A fourth retry is charged as a new request.
    ada.get_as("first", rust).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn reusing_one_id_for_different_requests_is_charged() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 10}));
    let ada = server.client(1, HERE).await;
    let mut admitted = 0;
    for _ in 0..40 {
        admitted += u32::from(ada.get_as("x", TRENDING).await.status == 200);
    }
    assert_eq!(admitted, 10 + 3);
    // Nor later: a retry is a new request by then.
    server.clock.advance(std::time::Duration::from_secs(601));
    ada.get_as("x", TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn new_keys_beyond_the_bound_share_one_quota_and_the_error_says_so() {
    let server = Server::with(&[("CN_MAX_QUOTAS", "1")]).await;
    server.configure("user-api", json!({"quota": {"trending_requests_per_day": 1}})).await;
    server.client(1, HERE).await.get(TRENDING).await.is(200);
    server.client(2, HERE).await.get_as("x", TRENDING).await.is(200);
    // The same id of another key is another request.
    let refused = server.client(3, HERE).await.get_as("x", TRENDING).await;
    refused.is_refused(402, "QUOTA_EXCEEDED");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("new keys share"), "{message}");
    assert_eq!(refused.json()["details"]["current"], 1);
    let own = server.client(1, HERE).await.get(TRENDING).await;
    assert_eq!(own.json()["message"], "nothing is left for today");
}

#[tokio::test]
async fn request_ids_are_charged_again_on_a_new_day() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 1}));
    let ada = server.client(1, HERE).await;
    ada.get_as("admitted", TRENDING).await.is(200);
    ada.get_as("refused", TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
    ada.get_as("refused", TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");

    server.clock.set(Timestamp::from_micros(TOMORROW * 1_000_000));
    let again = server.client_at(1, HERE, TOMORROW).await;
    again.get_as("refused", TRENDING).await.is(200);
    again.get_as("admitted", TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn concurrent_requests_never_exceed_the_quota() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 5}));
    let ada = server.client(1, HERE).await;
    let replies = futures_util::future::join_all((0..20).map(|_| ada.get(TRENDING))).await;
    let of = |status: u16| replies.iter().filter(|reply| reply.status == status).count();
    assert_eq!((of(200), of(402)), (5, 15));
}

#[tokio::test]
async fn quotas_change_while_the_node_runs() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 1}));
    let ada = server.client(1, HERE).await;
    ada.get(TRENDING).await.is(200);
    ada.get(TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
    server.configure("user-api", json!({"quota": {"trending_requests_per_day": 2}})).await;
    ada.get(TRENDING).await.is(200);
    ada.get(TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
    server.configure("user-api", json!({"quota": {"unlimited": true}})).await;
    ada.get(TRENDING).await.is(200);
}

#[tokio::test]
async fn invalid_requests_are_not_charged_and_a_report_is_stored() {
    let server = Server::start().await;
    let quota = json!({"report_submits_per_day": 2, "search_requests_per_day": 1});
    server.configure("user-api", json!({"quota": quota})).await;
    let ada = server.client(1, HERE).await;
    ada.get("/v1/search").await.is_refused(400, "INVALID_QUERY");
    ada.get("/v1/search?q=rust&limit=101").await.is_refused(400, "INVALID_QUERY");
    ada.get("/v1/search?q=rust&limit=x").await.is_refused(400, "INVALID_QUERY");
    ada.get("/v1/search?q=rust").await.is(200);
    ada.get("/v1/trust/nobody").await.is_refused(400, "INVALID_PUBKEY");

    let bob = "2".repeat(64);
    for wrong in [json!({"pubkey": bob, "event_id": bob, "reason": "spam"}), json!({"reason": "x"})]
    {
        ada.post("/v1/reports", &wrong).await.is_refused(400, "INVALID_TARGET");
    }
    ada.post("/v1/reports", &json!({"pubkey": bob, "reason": " "}))
        .await
        .is_refused(400, "INVALID_REASON");
    ada.post("/v1/reports", &json!({"pubkey": bob, "reason": "spam"})).await.is(202);
    ada.post("/v1/reports", &json!({"event_id": bob, "reason": "spam"})).await.is(202);
    let third = ada.post("/v1/reports", &json!({"pubkey": bob, "reason": "spam"})).await;
    third.is_refused(402, "QUOTA_EXCEEDED");
    let trust = ada.get(&format!("/v1/trust/{bob}")).await;
    assert_eq!(trust.json(), json!({"pubkey": bob, "notes": 0, "reports": 1}));
}

#[tokio::test]
async fn a_retried_report_is_stored_once() {
    let server = Server::start().await;
    server.configure("user-api", json!({"quota": {"report_submits_per_day": 3}})).await;
    reports_once(&server).await;
}

#[tokio::test]
async fn a_retried_report_is_stored_once_on_postgresql() {
    let (server, _database) = node!(json!({"report_submits_per_day": 3}));
    reports_once(&server).await;
}

#[tokio::test]
async fn a_report_that_failed_is_stored_when_it_is_retried() {
    let server = Server::start().await;
    server.configure("user-api", json!({"quota": {"report_submits_per_day": 2}})).await;
    let (ada, bob) = (server.client(1, HERE).await, "2".repeat(64));
    let report = |reason: &str| json!({"pubkey": bob, "reason": reason});
    ada.post_as("first", "/v1/reports", &report("spam")).await.is(202);
    let url = format!("sqlite://{}", server.file().display());
    let mut database = SqliteConnection::connect(&url).await.unwrap();
    let away = "ALTER TABLE audit_log RENAME TO audit_log_away";
    sqlx::raw_sql(away).execute(&mut database).await.unwrap();
    let failed = ada.post_as("second", "/v1/reports", &report("lies")).await;
    assert!(failed.status.is_server_error(), "{}", failed.text);
    let back = "ALTER TABLE audit_log_away RENAME TO audit_log";
    sqlx::raw_sql(back).execute(&mut database).await.unwrap();
    for _ in 0..3 {
        ada.post_as("second", "/v1/reports", &report("lies")).await.is(202);
    }
    ada.post_as("third", "/v1/reports", &report("spam")).await.is_refused(402, "QUOTA_EXCEEDED");
    let trust = ada.get(&format!("/v1/trust/{bob}")).await;
    assert_eq!(trust.json()["reports"], 2, "{}", trust.text);
}

async fn reports_once(server: &Server) {
    let (ada, bob) = (server.client(1, HERE).await, "2".repeat(64));
    let spam = json!({"pubkey": bob, "reason": "spam"});
    let again = (0..3).map(|_| ada.post_as("first", "/v1/reports", &spam));
    for reply in futures_util::future::join_all(again).await {
        reply.is(202);
    }
    // It is charged, so it is stored: another reason is another report.
    ada.post_as("first", "/v1/reports", &json!({"pubkey": bob, "reason": "lies"})).await.is(202);
    ada.post_as("second", "/v1/reports", &spam).await.is(202);
    ada.post_as("third", "/v1/reports", &spam).await.is_refused(402, "QUOTA_EXCEEDED");
    ada.post_as("first", "/v1/reports", &spam).await.is(202);
    let trust = ada.get(&format!("/v1/trust/{bob}")).await;
    assert_eq!(trust.json()["reports"], 3, "{}", trust.text);
}
