//! Query plans: what a statement reads must not grow with the history or the live request ids.

use std::time::Duration;

use headgate_testkit::{Postgres, require};
use sqlx::Row as _;

use super::*;
use crate::{
    DatabaseConfig,
    database::Pool,
    quotas::{
        period_keys::{DELETE, DELETE_REQUEST_IDS, DELETE_RESERVATIONS, MARK},
        unused::{DELETE_POLICIES, SELECT_PAGE, SELECT_PERIODS},
    },
};

/// A statement for both databases, and its parameters.
struct Case {
    sql: (&'static str, &'static str),
    bind: fn(Statement) -> Statement,
}

/// 20,000 closed periods, most of them without request ids, and 40,000 live request ids.
const MANY_ROWS: &str = "
    INSERT INTO quota.quota_usages (policy_id, period_name, period_start, period_end, quota_limit,
        used, closed_at, updated_at, ids_deleted)
    SELECT 'quota_' || p, d::text, now() - (d + 1) * interval '1 day', now() - d * interval '1 day',
        10, 1, now(), now() - d * interval '1 day', d > 7
    FROM generate_series(1, 200) p, generate_series(1, 100) d;
    INSERT INTO quota.quota_increments (policy_id, period_name, request_id, amount, used,
        quota_limit, created_at)
    SELECT 'quota_' || p, d::text, 'r' || r, 1, 1, 10, now()
    FROM generate_series(1, 200) p, generate_series(1, 5) d, generate_series(1, 40) r;
    INSERT INTO quota.quota_reservations (policy_id, period_name, id, amount, held, charged,
        returned, owed, status, metered, ttl_seconds, expires_at, created_at)
    SELECT 'quota_' || p, d::text, 'r' || r, 1, 0, 1, 0, 0, 'settled', false, 1, now(), now()
    FROM generate_series(1, 200) p, generate_series(1, 5) d, generate_series(1, 40) r;
    INSERT INTO quota.quota_policies (id, name, subject_type, subject_id, quota_limit, period,
        updated_at, revision)
    SELECT 'quota_' || p, 'free', 'user', p::text, 10, 'daily', now() - interval '99 days', 1
    FROM generate_series(1, 20000) p;
    ANALYZE quota.quota_usages, quota.quota_increments, quota.quota_reservations,
        quota.quota_policies";

const BEFORE: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

const POLICIES: &str = r#"["quota_1"]"#;

const KEYS: &str = r#"[{"policy_id":"quota_1","period_name":"90"}]"#;

fn cases() -> Vec<Case> {
    vec![
        case((WITH_IDS, WITH_IDS), |it| it.bind(BEFORE).bind(1_000_u32)),
        case((OLD, OLD), |it| it.bind(BEFORE).bind(1_000_u32)),
        case(DELETE_REQUEST_IDS, |it| it.bind(KEYS).bind(5_000_u32)),
        case(DELETE_RESERVATIONS, |it| it.bind(KEYS).bind(5_000_u32)),
        case(MARK, |it| it.bind(KEYS)),
        case(DELETE, |it| it.bind(KEYS)),
        case((SELECT_PAGE, SELECT_PAGE), |it| unused(it).bind("").bind(500_u32)),
        case(SELECT_PERIODS, |it| unused(it).bind(POLICIES).bind(1_000_u32)),
        case(DELETE_POLICIES, |it| unused(it).bind(POLICIES)),
    ]
}

fn case(sql: (&'static str, &'static str), bind: fn(Statement) -> Statement) -> Case {
    Case { sql, bind }
}

/// Binds the selection of unused policies.
fn unused(statement: Statement) -> Statement {
    statement.bind("free").bind("user").bind("daily").bind(BEFORE)
}

/// Returns the plan of a statement.
async fn plan(database: &Database, case: &Case) -> Vec<String> {
    let on_postgres = format!("EXPLAIN {}", case.sql.0).leak();
    let on_sqlite = format!("EXPLAIN QUERY PLAN {}", case.sql.1).leak();
    let statement = (case.bind)(Statement::either(on_postgres, on_sqlite));
    match database.pool() {
        Pool::Postgres { pool, .. } => {
            let rows = statement.for_postgres().fetch_all(pool).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        }
        Pool::Sqlite { pool, .. } => {
            let rows = statement.for_sqlite().fetch_all(pool).await.unwrap();
            rows.iter().map(|row| row.get("detail")).collect()
        }
    }
}

async fn migrated(url: &str) -> Database {
    let config = DatabaseConfig::from_url(url).unwrap();
    let database = Database::open(&config.connect_timeout(Duration::from_secs(60)));
    database.migrate().await.unwrap();
    database
}

#[tokio::test]
async fn sqlite_searches_every_table_by_an_index() {
    let database = migrated("sqlite::memory:").await;
    for case in cases() {
        let plan = plan(&database, &case).await;
        // Lists of parameters and the page of policies, which has a limit, are read as a whole.
        let is_whole = |step: &&String| {
            step.starts_with("SCAN") && !step.contains("VIRTUAL TABLE") && *step != "SCAN p"
        };
        assert_eq!(plan.iter().find(is_whole), None, "{}: {plan:#?}", case.sql.1);
        let finds_ids = case.sql.1 == WITH_IDS;
        let is_by_mark = |step: &String| step.contains("quota_usages_with_ids");
        assert!(!finds_ids || plan.iter().any(is_by_mark), "{plan:#?}");
    }
}

#[tokio::test]
async fn postgres_searches_every_table_by_an_index() {
    let home = require!(Postgres::shared());
    let database = migrated(home.url()).await;
    home.psql(MANY_ROWS);
    for case in cases() {
        let plan = plan(&database, &case).await;
        let is_whole = |step: &&String| step.contains("Seq Scan on quota_");
        assert_eq!(plan.iter().find(is_whole), None, "{}: {plan:#?}", case.sql.0);
        let finds_ids = case.sql.0 == WITH_IDS;
        let is_by_mark = |step: &String| step.contains("quota_usages_with_ids");
        assert!(!finds_ids || plan.iter().any(is_by_mark), "{plan:#?}");
    }
}
