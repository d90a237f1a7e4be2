//! Policies that a program made by itself and nobody uses any more: many are deleted at a time, so
//! that others read the policies anew once for them all.

use headgate_quota::{RepositoryError, Unused};

use super::{
    commit, to_json,
    write::{next_revision, tell},
};
use crate::{Database, outage::Outage, statement::Statement};

/// How many are deleted in one transaction.
const SOME: usize = 5_000;

const DELETE: &str = "
    DELETE FROM quota_policies WHERE id IN (
        SELECT p.id FROM quota_policies p
        WHERE p.name = $1 AND p.subject_type = $2 AND p.period = $3 AND p.enabled
            AND p.updated_at < $4 AND NOT EXISTS (
                SELECT 1 FROM quota_usages u WHERE u.policy_id = p.id AND u.updated_at >= $4)
        LIMIT $5)
    RETURNING id";

/// Nobody counts in closed periods any more, so nobody is waited for.
const FORGET_PERIODS: (&str, &str) = (
    "DELETE FROM quota_usages WHERE closed_at IS NOT NULL AND policy_id IN (
        SELECT jsonb_array_elements_text(CAST($1 AS jsonb)))",
    "DELETE FROM quota_usages WHERE closed_at IS NOT NULL AND policy_id IN (
        SELECT value FROM json_each($1))",
);

const FORGET_REQUEST_IDS: (&str, &str) = (
    "DELETE FROM quota_increments WHERE policy_id IN (
        SELECT jsonb_array_elements_text(CAST($1 AS jsonb)))",
    "DELETE FROM quota_increments WHERE policy_id IN (SELECT value FROM json_each($1))",
);

/// Deletes them all.
pub(super) async fn delete(
    database: &Database,
    unused: &Unused<'_>,
) -> Result<u64, RepositoryError> {
    let mut total = 0;
    loop {
        let deleted = some(database, unused).await?;
        total += deleted as u64;
        if deleted < SOME {
            return Ok(total);
        }
    }
}

async fn some(database: &Database, unused: &Unused<'_>) -> Result<usize, RepositoryError> {
    let mut session = database.writing().await?;
    next_revision(&mut session).await?;
    let rows = session.rows(about(DELETE, unused).bind(SOME as u64)).await?;
    // Without a change there is no other revision.
    if rows.is_empty() {
        return Ok(0);
    }
    let ids: Result<Vec<String>, sqlx::Error> = rows.iter().map(|row| row.get("id")).collect();
    let ids = to_json(&ids.map_err(Outage::Sql)?)?;
    for (on_postgres, on_sqlite) in [FORGET_PERIODS, FORGET_REQUEST_IDS] {
        session.execute(Statement::either(on_postgres, on_sqlite).bind(&*ids)).await?;
    }
    tell(&mut session).await?;
    commit(session).await?;
    Ok(rows.len())
}

/// A statement about policies that nobody uses.
fn about(sql: &'static str, unused: &Unused<'_>) -> Statement {
    Statement::new(sql)
        .bind(unused.name)
        .bind(unused.subject_type.name())
        .bind(unused.period.name())
        .bind(unused.before)
}
