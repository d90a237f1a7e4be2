//! The schema of shared tables: revisions, audit log and applied migrations.

use sqlx::{AssertSqlSafe, PgConnection};

use super::TABLE;
use crate::postgres::{CN_ADMIN_SCHEMA, QUOTA_SCHEMA, RATELIMIT_SCHEMA};

/// Schemas with both the table of migrations and a table that the first migration creates: the
/// former alone is left over from a failed migration. The preferred one comes first.
const FOUND: &str = "
    SELECT CAST(n.nspname AS text) FROM pg_class AS m
    JOIN pg_class AS r ON r.relnamespace = m.relnamespace AND r.relname = 'revisions'
    JOIN pg_namespace AS n ON n.oid = m.relnamespace
    WHERE m.relname = $1 AND m.relkind = 'r' AND r.relkind = 'r'
    ORDER BY n.nspname <> $2, n.nspname LIMIT 1";

/// Finds the schema in this database. All servers on one database share rules and quotas, so they
/// must also share these tables, whichever schema each server is configured with. Returns
/// `preferred` for a new database.
pub(crate) async fn find(
    connection: &mut PgConnection,
    preferred: &str,
) -> Result<String, sqlx::Error> {
    let found = sqlx::query_scalar(FOUND).bind(TABLE).bind(preferred);
    let found: Option<String> = found.fetch_optional(connection).await?;
    Ok(found.unwrap_or_else(|| preferred.to_owned()))
}

/// Sets the search path, so that statements need no schema, as with SQLite. New tables without a
/// schema are created in `home`.
pub(crate) async fn enter(connection: &mut PgConnection, home: &str) -> Result<(), sqlx::Error> {
    let home = home.replace('"', "\"\"");
    let path = format!(
        "SET search_path = \"{home}\", {RATELIMIT_SCHEMA}, {QUOTA_SCHEMA}, {CN_ADMIN_SCHEMA}"
    );
    sqlx::raw_sql(AssertSqlSafe(path)).execute(connection).await.map(drop)
}
