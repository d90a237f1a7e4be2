//! Query plans: a search by an actor, an action or a target does not read the whole log.

use std::time::Duration;

use headgate_testkit::{Postgres, require};
use sqlx::Row as _;

use super::*;
use crate::{DatabaseConfig, database::Pool};

const MANY_ROWS: &str = "
    INSERT INTO headgate.audit_log (occurred_at, actor, request_id, action, target)
    SELECT now(), 'a' || n % 500, 'r' || n, 'x' || n % 500, 't' || n % 500
    FROM generate_series(1, 50000) n;
    ANALYZE headgate.audit_log";

/// Searches by one field, and the index that finds it.
fn cases() -> [(AuditFilter, &'static str); 4] {
    let (any, text) = (AuditFilter::default, |text: &str| Some(text.to_owned()));
    [
        (AuditFilter { actor: text("a1"), ..any() }, "audit_log_actor"),
        (AuditFilter { action: text("x1"), ..any() }, "audit_log_action"),
        (AuditFilter { target: text("t1"), ..any() }, "audit_log_target"),
        (AuditFilter { target: text("t1"), action: text("x1"), ..any() }, "audit_log_target"),
    ]
}

async fn migrated(url: &str) -> Database {
    let config = DatabaseConfig::from_url(url).unwrap();
    let database = Database::open(&config.connect_timeout(Duration::from_secs(120)));
    database.migrate().await.unwrap();
    database
}

/// Returns the plans of counting and of listing.
async fn plans(database: &Database, filter: &AuditFilter) -> [String; 2] {
    let Search { count, list } = Search::of(filter);
    let count = plan(database, count, |explain| filtered(explain, filter)).await;
    let page = |explain| filtered(explain, filter).bind(20_u32).bind(0_u32);
    [count, plan(database, list, page).await]
}

async fn plan(
    database: &Database,
    sql: &str,
    bound: impl FnOnce(&'static str) -> Statement,
) -> String {
    match database.pool() {
        Pool::Postgres { pool, .. } => {
            let explain = bound(format!("EXPLAIN {sql}").leak()).for_postgres();
            let rows = explain.fetch_all(pool).await.unwrap();
            rows.iter().map(|row| row.get::<String, _>(0) + "\n").collect()
        }
        Pool::Sqlite { pool, .. } => {
            let explain = bound(format!("EXPLAIN QUERY PLAN {sql}").leak()).for_sqlite();
            let rows = explain.fetch_all(pool).await.unwrap();
            rows.iter().map(|row| row.get::<String, _>("detail") + "\n").collect()
        }
    }
}

async fn each_search_is_by_its_index(database: &Database) {
    for (filter, index) in cases() {
        for plan in plans(database, &filter).await {
            assert!(plan.contains(index), "{filter:?}: {plan}");
        }
    }
}

#[tokio::test]
async fn each_search_is_by_its_index_on_sqlite() {
    each_search_is_by_its_index(&migrated("sqlite::memory:").await).await;
}

#[tokio::test]
async fn each_search_is_by_its_index_on_postgres() {
    let home = require!(Postgres::shared());
    let database = migrated(home.url()).await;
    home.psql(MANY_ROWS);
    each_search_is_by_its_index(&database).await;
}
