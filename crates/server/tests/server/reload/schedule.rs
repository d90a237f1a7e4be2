//! Schedules, retention and intervals of quotas, and the retention of the audit log.

use std::time::Duration;

use headgate::{Clock as _, SystemClock};
use headgate_testkit::{Redis, require};
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::Reloadable;
use crate::events::support::exhausted;

/// More than a minute, the shortest interval of a schedule.
const LIMIT: Duration = Duration::from_secs(180);

/// The end of a period that is long over: 100 days ago, in microseconds.
fn long_ago() -> u64 {
    SystemClock::new().now().as_micros() - 100 * 24 * 60 * 60 * 1_000_000
}

/// A SQLite file beside the server.
struct Database(TempDir);

impl Database {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> String {
        format!("sqlite://{}/headgate.db", self.0.path().display())
    }

    /// A configuration that keeps everything, and closes periods once a year.
    fn yaml(&self, quota: &str, audit: &str) -> String {
        let mut yaml = format!(
            "database: {{url: '{}'}}\n{audit}quota:\n  \
             reset_schedule: {{daily: '0 0 1 1 *', monthly: '0 0 1 1 *'}}\n  \
             retention: {{periods_days: 3650, request_ids_days: 3650, events_days: 3650}}\n",
            self.url()
        );
        if let Some((old, new)) = quota.split_once(" => ") {
            assert!(yaml.contains(old), "{old}");
            yaml = yaml.replace(old, new);
        }
        yaml
    }

    async fn connect(&self) -> SqliteConnection {
        SqliteConnection::connect(&self.url()).await.unwrap()
    }

    async fn execute(&self, sql: String) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn count(&self, what: &str) -> i64 {
        let mut connection = self.connect().await;
        let sql = AssertSqlSafe(format!("SELECT count(*) FROM {what}"));
        let count = sqlx::query_scalar(sql).fetch_one(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        count
    }

    /// Waits until there is nothing left of `what`.
    async fn until_none(&self, what: &str) {
        let none = async {
            while self.count(what).await > 0 {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(LIMIT, none).await.unwrap_or_else(|_| panic!("{what} is still there"));
    }

    /// Writes usage of a period that is over, and closed if there is a time of that.
    async fn write_usage(&self, policy: &str, closed_at: &str) {
        let end = long_ago();
        let start = end - 1_000_000;
        self.execute(format!(
            "INSERT INTO quota_usages (policy_id, period_name, period_start, period_end, \
             quota_limit, used, closed_at, updated_at) \
             VALUES ('{policy}', '2020-01-01', {start}, {end}, 10, 1, {closed_at}, {end})"
        ))
        .await;
    }
}

#[tokio::test]
async fn retention() {
    let database = Database::new();
    let server = Reloadable::start(&database.yaml("", "")).await;
    let then = long_ago();
    database.write_usage("old", &then.to_string()).await;
    database
        .execute(format!(
            "INSERT INTO quota_increments (policy_id, period_name, request_id, amount, used,
                 quota_limit, created_at)
             VALUES ('old', '2020-01-01', 'r', 1, 1, 10, {then});
             INSERT INTO quota_events (event_id, kind, policy_id, subject_type, subject_id, period,
                 quota_limit, used, occurred_at, reset_at)
             VALUES ('old', 'QUOTA_EXCEEDED', 'old', 'tenant', 't', '2020-01-01', 10, 10, {then},
                 {then});
             INSERT INTO audit_log (occurred_at, actor, request_id, action, target)
             VALUES ({then}, 'old', 'r', 'rule.create', 't')"
        ))
        .await;
    let usages = "quota_usages WHERE policy_id = 'old'";
    let increments = "quota_increments WHERE policy_id = 'old'";
    let events = "quota_events WHERE policy_id = 'old'";
    let audit = "audit_log WHERE actor = 'old'";
    let mut kept = vec![usages, increments, events, audit];
    for (change, audit_section, key, deleted) in [
        ("request_ids_days: 3650 => request_ids_days: 30", "", "request_ids_days", increments),
        ("events_days: 3650 => events_days: 30", "", "events_days", events),
        ("", "audit: {retention_days: 30}\n", "audit.retention_days", audit),
        ("periods_days: 3650 => periods_days: 30", "", "periods_days", usages),
    ] {
        let applied = server.reload(&database.yaml(change, audit_section)).await;
        assert!(applied.iter().any(|applied| applied.ends_with(key)), "{key}: {applied:?}");
        database.until_none(deleted).await;
        kept.retain(|what| *what != deleted);
        for what in &kept {
            assert_eq!(database.count(what).await, 1, "{key}: {what}");
        }
    }
}

#[tokio::test]
async fn schedule_of_closing_periods() {
    // Each waits for the next minute.
    tokio::join!(closes_by_the_schedule("daily"), closes_by_the_schedule("monthly"));
}

async fn closes_by_the_schedule(key: &str) {
    let database = Database::new();
    let server = Reloadable::start(&database.yaml("", "")).await;
    let change = format!("{key}: '0 0 1 1 *' => {key}: '* * * * *'");
    let applied = server.reload(&database.yaml(&change, "")).await;
    assert_eq!(applied, [format!("quota.reset_schedule.{key}")]);
    // A reload closes periods by itself. What comes after that waits for the schedule.
    for policy in ["first", "second"] {
        database.write_usage(policy, "NULL").await;
        let open = format!("quota_usages WHERE policy_id = '{policy}' AND closed_at IS NULL");
        database.until_none(&open).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn interval_of_comparing_counters() {
    let redis = require!(Redis::start());
    let yaml = |seconds: u32| {
        format!(
            "redis: {{url: '{}', timeout_ms: 30000}}\n\
             quota: {{reconcile_interval_seconds: {seconds}}}\n",
            redis.url()
        )
    };
    let server = Reloadable::start(&yaml(3600)).await;
    exhausted(&server.server, "tenant").await;
    redis.cli(&["FLUSHALL"]);
    server.reload(&yaml(1)).await;
    let corrected = async {
        loop {
            let text = server.server.get("/metrics").await.text;
            let rebuilt = "headgate_quota_counters_rebuilt_total{";
            let line = text.lines().find(|line| line.starts_with(rebuilt)).expect(rebuilt);
            if !line.ends_with(" 0") {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(LIMIT, corrected).await.expect("a comparison");
}
