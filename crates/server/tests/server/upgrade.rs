//! Databases that an older server has written: commit 73f1d36, schema version 3.
//! `scripts/upgrade-fixture` recorded them.

use std::{fs, os::unix::fs::OpenOptionsExt, path::Path, time::Duration};

use headgate_testkit::{Database, Postgres, Redis, Skip, require};
use ring::digest;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use crate::{events::receiver::Receiver, harness::Server};

const SQLITE: &str = include_str!("../../../persistence/tests/fixtures/73f1d36/sqlite.sql");
const POSTGRES: &str = include_str!("../../../persistence/tests/fixtures/73f1d36/postgres.sql");
const TOKEN: &str = include_str!("../../../persistence/tests/fixtures/73f1d36/admin-token");

/// The webhook to which the old server has delivered one of its three events.
const OLD_WEBHOOK: &str = "webhook:f9881096a0b41e347a7720437b978b59";

/// Moves the usage of the monthly quota to the current month.
const THIS_MONTH_ON_SQLITE: &str = "
    UPDATE quota_increments SET period_name = strftime('%Y-%m', 'now') WHERE period_name = '2026-11';
    UPDATE quota_usages SET period_name = strftime('%Y-%m', 'now'),
        period_start = 1000000 * unixepoch('now', 'start of month'),
        period_end = 1000000 * unixepoch('now', 'start of month', '+1 month')
    WHERE period_name = '2026-11';";
const THIS_MONTH_ON_POSTGRES: &str = "
    SET timezone = 'UTC';
    UPDATE quota.quota_increments SET period_name = to_char(now(), 'YYYY-MM')
    WHERE period_name = '2026-11';
    UPDATE quota.quota_usages SET period_name = to_char(now(), 'YYYY-MM'),
        period_start = date_trunc('month', now()),
        period_end = date_trunc('month', now()) + interval '1 month'
    WHERE period_name = '2026-11';";

/// A data folder and a database of the old server.
struct OldServer {
    data: TempDir,
    database: OldDatabase,
}

enum OldDatabase {
    Sqlite,
    Postgres(Database, Box<Redis>),
}

impl OldServer {
    async fn on_sqlite() -> Self {
        let old = Self::new(OldDatabase::Sqlite);
        old.sql(SQLITE).await;
        old
    }

    async fn on_postgres() -> Result<Self, Skip> {
        let old = Self::new(OldDatabase::Postgres(Postgres::shared()?, Box::new(Redis::start()?)));
        old.sql(POSTGRES).await;
        Ok(old)
    }

    fn new(database: OldDatabase) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut token = fs::OpenOptions::new();
        let mut token =
            token.write(true).create_new(true).mode(0o600).open(data.path().join("admin-token"));
        std::io::Write::write_all(token.as_mut().unwrap(), TOKEN.as_bytes()).unwrap();
        Self { data, database }
    }

    async fn sql(&self, sql: &str) {
        match &self.database {
            OldDatabase::Postgres(database, _) => drop(database.psql(sql)),
            OldDatabase::Sqlite => {
                let url = format!("sqlite://{}?mode=rwc", self.file().display());
                let mut connection = SqliteConnection::connect(&url).await.unwrap();
                let sql = AssertSqlSafe(sql.to_owned());
                sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
                connection.close().await.unwrap();
            }
        }
    }

    fn file(&self) -> std::path::PathBuf {
        self.data.path().join("headgate.db")
    }

    async fn move_usage_to_this_month(&self) {
        self.sql(match self.database {
            OldDatabase::Sqlite => THIS_MONTH_ON_SQLITE,
            OldDatabase::Postgres(..) => THIS_MONTH_ON_POSTGRES,
        })
        .await;
    }

    /// Starts a server of today with the old server's files, its database and its token.
    async fn upgraded(&self, more: &[(&str, &str)]) -> Server {
        let folder: &Path = self.data.path();
        let mut keys = vec![
            ("server.data_dir", folder.to_str().unwrap().to_owned()),
            ("quota.retention.periods_days", "3650".to_owned()),
            ("quota.retention.request_ids_days", "3650".to_owned()),
            ("quota.retention.events_days", "3650".to_owned()),
        ];
        if let OldDatabase::Postgres(database, redis) = &self.database {
            keys.push(("database.url", database.url().to_owned()));
            keys.push(("redis.url", redis.url()));
            keys.push(("redis.timeout_ms", "30000".to_owned()));
        }
        let keys = keys.iter().map(|(key, value)| (*key, value.as_str()));
        let keys: Vec<_> = keys.chain(more.iter().copied()).collect();
        let server = Server::start_in_place(&keys).await;
        let ready = async {
            while server.get("/readyz").await.json()["status"] != "ready" {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), ready).await.expect("a server that is ready");
        server
    }
}

/// A request with the old server's token.
async fn send(server: &Server, method: &str, path: &str, body: &str) -> Value {
    let reply = server.with_token(Some(TOKEN.trim()), method, path, body).await;
    assert!(reply.status.is_success() || reply.status == 429, "{method} {path}: {}", reply.text);
    reply.json()
}

async fn get(server: &Server, path: &str) -> Value {
    send(server, "GET", path, "").await
}

/// Runs each of these functions as a test on both databases.
macro_rules! on_both_databases {
    ($($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                super::$test(&super::OldServer::on_sqlite().await).await;
            })+
        }

        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                let old = super::OldServer::on_postgres().await;
                super::$test(&super::require!(old)).await;
            })+
        }
    };
}

on_both_databases!(
    everything_is_there_after_an_upgrade,
    limits_and_quotas_continue_after_an_upgrade,
    events_are_delivered_from_where_the_old_server_stopped,
    servers_that_start_together_upgrade_once,
    rules_that_an_old_server_writes_take_effect,
);

async fn everything_is_there_after_an_upgrade(old: &OldServer) {
    let server = old.upgraded(&[]).await;
    let rules = get(&server, "/api/v1/ratelimit/rules").await;
    assert_eq!((&rules["revision"], rules["rules"].as_array().unwrap().len()), (&json!(9), 6));
    let rule = |pattern: &str| {
        let mut rules = rules["rules"].as_array().unwrap().iter();
        rules.find(|rule| rule["identifier_pattern"] == pattern).unwrap().clone()
    };
    assert_eq!(rule("u1")["name"], "Three a day");
    assert!(rules["rules"].as_array().unwrap().iter().all(|rule| rule.get("lease").is_none()));
    assert_eq!(
        (&rule("u*")["algorithm"], &rule("u*")["fail_mode"]),
        (&json!("sliding_window"), &json!("open"))
    );
    assert_eq!(
        (&rule("billing")["burst"], &rule("billing")["fail_mode"]),
        (&json!(80), &json!("closed"))
    );
    assert_eq!(
        (&rule("/v1/*")["algorithm"], &rule("/v1/*")["fail_mode"]),
        (&json!("leaky_bucket"), &json!("local"))
    );
    assert_eq!((&rule("*")["enabled"], &rule("*")["limit"]), (&json!(false), &json!(7)));
    assert_eq!(
        (&rule("Zoë 💡")["limit"], &rule("Zoë 💡")["algorithm"]),
        (&json!(2), &json!("sliding_window_counter"))
    );

    let audit = get(&server, "/api/v1/ratelimit/audit").await;
    assert_eq!(audit["pagination"]["total_count"], 16);
    let entries = audit["entries"].as_array().unwrap();
    let reset = entries.iter().find(|entry| entry["action"] == "counter.reset").unwrap();
    assert_eq!((&reset["reason"], &reset["target"]), (&json!("support case 7"), &json!("user:u1")));

    let quotas = get(&server, "/api/v1/quotas").await;
    assert_eq!(quotas["pagination"]["total_count"], 3);
    for (name, period, used) in [("Plan", "2026-11", 850), ("Calls", "2026-11-17", 2)] {
        let mut quotas = quotas["quotas"].as_array().unwrap().iter();
        let id = &quotas.find(|quota| quota["name"] == name).unwrap()["id"];
        let history =
            get(&server, &format!("/api/v1/quotas/{}/history", id.as_str().unwrap())).await;
        let usage = &history["history"][0];
        assert_eq!((&usage["period_name"], &usage["used"]), (&json!(period), &json!(used)));
    }

    let events = get(&server, "/api/v1/events").await;
    let kinds: Vec<_> =
        events["events"].as_array().unwrap().iter().map(|event| &event["event_type"]).collect();
    assert_eq!(kinds, ["QUOTA_THRESHOLD_REACHED", "QUOTA_EXCEEDED", "QUOTA_EXCEEDED"]);

    let relay = get(&server, "/api/v1/services/relay").await;
    assert_eq!(
        (&relay["version"], &relay["config"]),
        (&json!(2), &json!({"rate_limit": {"enabled": false}}))
    );
    let changes = get(&server, "/api/v1/services/relay/changes").await;
    assert_eq!(changes["changes"].as_array().unwrap().len(), 2);
}

async fn limits_and_quotas_continue_after_an_upgrade(old: &OldServer) {
    old.move_usage_to_this_month().await;
    let server = old.upgraded(&[]).await;
    for allowed in [true, true, true, false] {
        assert_eq!(server.check_user("u1").await.json()["allowed"], allowed);
    }

    let quotas = get(&server, "/api/v1/quotas").await;
    let plan = quotas["quotas"].as_array().unwrap().iter().find(|quota| quota["name"] == "Plan");
    let path = format!("/api/v1/quotas/{}/usage", plan.unwrap()["id"].as_str().unwrap());
    assert_eq!(get(&server, &path).await["used"], 850);
    let increment = async |amount: u64, request_id: &str| {
        let body = json!({"amount": amount, "request_id": request_id}).to_string();
        let path = format!("{path}/increment");
        let reply = server.with_token(Some(TOKEN.trim()), "POST", &path, &body).await;
        (reply.status.as_u16(), reply.json()["used"].as_u64())
    };
    // A request id that the old server has charged, and one that it has not.
    assert_eq!(increment(550, "second").await, (200, Some(850)));
    assert_eq!(increment(200, "third").await.0, 429);
    assert_eq!(increment(150, "fourth").await, (200, Some(1000)));
    assert_eq!(increment(1, "fifth").await.0, 429);
    // What the old server has charged can be refunded, and then reserved.
    let post = async |path: &str, body: Value| {
        let reply = server.with_token(Some(TOKEN.trim()), "POST", path, &body.to_string()).await;
        assert!(reply.status.is_success(), "{}", reply.text);
        reply.json()
    };
    let refunded = post(&format!("{path}/refund"), json!({"request_id": "second"})).await;
    assert_eq!((&refunded["refunded"], &refunded["used"]), (&json!(550), &json!(450)));
    let reservations = path.replace("/usage", "/reservations");
    let reserved = post(&reservations, json!({"amount": 550})).await;
    assert_eq!((&reserved["used"], &reserved["reserved"]), (&json!(450), &json!(550)));
    let settle = format!("{reservations}/{}/settle", reserved["id"].as_str().unwrap());
    assert_eq!(post(&settle, json!({"amount": 550})).await["used"], 1000);
    let events = get(&server, "/api/v1/events").await;
    assert_eq!(events["events"].as_array().unwrap().len(), 3, "each event happens once");
}

async fn events_are_delivered_from_where_the_old_server_stopped(old: &OldServer) {
    let receiver = Receiver::start(&[]).await;
    let hash = digest::digest(&digest::SHA256, receiver.url.as_bytes());
    let sink = u128::from_be_bytes(hash.as_ref()[..16].try_into().unwrap());
    let sink = format!("{sink:032x}");
    let schema = if matches!(old.database, OldDatabase::Sqlite) { "" } else { "quota." };
    for table in ["quota_sinks", "quota_deliveries"] {
        let rename = format!(
            "UPDATE {schema}{table} SET sink = 'webhook:{sink}' WHERE sink = '{OLD_WEBHOOK}'"
        );
        old.sql(&rename).await;
    }
    let webhooks = receiver.config("correct-horse-battery", "");
    let _server = old.upgraded(&[("webhooks", &webhooks)]).await;
    let got = receiver.until(|got| got.len() == 2).await;
    let kinds: Vec<_> = got.iter().map(|delivery| delivery.header("x-headgate-event")).collect();
    assert_eq!(kinds, ["QUOTA_EXCEEDED", "QUOTA_EXCEEDED"]);
}

async fn servers_that_start_together_upgrade_once(old: &OldServer) {
    let servers = tokio::join!(old.upgraded(&[]), old.upgraded(&[]), old.upgraded(&[]));
    for server in [&servers.0, &servers.1, &servers.2] {
        let rules = get(server, "/api/v1/ratelimit/rules").await;
        assert_eq!((&rules["revision"], rules["rules"].as_array().unwrap().len()), (&json!(9), 6));
    }
    let rule =
        json!({"scope": "user", "identifier_pattern": "new", "limit": 1, "window_seconds": 86_400});
    send(&servers.0, "POST", "/api/v1/ratelimit/rules", &rule.to_string()).await;
    let known = async {
        while get(&servers.1, "/api/v1/ratelimit/rules").await["rules"].as_array().unwrap().len()
            != 7
        {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(120), known).await.expect("the rule on another server");
}

/// An old server still runs beside the new one, and does not list what it changed.
async fn rules_that_an_old_server_writes_take_effect(old: &OldServer) {
    let server = old.upgraded(&[]).await;
    let (schema, home, now, yes, notify) = match old.database {
        OldDatabase::Sqlite => ("", "", "1794852077965000", "1", ""),
        OldDatabase::Postgres(..) => (
            "ratelimit.",
            "headgate.",
            "now()",
            "true",
            "SELECT pg_notify('headgate_rate_limit_rules', '');",
        ),
    };
    let write = format!(
        "BEGIN;
        UPDATE {home}revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules';
        INSERT INTO {schema}rate_limit_rules (id, name, scope, identifier_pattern, limit_count,
            window_secs, algorithm, burst, fail_mode, enabled, created_at, updated_at)
        VALUES ('00000000-0000-4000-8000-000000000001', NULL, 'user', 'old', 1, 86400,
            'token_bucket', NULL, NULL, {yes}, {now}, {now});
        {notify}
        COMMIT"
    );
    old.sql(&write).await;
    let applied = async {
        loop {
            let body = json!({"scope": "user", "identifier": "old", "dry_run": true}).to_string();
            if server.post(crate::harness::CHECK, &body).await.json()["limit"] == 1 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(60), applied).await.expect("the old server's rule");
}
