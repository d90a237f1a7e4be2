//! Policies that a program made by itself and nobody uses any more: many are deleted at a time, so
//! that others read the policies anew once for them all.

use headgate::Timestamp;
use headgate_quota::RepositoryError;

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
        WHERE p.name = $1 AND p.updated_at < $2 AND NOT EXISTS (
            SELECT 1 FROM quota_usages u WHERE u.policy_id = p.id AND u.updated_at >= $2)
        LIMIT $3)
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

/// Deletes the policies of this name that were neither changed nor used since `before`.
pub(super) async fn delete(
    database: &Database,
    name: &str,
    before: Timestamp,
) -> Result<u64, RepositoryError> {
    let mut total = 0;
    loop {
        let deleted = some(database, name, before).await?;
        total += deleted as u64;
        if deleted < SOME {
            return Ok(total);
        }
    }
}

async fn some(
    database: &Database,
    name: &str,
    before: Timestamp,
) -> Result<usize, RepositoryError> {
    let mut session = database.writing().await?;
    next_revision(&mut session).await?;
    let delete = Statement::new(DELETE).bind(name).bind(before).bind(SOME as u64);
    let rows = session.rows(delete).await?;
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
