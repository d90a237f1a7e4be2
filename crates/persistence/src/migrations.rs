//! The tables, versioned. A migration that was released is never changed.

pub(crate) mod home;
mod version;

use std::time::Duration;

use sqlx::{
    AssertSqlSafe, Connection, PgConnection, PgPool, SqlSafeStr, SqlitePool,
    migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator},
};
use tokio::time::timeout;
use tracing::info;

pub use self::version::SchemaVersion;
use crate::{
    cutoff::Cutoff,
    outage::Outage,
    postgres::{CN_ADMIN_SCHEMA, QUOTA_SCHEMA, RATELIMIT_SCHEMA},
    sqlite,
};

/// How long to wait for another replica's migrations, and how long ours may take.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Where applied migrations are written down.
const TABLE: &str = "headgate_migrations";

/// Each with its version, its name, and its SQL for either database.
const MIGRATIONS: [(i64, &str, &str, &str); 7] = [
    (
        1,
        "rules",
        include_str!("../migrations/postgres/0001_rules.sql"),
        include_str!("../migrations/sqlite/0001_rules.sql"),
    ),
    (
        2,
        "quotas",
        include_str!("../migrations/postgres/0002_quotas.sql"),
        include_str!("../migrations/sqlite/0002_quotas.sql"),
    ),
    (
        3,
        "service_configs",
        include_str!("../migrations/postgres/0003_service_configs.sql"),
        include_str!("../migrations/sqlite/0003_service_configs.sql"),
    ),
    (
        4,
        "changes",
        include_str!("../migrations/postgres/0004_changes.sql"),
        include_str!("../migrations/sqlite/0004_changes.sql"),
    ),
    (
        5,
        "fail_mode_capped",
        include_str!("../migrations/postgres/0005_fail_mode_capped.sql"),
        include_str!("../migrations/sqlite/0005_fail_mode_capped.sql"),
    ),
    (
        6,
        "denylist",
        include_str!("../migrations/postgres/0006_denylist.sql"),
        include_str!("../migrations/sqlite/0006_denylist.sql"),
    ),
    (
        7,
        "service_kinds",
        include_str!("../migrations/postgres/0007_service_kinds.sql"),
        include_str!("../migrations/sqlite/0007_service_kinds.sql"),
    ),
];

/// Brings PostgreSQL's tables up to date; replicas that start together do it one by one.
///
/// What no area owns is in `preferred`, unless the database has it in another schema already; then
/// `cutoff` retires the connections that do not know yet.
pub(crate) async fn run_on_postgres(
    pool: &PgPool,
    preferred: &str,
    cutoff: &Cutoff,
) -> Result<SchemaVersion, Outage> {
    let migrator = migrator(|(.., postgres, _)| postgres);
    within(async {
        // Not the pool's any more: whatever happens, the lock goes with the connection.
        let mut connection = pool.acquire().await?.detach();
        let settings = AssertSqlSafe(format!("SET statement_timeout = {}", TIMEOUT.as_millis()));
        sqlx::raw_sql(settings).execute(&mut connection).await?;
        connection.lock().await?;
        // Another server may have made it since this connection was opened.
        let home = home::find(&mut connection, preferred).await?;
        let schemas = [&*home, RATELIMIT_SCHEMA, QUOTA_SCHEMA, CN_ADMIN_SCHEMA];
        create_schemas(&mut connection, &schemas).await?;
        home::enter(&mut connection, &home).await?;
        let version = SchemaVersion::read(&mut connection).await?;
        migrator.run_direct(None, &mut connection, false).await?;
        // What is done is done, however the connection ends.
        connection.close().await.ok();
        if home != preferred {
            info!("Using the schema {home}, where this database has its audit log");
            cutoff.renew();
        }
        Ok(version.migrated())
    })
    .await
}

/// Brings the tables of a SQLite file up to date; processes that start together take turns.
pub(crate) async fn run_on_sqlite_file(pool: &SqlitePool) -> Result<SchemaVersion, Outage> {
    within(async {
        let mut connection = pool.acquire().await?;
        Ok(sqlite::switch_to_wal(&mut connection).await?)
    })
    .await?;
    run_on_sqlite(pool).await
}

/// Brings SQLite's tables up to date, all or nothing, while no other process writes.
pub(crate) async fn run_on_sqlite(pool: &SqlitePool) -> Result<SchemaVersion, Outage> {
    let migrator = migrator(|(.., sqlite)| sqlite);
    within(async {
        let mut transaction = sqlite::begin_in_turn(pool).await?;
        let version = SchemaVersion::read(&mut *transaction).await?;
        migrator.run_direct(None, &mut *transaction, false).await?;
        transaction.commit().await?;
        Ok(version.migrated())
    })
    .await
}

fn migrator(sql: impl Fn((i64, &str, &'static str, &'static str)) -> &'static str) -> Migrator {
    let migration = |all: (i64, &'static str, &'static str, &'static str)| {
        let (version, name, ..) = all;
        let sql = sql(all).into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    };
    let mut migrator = Migrator::with_migrations(MIGRATIONS.map(migration).into());
    migrator.dangerous_set_table_name(TABLE);
    // We lock by ourselves. While replicas are replaced by newer ones, an older one can start:
    // it finds migrations that it does not know, as many as `SchemaVersion` tolerates.
    migrator.set_locking(false).set_ignore_missing(true);
    migrator
}

/// `CREATE SCHEMA IF NOT EXISTS` asks for a right that is not needed when the schema is there.
async fn create_schemas(
    connection: &mut PgConnection,
    schemas: &[&str],
) -> Result<(), MigrateError> {
    for schema in schemas {
        let exists = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
        let exists = sqlx::query_scalar(exists).bind(schema).fetch_one(&mut *connection);
        if !exists.await? {
            info!("Creating the schema {schema}");
            connection.create_schema_if_not_exists(&format!("\"{schema}\"")).await?;
        }
    }
    Ok(())
}

async fn within<T>(migration: impl Future<Output = Result<T, Outage>>) -> Result<T, Outage> {
    timeout(TIMEOUT, migration).await.map_err(|_| Outage::NoAnswer(TIMEOUT))?
}
