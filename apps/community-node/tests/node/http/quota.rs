//! What is left for today: 402, never 429.

use headgate::Timestamp;
use headgate_testkit::{Postgres, require};
use serde_json::json;
use sqlx::{Connection, SqliteConnection};

use super::harness::Server;

const HERE: &str = "198.51.100.1";
const TRENDING: &str = "/v1/trending";

/// 2026-02-24T00:00:00Z.
const TOMORROW: u64 = 1_771_891_200;

/// A node on PostgreSQL where little is left for a day, and minutes are long enough.
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
async fn when_nothing_is_left_for_today_that_is_said_and_when_there_will_be() {
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
    // Each key and each metric has its own.
    ada.get("/v1/search?q=rust").await.is(200);
    server.client(2, HERE).await.get(TRENDING).await.is(200);

    let metrics = server.get("/metrics").await.text;
    let counted = r#"quota_exceeded_total{metric="index.trending_requests",service="user-api"} 1"#;
    assert!(metrics.contains(counted), "{metrics}");
}

#[tokio::test]
async fn the_momentary_limit_answers_429_and_takes_nothing_from_the_day() {
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
async fn the_same_request_under_the_same_id_is_charged_once_for_three_retries() {
    let (server, _database) = node!(json!({"search_requests_per_day": 3}));
    let ada = server.client(1, HERE).await;
    let rust = "/v1/search?q=rust";
    for _ in 0..3 {
        let reply = ada.get_as("first", rust).await;
        reply.is(200);
        assert_eq!(reply.header("x-request-id"), Some("first"));
    }
    // Another request is no repetition of it, whatever it calls itself.
    ada.get_as("first", "/v1/search?q=go").await.is(200);
    ada.get_as("second", rust).await.is(200);
    ada.get_as("third", rust).await.is_refused(402, "QUOTA_EXCEEDED");
    ada.get_as("first", rust).await.is(200);
    // Whoever sends it once more does not send it again: it asks for more.
    ada.get_as("first", rust).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn one_id_for_everything_gains_nothing() {
    let (server, _database) = node!(json!({"trending_requests_per_day": 10}));
    let ada = server.client(1, HERE).await;
    let mut admitted = 0;
    for _ in 0..40 {
        admitted += u32::from(ada.get_as("x", TRENDING).await.status == 200);
    }
    assert_eq!(admitted, 10 + 3);
    // Nor later: what was a retry is a new request by now.
    server.clock.advance(std::time::Duration::from_secs(601));
    ada.get_as("x", TRENDING).await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn newcomers_beyond_the_bound_share_one_quota_and_are_told_so() {
    let server = Server::with(&[("CN_MAX_QUOTAS", "1")]).await;
    server.configure("user-api", json!({"quota": {"trending_requests_per_day": 1}})).await;
    server.client(1, HERE).await.get(TRENDING).await.is(200);
    server.client(2, HERE).await.get_as("x", TRENDING).await.is(200);
    // The same id of somebody else is another request.
    let refused = server.client(3, HERE).await.get_as("x", TRENDING).await;
    refused.is_refused(402, "QUOTA_EXCEEDED");
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("new keys share"), "{message}");
    assert_eq!(refused.json()["details"]["current"], 1);
    let own = server.client(1, HERE).await.get(TRENDING).await;
    assert_eq!(own.json()["message"], "nothing is left for today");
}

#[tokio::test]
async fn a_new_day_is_new_for_ids_that_were_admitted_and_for_those_that_were_not() {
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
async fn of_many_at_once_exactly_as_many_pass_as_are_left() {
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
async fn what_makes_no_sense_costs_nothing_and_a_report_is_kept() {
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
async fn a_report_that_is_sent_again_under_its_id_is_kept_once() {
    let server = Server::start().await;
    server.configure("user-api", json!({"quota": {"report_submits_per_day": 3}})).await;
    reports_once(&server).await;
}

#[tokio::test]
async fn a_report_that_is_sent_again_under_its_id_is_kept_once_on_postgresql() {
    let (server, _database) = node!(json!({"report_submits_per_day": 3}));
    reports_once(&server).await;
}

#[tokio::test]
async fn a_report_that_could_not_be_kept_is_kept_when_it_is_sent_again() {
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
    // It is charged, so it is kept: another reason is another report.
    ada.post_as("first", "/v1/reports", &json!({"pubkey": bob, "reason": "lies"})).await.is(202);
    ada.post_as("second", "/v1/reports", &spam).await.is(202);
    ada.post_as("third", "/v1/reports", &spam).await.is_refused(402, "QUOTA_EXCEEDED");
    ada.post_as("first", "/v1/reports", &spam).await.is(202);
    let trust = ada.get(&format!("/v1/trust/{bob}")).await;
    assert_eq!(trust.json()["reports"], 3, "{}", trust.text);
}
