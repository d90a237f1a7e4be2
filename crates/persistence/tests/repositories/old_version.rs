//! A server of an older version on upgraded tables. Its program is not there; its SQL is, as
//! commit 73f1d36 has it, with values in place of parameters.

use headgate_persistence::SchemaVersion;
use headgate_ratelimit::RateLimitRuleRepository;
use sqlx::{AssertSqlSafe, Connection, SqliteConnection};

use crate::support::{Home, create, everything, on_both, spec};

const SQLITE: &str = include_str!("../fixtures/73f1d36/sqlite.sql");
const POSTGRES: &str = include_str!("../fixtures/73f1d36/postgres.sql");

/// Its changes of rules, with the audit log.
const RULES: &str = "
    BEGIN;
    UPDATE revisions SET revision = revision + 1 WHERE name = 'rate_limit_rules' RETURNING revision;
    SELECT id, name, scope, identifier_pattern, limit_count, window_secs, algorithm, burst,
        fail_mode, enabled, created_at, updated_at FROM rate_limit_rules;
    INSERT INTO rate_limit_rules (id, name, scope, identifier_pattern, limit_count, window_secs,
        algorithm, burst, fail_mode, enabled, created_at, updated_at)
    VALUES ('00000000-0000-4000-8000-000000000001', 'old', 'user', 'old', 1, 60, 'token_bucket',
        NULL, 'local', TRUE, :now, :now);
    UPDATE rate_limit_rules SET identifier_pattern = '{' || CAST(id AS TEXT)
    WHERE id = '00000000-0000-4000-8000-000000000001';
    UPDATE rate_limit_rules SET name = NULL, scope = 'user', identifier_pattern = 'older',
        limit_count = 2, window_secs = 60, algorithm = 'fixed_window', burst = NULL,
        fail_mode = 'closed', enabled = TRUE, created_at = :now, updated_at = :now
    WHERE id = '00000000-0000-4000-8000-000000000001';
    SELECT scope, identifier_pattern FROM rate_limit_rules
    GROUP BY scope, identifier_pattern HAVING count(*) > 8;
    INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    VALUES (:now, 'old', 'req_1', 'rule.create', 'x', NULL, NULL, NULL);
    DELETE FROM rate_limit_rules WHERE identifier_pattern = 'u1';
    COMMIT;";

/// Its changes of quotas: policies, usage, request ids, events and deliveries.
const QUOTAS: &str = "
    BEGIN;
    UPDATE revisions SET revision = revision + 1 WHERE name = 'quota_policies' RETURNING revision;
    INSERT INTO quota_policies (id, name, subject_type, subject_id, quota_limit, period, time_zone,
        enabled, alert_threshold_percent, created_at, updated_at, revision)
    VALUES ('quota_old', 'Old', 'user', 'old', 5, 'daily', NULL, TRUE, NULL, :now, :now, 6);
    UPDATE quota_policies SET name = 'Older', subject_type = 'user', subject_id = 'old',
        quota_limit = 6, period = 'daily', time_zone = NULL, enabled = TRUE,
        alert_threshold_percent = 50, created_at = :now, updated_at = :now, revision = 6
    WHERE id = 'quota_old';
    INSERT INTO quota_usages (policy_id, period_name, period_start, period_end, quota_limit, used,
        updated_at)
    VALUES ('quota_old', '2026-11-17', :now, :later, 6, 0, :now);
    UPDATE quota_usages SET used = 6, quota_limit = 6, exceeded_told = TRUE, updated_at = :now
    WHERE policy_id = 'quota_old';
    INSERT INTO quota_increments (policy_id, period_name, request_id, amount, used, quota_limit,
        created_at)
    VALUES ('quota_old', '2026-11-17', 'r', 6, 6, 6, :now);
    INSERT INTO quota_events (event_id, kind, policy_id, subject_type, subject_id, period,
        quota_limit, used, alert_threshold_percent, occurred_at, reset_at)
    VALUES ('quota_old:2026-11-17:exceeded', 'QUOTA_EXCEEDED', 'quota_old', 'user', 'old', 'daily',
        6, 6, 50, :now, :later);
    INSERT INTO quota_deliveries (sink, event_id, delivered_at)
    VALUES ('kafka', 'quota_old:2026-11-17:exceeded', :now);
    INSERT INTO quota_sinks (sink, delivered_through) VALUES ('kafka', 4)
    ON CONFLICT (sink) DO UPDATE SET delivered_through = 4;
    DELETE FROM quota_policies WHERE id = 'quota_old';
    COMMIT;";

/// Its changes of service documents.
const DOCUMENTS: &str = "
    BEGIN;
    UPDATE service_configs
    SET version = version + 1, config_json = '{}', updated_at = :now, updated_by = 'old'
    WHERE service = 'relay' AND version = 2 RETURNING version;
    INSERT INTO service_configs (service, version, config_json, updated_at, updated_by)
    VALUES ('user-api', 1, '{}', :now, 'old') ON CONFLICT (service) DO NOTHING RETURNING version;
    INSERT INTO audit_logs
        (actor_admin_user_id, action, target, diff_json, request_id, created_at)
    VALUES ('old', 'service_config.update', 'service:relay', '{}', 'req_1', :now);
    INSERT INTO service_states (service, instance, version, source, seen_at)
    VALUES ('relay', 'i', 3, 'database', :now)
    ON CONFLICT (service, instance) DO UPDATE
    SET version = excluded.version, source = excluded.source, seen_at = excluded.seen_at;
    DELETE FROM service_states WHERE seen_at < :now;
    COMMIT;";

on_both!(the_sql_of_an_older_version_works_on_upgraded_tables);

/// Loads the database that the older version has written.
async fn load(home: &Home) {
    match home {
        Home::Postgres(database) => drop(database.psql(POSTGRES)),
        Home::Sqlite(_) => {
            let url = format!("{}?mode=rwc", home.url());
            let mut connection = SqliteConnection::connect(&url).await.unwrap();
            let sql = AssertSqlSafe(SQLITE.to_owned());
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

async fn the_sql_of_an_older_version_works_on_upgraded_tables(home: &Home) {
    load(home).await;
    let database = home.open();
    let SchemaVersion { applied, known, .. } = database.migrate().await.unwrap();
    assert!(applied == known && applied > 3);
    create(&database, spec("new", 60), 0).await;

    let (now, later) = match home {
        Home::Sqlite(_) => ("1794852077965000", "1794852077966000"),
        Home::Postgres(_) => ("now()", "now() + interval '1 hour'"),
    };
    let mut console = home.console().await;
    for sql in [RULES, QUOTAS, DOCUMENTS] {
        console.run(&sql.replace(":now", now).replace(":later", later)).await;
    }

    let (revision, rules, audit) = everything(&database).await;
    assert_eq!(revision, 11);
    let mut patterns: Vec<_> =
        rules.iter().map(|rule| rule.spec.identifier_pattern.to_string()).collect();
    patterns.sort();
    assert_eq!(patterns, ["*", "/v1/*", "Zoë 💡", "billing", "new", "older", "u*"]);
    assert_eq!(audit[0].author.actor, "old");
    // It goes on writing after the older one.
    create(&database, spec("newer", 60), 1).await;
    assert_eq!(database.load().await.unwrap().1.len(), 8);
}
