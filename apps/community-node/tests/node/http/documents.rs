//! Documents over the admin API, on PostgreSQL and SQLite.

use std::time::Duration;

use headgate_testkit::{Postgres, require};
use hyper::Request;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection, SqliteConnection};
use tokio::time::timeout;

use super::harness::{PATIENCE, START, Server};

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test(super::Server::start().await, None).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test]
            async fn $test() {
                let database = tokio::task::spawn_blocking(headgate_testkit::Postgres::shared).await;
                let database = headgate_testkit::require!(database.unwrap());
                let server = super::Server::on(database.url()).await;
                super::$test(server, Some(database.url())).await;
            })+
        }
    };
}

on_both!(
    a_document_is_written_read_and_listed,
    an_invalid_document_is_refused_and_not_stored,
    null_does_not_switch_authentication_off,
    of_two_concurrent_writes_with_one_version_one_wins,
    a_change_that_cannot_be_audited_is_not_made,
);

fn path(service: &str) -> String {
    format!("/v1/admin/services/{service}/config")
}

fn events(n: u64) -> Value {
    json!({"rate_limit": {"ws": {"events_per_minute": n}}})
}

async fn changes(server: &Server, query: &str) -> Vec<Value> {
    let reply = server.admin(Request::get(format!("/v1/admin/audit-logs{query}")), "").await;
    reply.is(200);
    reply.json()["items"].as_array().unwrap().clone()
}

/// Runs a statement like an operator with a console.
async fn console(server: &Server, url: Option<&str>, sql: &'static str) {
    if let Some(url) = url {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let path = "SET search_path = cn_admin";
        sqlx::raw_sql(path).execute(&mut connection).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    } else {
        let url = format!("sqlite://{}", server.file().display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
}

async fn a_document_is_written_read_and_listed(server: Server, _: Option<&str>) {
    server.admin(Request::get(path("relay")), "").await.is_refused(404, "NOT_FOUND");
    let put = server.put("relay", &json!({"config_json": events(10)})).await;
    put.is(200);
    let expected = json!({
        "service": "relay",
        "version": 1,
        "config_json": events(10),
        "updated_at": START,
        "updated_by": "admin",
    });
    assert_eq!(put.json(), expected);
    assert_eq!(server.admin(Request::get(path("relay")), "").await.json(), expected);
    assert_eq!(server.node.relay.with(|relay| relay.rate_limit.ws.events_per_minute), 10);
    let second = json!({"config_json": events(20), "expected_version": 1});
    let request = Request::put(path("relay")).header("x-request-id", "change-2");
    let put = server.admin(request, &second.to_string()).await;
    assert_eq!(put.json()["version"], 2);

    let items = server.admin(Request::get("/v1/admin/services"), "").await.json();
    let relay = items["items"].as_array().unwrap().iter().find(|item| item["service"] == "relay");
    let relay = relay.unwrap();
    assert_eq!((&relay["version"], &relay["config_json"]), (&json!(2), &events(20)));
    assert!(relay["instances"].is_array(), "{relay}");

    let changes = changes(&server, "?action=service_config.update&target=service:relay").await;
    assert_eq!(changes.len(), 2);
    let newest = &changes[0];
    assert!(newest["audit_id"].is_i64());
    assert_eq!(newest["actor_admin_user_id"], "admin");
    assert_eq!((&newest["request_id"], &newest["created_at"]), (&json!("change-2"), &json!(START)));
    assert_eq!(newest["diff_json"]["before"], json!({"version": 1, "config_json": events(10)}));
    assert_eq!(newest["diff_json"]["after"], json!({"version": 2, "config_json": events(20)}));
    assert_eq!(self::changes(&server, "?limit=1").await.len(), 1);
    assert_eq!(self::changes(&server, &format!("?since={}", START + 1)).await.len(), 0);
    let reply = server.admin(Request::get("/v1/admin/audit-logs?limit=many"), "").await;
    reply.is_refused(400, "INVALID_QUERY");
}

async fn an_invalid_document_is_refused_and_not_stored(server: Server, _: Option<&str>) {
    let secret = json!({"config_json": {"descriptor": {"apiKey": "x", "db_password": "y"}}});
    let reply = server.put("bootstrap", &secret).await;
    reply.is_refused(400, "SECRET_CONFIG_FORBIDDEN");
    let paths = json!(["/descriptor/apiKey", "/descriptor/db_password"]);
    assert_eq!(reply.json()["details"]["paths"], paths);

    let wrong = json!({"auth": {"mode": "none"}, "limits": {"max_tags": 0}, "rate_limits": {}});
    let reply = server.put("relay", &json!({"config_json": wrong})).await;
    reply.is_refused(400, "INVALID_CONFIG");
    let problems = reply.json()["details"]["problems"].clone();
    let pointers: Vec<_> =
        problems.as_array().unwrap().iter().map(|problem| &problem["pointer"]).collect();
    assert_eq!(pointers, ["/auth/mode", "/limits/max_tags", "/rate_limits"]);

    server.put("trust", &json!({"config_json": {}})).await.is_refused(404, "NOT_FOUND");
    for body in [json!({}), json!({"config_json": {}, "expected_versoin": 1}), json!([])] {
        server.put("relay", &body).await.is_refused(400, "INVALID_JSON");
    }
    let giant = json!({"config_json": {"descriptor": "x".repeat(70_000)}});
    server.put("bootstrap", &giant).await.is_refused(400, "INVALID_CONFIG");
    let stale = json!({"config_json": {}, "expected_version": 1});
    let reply = server.put("relay", &stale).await;
    reply.is_refused(409, "VERSION_MISMATCH");
    assert_eq!(reply.json()["details"]["current_version"], Value::Null);

    server.admin(Request::get(path("relay")), "").await.is_refused(404, "NOT_FOUND");
    server.admin(Request::get(path("bootstrap")), "").await.is_refused(404, "NOT_FOUND");
    assert_eq!(changes(&server, "").await, Vec::<Value>::new());
}

async fn null_does_not_switch_authentication_off(server: Server, _: Option<&str>) {
    server.configure("relay", json!({"auth": {"mode": "required"}})).await;
    for (auth, pointer) in [(json!({"mode": null}), "/auth/mode"), (Value::Null, "/auth")] {
        let reply = server.put("relay", &json!({"config_json": {"auth": auth}})).await;
        reply.is_refused(400, "INVALID_CONFIG");
        assert_eq!(reply.json()["details"]["problems"][0]["pointer"], pointer);
    }
    let kept = server.admin(Request::get(path("relay")), "").await.json();
    assert_eq!(
        (&kept["version"], &kept["config_json"]["auth"]["mode"]),
        (&json!(1), &json!("required"))
    );
    assert!(server.node.relay.with(|relay| relay.auth.is_enforced(START)));
}

async fn of_two_concurrent_writes_with_one_version_one_wins(server: Server, _: Option<&str>) {
    server.configure("relay", events(1)).await;
    for version in 1..=5 {
        let body = |n: u64| json!({"config_json": events(n), "expected_version": version});
        let (first, second) = (body(100), body(200));
        let replies = tokio::join!(server.put("relay", &first), server.put("relay", &second));
        let (won, lost) = match (replies.0.status.as_u16(), replies.1.status.as_u16()) {
            (200, 409) => (&replies.0, &replies.1),
            (409, 200) => (&replies.1, &replies.0),
            other => panic!("{other:?}"),
        };
        lost.is_refused(409, "VERSION_MISMATCH");
        assert_eq!(lost.json()["details"]["current_version"], version + 1);
        let kept = server.admin(Request::get(path("relay")), "").await.json();
        assert_eq!(kept, won.json());
    }
    assert_eq!(changes(&server, "").await.len(), 6);
}

async fn a_change_that_cannot_be_audited_is_not_made(server: Server, url: Option<&str>) {
    server.configure("relay", events(1)).await;
    console(&server, url, "ALTER TABLE audit_logs RENAME TO audit_logs_away").await;
    let reply = server.put("relay", &json!({"config_json": events(2)})).await;
    reply.is_refused(500, "AUDIT_LOG_ERROR");
    console(&server, url, "ALTER TABLE audit_logs_away RENAME TO audit_logs").await;
    let kept = server.admin(Request::get(path("relay")), "").await.json();
    assert_eq!((&kept["version"], &kept["config_json"]), (&json!(1), &events(1)));
    assert_eq!(server.node.relay.with(|relay| relay.rate_limit.ws.events_per_minute), 1);
}

#[tokio::test]
async fn another_node_applies_a_change_without_polling() {
    let database = tokio::task::spawn_blocking(Postgres::shared).await.unwrap();
    let database = require!(database);
    let variables = [("CN_DATABASE_URL", database.url()), ("CN_CONFIG_POLL_SECONDS", "3600")];
    let [one, other] = [Server::with(&variables).await, Server::with(&variables).await];
    let hears = async |n: u64, patience: Duration| {
        let mut told = other.node.user_api.subscribe();
        one.configure("user-api", json!({"rate_limit": {"public_per_minute": n}})).await;
        let heard = async {
            while other.node.user_api.with(|users| users.rate_limit.public_per_minute) != n {
                told.changed().await.unwrap();
            }
        };
        timeout(patience, heard).await.is_ok()
    };
    // The first may be written before the node listens: it is written again.
    let listens = async { while !hears(2, Duration::from_secs(5)).await {} };
    timeout(PATIENCE, listens).await.expect("the node to listen");
    assert!(hears(1, PATIENCE).await, "without a poll");
    other.get_from("198.51.100.1", "/v1/policies/current").await.is(200);
    other.get_from("198.51.100.1", "/v1/policies/current").await.is_limited();
}
