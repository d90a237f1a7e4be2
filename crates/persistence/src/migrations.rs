//! Migrations of the tables. A released migration is never changed.

mod encoding;
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

/// Timeout for migrations, including those of another replica that runs them first.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Table of applied migrations.
pub(crate) const TABLE: &str = "headgate_migrations";

/// Version, name, and SQL for PostgreSQL and SQLite.
const MIGRATIONS: [(i64, &str, &str, &str); 14] = [
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
    (
        8,
        "leases",
        include_str!("../migrations/postgres/0008_leases.sql"),
        include_str!("../migrations/sqlite/0008_leases.sql"),
    ),
    (
        9,
        "quota_reservations",
        include_str!("../migrations/postgres/0009_quota_reservations.sql"),
        include_str!("../migrations/sqlite/0009_quota_reservations.sql"),
    ),
    (
        10,
        "selectors",
        include_str!("../migrations/postgres/0010_selectors.sql"),
        include_str!("../migrations/sqlite/0010_selectors.sql"),
    ),
    (
        11,
        "overrides",
        include_str!("../migrations/postgres/0011_overrides.sql"),
        include_str!("../migrations/sqlite/0011_overrides.sql"),
    ),
    (
        12,
        "concurrency",
        include_str!("../migrations/postgres/0012_concurrency.sql"),
        include_str!("../migrations/sqlite/0012_concurrency.sql"),
    ),
    (
        13,
        "deleted_ids",
        include_str!("../migrations/postgres/0013_deleted_ids.sql"),
        include_str!("../migrations/sqlite/0013_deleted_ids.sql"),
    ),
    (
        14,
        "audit_by_action",
        include_str!("../migrations/postgres/0014_audit_by_action.sql"),
        include_str!("../migrations/sqlite/0014_audit_by_action.sql"),
    ),
];

/// Migrates PostgreSQL. Replicas that start together take turns.
///
/// Shared tables are in the schema `preferred`, unless the database already has them in another.
/// Then `cutoff` retires the connections that were opened before that was known.
pub(crate) async fn run_on_postgres(
    pool: &PgPool,
    preferred: &str,
    cutoff: &Cutoff,
) -> Result<SchemaVersion, Outage> {
    let migrator = migrator(|(.., postgres, _)| postgres);
    within(async {
        // Detached from the pool: the lock is released with the connection in any case.
        let mut connection = pool.acquire().await?.detach();
        let settings = AssertSqlSafe(format!("SET statement_timeout = {}", TIMEOUT.as_millis()));
        sqlx::raw_sql(settings).execute(&mut connection).await?;
        connection.lock().await?;
        // Another server may have created it since this connection was opened.
        let home = home::find(&mut connection, preferred).await?;
        encoding::check(&mut connection).await?;
        let schemas = [&*home, RATELIMIT_SCHEMA, QUOTA_SCHEMA, CN_ADMIN_SCHEMA];
        create_schemas(&mut connection, &schemas).await?;
        home::enter(&mut connection, &home).await?;
        let version = SchemaVersion::read(&mut connection).await?;
        migrator.run_direct(None, &mut connection, false).await?;
        // The migrations are committed even if this fails.
        connection.close().await.ok();
        if home != preferred {
            info!(
                schema = home,
                "using the schema {home}, in which this database has its audit log"
            );
            cutoff.renew();
        }
        Ok(version.migrated())
    })
    .await
}

/// Migrates a SQLite file. Processes that start together take turns.
pub(crate) async fn run_on_sqlite_file(pool: &SqlitePool) -> Result<SchemaVersion, Outage> {
    within(async {
        let mut connection = pool.acquire().await?;
        Ok(sqlite::switch_to_wal(&mut connection).await?)
    })
    .await?;
    run_on_sqlite(pool).await
}

/// Migrates SQLite in one transaction.
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
    // We take our own lock. During an upgrade an older replica may start and find migrations that
    // it does not know, as many as `SchemaVersion` tolerates.
    migrator.set_locking(false).set_ignore_missing(true);
    migrator
}

/// Checks first, because `CREATE SCHEMA IF NOT EXISTS` needs a privilege even if the schema exists.
async fn create_schemas(
    connection: &mut PgConnection,
    schemas: &[&str],
) -> Result<(), MigrateError> {
    for schema in schemas {
        let exists = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
        let exists = sqlx::query_scalar(exists).bind(schema).fetch_one(&mut *connection);
        if !exists.await? {
            info!(schema, "creating the schema {schema}");
            connection.create_schema_if_not_exists(&format!("\"{schema}\"")).await?;
        }
    }
    Ok(())
}

async fn within<T>(migration: impl Future<Output = Result<T, Outage>>) -> Result<T, Outage> {
    timeout(TIMEOUT, migration).await.map_err(|_| Outage::NoResponse(TIMEOUT))?
}
