//! Facts about a database that an operator wants checked, read without changing its tables.

use headgate::Clock;
use headgate_ratelimit::RepositoryError;

use crate::{
    database::{Database, Pool},
    migrations::SchemaVersion,
    outage::Outage,
    session::Session,
    statement::Statement,
};

/// Facts about a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatabaseInspection {
    /// Product and version, such as `PostgreSQL 17.2`.
    pub product: String,
    /// Version of the tables; `None` if there are none yet.
    pub schema: Option<SchemaVersion>,
    /// Microseconds by which our clock is ahead of the database's; negative if behind. `None` for
    /// SQLite, which uses ours.
    pub clock_ahead: Option<i64>,
    /// Encoding of the database, if it lacks characters; always `None` for SQLite.
    pub poor_encoding: Option<String>,
    /// Schemas and tables whose privileges are missing.
    pub missing_privileges: Vec<String>,
    /// Error of a small write; `None` if it succeeded or was not tried.
    pub write_error: Option<String>,
}

const PRODUCT: (&str, &str) = (
    "SELECT 'PostgreSQL ' || current_setting('server_version') AS product",
    "SELECT 'SQLite ' || sqlite_version() AS product",
);

const HAS_TABLES: (&str, &str) = (
    "SELECT count(*) AS total FROM (SELECT to_regclass('headgate_migrations') AS name) AS found
        WHERE name IS NOT NULL",
    "SELECT count(*) AS total FROM sqlite_master WHERE name = 'headgate_migrations'",
);

const VERSION: &str = "SELECT coalesce(max(version), 0) AS version FROM headgate_migrations";

const POOR_ENCODING: &str = "
    SELECT current_setting('server_encoding') AS encoding
    WHERE current_setting('server_encoding') <> 'UTF8'";

const NOW: &str = "SELECT clock_timestamp() AS now";

/// Without tables, the first server creates schemas.
const CREATE: &str = "
    SELECT 'CREATE on database ' || current_database() AS missing
    WHERE NOT has_database_privilege(current_database(), 'CREATE')";

/// Tables that this user may not use, and schemas in which it may not create tables: that of the
/// migrations table, which every start tries to create, and if migrations are pending (`$1`) all.
const MISSING: &str = "
    SELECT 'SELECT, INSERT, UPDATE, DELETE on table ' || n.nspname || '.' || c.relname AS missing
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind = 'r'
        AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
            AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))
    UNION ALL
    SELECT 'CREATE on schema ' || nspname FROM pg_namespace
    WHERE nspname = ANY (current_schemas(false)) AND NOT has_schema_privilege(oid, 'CREATE')
        AND ($1 OR nspname = current_schema())
    ORDER BY 1";

impl Database {
    /// Inspects the database. Nothing is migrated; one row that is never read is written, if there
    /// are tables.
    pub async fn inspect(&self, clock: &dyn Clock) -> Result<DatabaseInspection, RepositoryError> {
        let mut inspection = self.read_facts(clock).await?;
        if inspection.schema.is_some_and(|schema| !schema.is_too_new()) {
            let probe = self.probe_writes().await;
            inspection.write_error = probe.err().map(|error| error.to_string());
        }
        Ok(inspection)
    }

    async fn read_facts(&self, clock: &dyn Clock) -> Result<DatabaseInspection, Outage> {
        let is_postgres = matches!(self.pool(), Pool::Postgres { .. });
        let mut session = self.reading_for_server().await?;
        let product = session.row(Statement::either(PRODUCT.0, PRODUCT.1)).await?;
        let product = product.ok_or(sqlx::Error::RowNotFound)?.get("product")?;
        let has_tables = session.count(Statement::either(HAS_TABLES.0, HAS_TABLES.1)).await? > 0;
        let schema = if has_tables {
            let row = session.row(Statement::new(VERSION)).await?;
            let applied = row.ok_or(sqlx::Error::RowNotFound)?.get("version")?;
            Some(SchemaVersion::new(applied)).filter(|version| version.applied > 0)
        } else {
            None
        };
        let mut inspection =
            DatabaseInspection { product, schema, ..DatabaseInspection::default() };
        if is_postgres {
            inspection.clock_ahead = Some(clock_ahead(&mut session, clock).await?);
            let poor = session.row(Statement::new(POOR_ENCODING)).await?;
            inspection.poor_encoding = poor.map(|row| row.get("encoding")).transpose()?;
            let missing = match schema {
                Some(schema) => Statement::new(MISSING).bind(schema.applied < schema.known),
                None => Statement::new(CREATE),
            };
            for row in session.rows(missing).await? {
                inspection.missing_privileges.push(row.get("missing")?);
            }
        }
        session.commit().await?;
        Ok(inspection)
    }
}

/// Measures the database's clock. The middle of the round trip is when it was read, give or take
/// half of it.
async fn clock_ahead(session: &mut Session, clock: &dyn Clock) -> Result<i64, Outage> {
    let (began, started) = (clock.now(), clock.steady());
    let row = session.row(Statement::new(NOW)).await?.ok_or(sqlx::Error::RowNotFound)?;
    let middle = began.as_micros() + clock.steady().saturating_sub(started) / 2;
    Ok(middle.wrapping_sub(row.time("now")?.as_micros()).cast_signed())
}
