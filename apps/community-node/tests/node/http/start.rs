//! Documents at the start and during outages.

use std::{sync::Arc, time::Duration};

use headgate_testkit::{Postgres, require};
use serde_json::{Value, json};
use sqlx::{Connection as _, SqliteConnection};
use tokio::time::timeout;

use super::harness::{PATIENCE, Server, UNREADABLE_ENTRY};

const HINT: &str = "/v1/bootstrap/hints/latest";

async fn health(server: &Server) -> Value {
    let reply = server.get("/healthz").await;
    reply.is(200);
    reply.json()
}

/// Waits for the server without blocking the node.
async fn off_thread(server: &Arc<Postgres>, act: fn(&Postgres)) {
    let server = Arc::clone(server);
    tokio::task::spawn_blocking(move || act(&server)).await.unwrap();
}

/// Waits until the user API runs on `source`.
async fn until(server: &Server, source: &str) {
    let mut told = server.node.user_api.subscribe();
    let seen = async {
        while server.node.user_api.source().name() != source {
            told.changed().await.unwrap();
        }
    };
    timeout(PATIENCE, seen).await.unwrap();
}

#[tokio::test]
async fn without_documents_it_runs_on_safe_defaults_and_is_well() {
    let server = Server::start().await;
    let health = health(&server).await;
    assert_eq!(health["status"], "ok");
    let expected = json!({"source": "safe_defaults", "version": null, "problem": "missing"});
    assert_eq!(health["services"]["relay"], expected);
    assert_eq!(health["denylist"], "loaded");
    for _ in 0..30 {
        server.get_from("198.51.100.1", HINT).await.is(204);
    }
    server.get_from("198.51.100.1", HINT).await.is_limited();

    server.configure("user-api", json!({})).await;
    assert_eq!(self::health(&server).await["services"]["user-api"]["version"], 1);
    let metrics = server.get("/metrics").await;
    assert_eq!(metrics.header("content-type"), Some("text/plain; version=0.0.4"));
    for line in [
        r#"cn_config_source{service="user-api",source="document"} 1"#,
        r#"cn_config_source{service="user-api",source="safe_defaults"} 0"#,
        r#"cn_config_source{service="relay",source="safe_defaults"} 1"#,
        r#"cn_config_version{service="user-api"} 1"#,
        "cn_up 1",
    ] {
        assert!(metrics.text.contains(line), "{line}: {}", metrics.text);
    }
}

#[tokio::test]
async fn a_restart_forgets_the_minute_and_not_the_day() {
    let before = Server::start().await;
    let config = json!({
        "rate_limit": {"public_per_minute": 1},
        "quota": {"trending_requests_per_day": 1},
    });
    before.configure("user-api", config).await;
    before.get_from("198.51.100.1", HINT).await.is(204);
    before.get_from("198.51.100.1", HINT).await.is_limited();
    before.client(1, "198.51.100.2").await.get("/v1/trending").await.is(200);

    // On the same database, concurrently.
    let after = Server::on(&format!("sqlite://{}", before.file().display())).await;
    after.get_from("198.51.100.1", HINT).await.is(204);
    after.get_from("198.51.100.1", HINT).await.is_limited();
    let ada = after.client(1, "198.51.100.2").await;
    ada.get("/v1/trending").await.is_refused(402, "QUOTA_EXCEEDED");
}

#[tokio::test]
async fn while_the_database_is_away_it_starts_strict_and_goes_on_with_what_it_knows() {
    let server = require!(tokio::task::spawn_blocking(Postgres::start).await.unwrap());
    let server = Arc::new(server);
    off_thread(&server, Postgres::stop).await;
    let url = server.url();
    let variables = [("CN_DATABASE_URL", url.as_str()), ("CN_CONFIG_POLL_SECONDS", "1")];
    let node = timeout(PATIENCE, Server::with(&variables)).await.unwrap();
    let health_now = health(&node).await;
    assert_eq!(health_now["status"], "degraded");
    assert_eq!(health_now["services"]["user-api"]["problem"], "unreadable");
    assert_eq!(health_now["denylist"], "not_loaded");
    // The document may require authentication, so the node does.
    node.get_from("198.51.100.1", HINT).await.is_refused(401, "AUTH_REQUIRED");
    let ada = node.client(1, "198.51.100.2").await;
    ada.get(HINT).await.is(204);
    ada.get("/v1/trending").await.is_refused(500, "DB_ERROR");

    off_thread(&server, Postgres::start_again).await;
    let missing = async {
        while health(&node).await["status"] != "ok" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, missing).await.unwrap();
    assert_eq!(health(&node).await["denylist"], "loaded");
    node.get_from("198.51.100.1", HINT).await.is(204);
    let config = json!({"rate_limit": {"public_per_minute": 77}});
    node.configure("user-api", config).await;
    assert_eq!(node.node.user_api.source().name(), "document");

    off_thread(&server, Postgres::stop).await;
    until(&node, "last_good").await;
    assert_eq!(health(&node).await["status"], "degraded");
    assert_eq!(node.node.user_api.with(|users| users.rate_limit.public_per_minute), 77);
    node.put("user-api", &json!({"config_json": {}})).await.is_refused(500, "DB_ERROR");
    off_thread(&server, Postgres::start_again).await;
    until(&node, "document").await;
}

#[tokio::test]
async fn a_broken_document_changes_nothing_and_one_that_was_there_first_is_safe_defaults() {
    let database = tokio::task::spawn_blocking(Postgres::shared).await.unwrap();
    let database = require!(database);
    let node = Server::on(database.url()).await;
    node.configure("user-api", json!({"rate_limit": {"public_per_minute": 2}})).await;
    // The node may not listen yet: each attempt is another version.
    let broken = async {
        let mut version = 2;
        while node.node.user_api.source().name() != "last_good" {
            database.psql(&format!(
                "UPDATE cn_admin.service_configs SET version = {version},
                     config_json = '{{\"rate_limit\": {{\"public_per_minute\": \"many\"}}}}';
                 NOTIFY cn_admin_config, 'user-api:{version}'"
            ));
            version += 1;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(PATIENCE, broken).await.unwrap();
    for _ in 0..2 {
        node.get_from("198.51.100.1", HINT).await.is(204);
    }
    node.get_from("198.51.100.1", HINT).await.is_limited();
    assert_eq!(health(&node).await["services"]["user-api"]["problem"], "broken");

    let late = Server::on(database.url()).await;
    assert_eq!(late.node.user_api.source().name(), "safe_defaults");
    assert_eq!(health(&late).await["status"], "degraded");
    late.get_from("198.51.100.1", HINT).await.is(204);
}

#[tokio::test]
async fn a_node_that_could_not_read_the_denylist_is_degraded_until_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/node.db", folder.path().display());
    let first = Server::on(&url).await;
    let mut console = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(UNREADABLE_ENTRY).execute(&mut console).await.unwrap();

    // The documents can be read, the denylist cannot.
    let late = Server::on(&url).await;
    let health_now = health(&late).await;
    assert_eq!(
        (&health_now["status"], &health_now["denylist"]),
        (&json!("degraded"), &json!("not_loaded"))
    );
    assert_eq!(health(&first).await["status"], "ok", "it has the list it read at the start");

    sqlx::raw_sql("DELETE FROM denylist").execute(&mut console).await.unwrap();
    let loaded = async {
        while health(&late).await["status"] != "ok" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, loaded).await.unwrap();
    assert_eq!(health(&late).await["denylist"], "loaded");
}
