//! The schema of what no area owns: revisions, the audit log, and which migrations were applied.

use sqlx::{AssertSqlSafe, PgConnection};

use super::TABLE;
use crate::postgres::{CN_ADMIN_SCHEMA, QUOTA_SCHEMA, RATELIMIT_SCHEMA};

/// Schemas that hold both the list of migrations and what the first of them makes: the list alone
/// is left behind where a migration failed. The preferred one comes first.
const FOUND: &str = "
    SELECT CAST(n.nspname AS text) FROM pg_class AS m
    JOIN pg_class AS r ON r.relnamespace = m.relnamespace AND r.relname = 'revisions'
    JOIN pg_namespace AS n ON n.oid = m.relnamespace
    WHERE m.relname = $1 AND m.relkind = 'r' AND r.relkind = 'r'
    ORDER BY n.nspname <> $2, n.nspname LIMIT 1";

/// Finds the schema in this database. Rules and quotas have schemas of their own, so that all
/// servers on one database share them; they must also share what belongs to them, whichever schema
/// each server is configured with. `preferred` is the answer in a database that has none.
pub(crate) async fn find(
    connection: &mut PgConnection,
    preferred: &str,
) -> Result<String, sqlx::Error> {
    let found = sqlx::query_scalar(FOUND).bind(TABLE).bind(preferred);
    let found: Option<String> = found.fetch_optional(connection).await?;
    Ok(found.unwrap_or_else(|| preferred.to_owned()))
}

/// Lets statements name tables alone, as on SQLite; what is created without a schema is created in
/// `home`.
pub(crate) async fn enter(connection: &mut PgConnection, home: &str) -> Result<(), sqlx::Error> {
    let home = home.replace('"', "\"\"");
    let path = format!(
        "SET search_path = \"{home}\", {RATELIMIT_SCHEMA}, {QUOTA_SCHEMA}, {CN_ADMIN_SCHEMA}"
    );
    sqlx::raw_sql(AssertSqlSafe(path)).execute(connection).await.map(drop)
}
