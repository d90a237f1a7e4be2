//! Deletes unused policies that a program created by itself, in batches: one notification per
//! batch, and no lock is held for long.

use headgate_quota::{RepositoryError, Unused};

use super::{
    commit, deletions,
    prune::{self, BATCH},
    write::{next_revision, notify},
};
use crate::{Database, outage::Outage, statement::Statement};

/// Restricts a statement to unused policies `p`.
macro_rules! of_unused {
    ($before:literal, $and:literal, $gone:literal) => {
        concat!(
            $before,
            " WHERE p.name = $1 AND p.subject_type = $2 AND p.period = $3 AND p.enabled
                AND p.updated_at < $4 AND NOT EXISTS (
                    SELECT 1 FROM quota_usages n WHERE n.policy_id = p.id AND n.updated_at >= $4)
                AND ",
            $and,
            " LIMIT $5) RETURNING ",
            $gone
        )
    };
}

/// Closed periods have no concurrent increments, so this waits for no lock.
const DELETE_REQUEST_IDS: &str = of_unused!(
    "DELETE FROM quota_increments WHERE (policy_id, period_name, request_id) IN (
        SELECT i.policy_id, i.period_name, i.request_id FROM quota_policies p
        JOIN quota_usages u ON u.policy_id = p.id
        JOIN quota_increments i ON i.policy_id = u.policy_id AND i.period_name = u.period_name",
    "u.closed_at IS NOT NULL",
    "1"
);

/// Reservations of closed periods.
const DELETE_RESERVATIONS: &str = of_unused!(
    "DELETE FROM quota_reservations WHERE (policy_id, period_name, id) IN (
        SELECT r.policy_id, r.period_name, r.id FROM quota_policies p
        JOIN quota_usages u ON u.policy_id = p.id
        JOIN quota_reservations r ON r.policy_id = u.policy_id AND r.period_name = u.period_name",
    "u.closed_at IS NOT NULL",
    "1"
);

/// Request ids and reservations are found by their period, so they must be deleted first.
const DELETE_PERIODS: &str = of_unused!(
    "DELETE FROM quota_usages WHERE (policy_id, period_name) IN (
        SELECT u.policy_id, u.period_name FROM quota_policies p
        JOIN quota_usages u ON u.policy_id = p.id",
    "u.closed_at IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM quota_increments i
        WHERE i.policy_id = u.policy_id AND i.period_name = u.period_name)
    AND NOT EXISTS (
        SELECT 1 FROM quota_reservations r
        WHERE r.policy_id = u.policy_id AND r.period_name = u.period_name)",
    "1"
);

/// Closed periods are found by their policy, so they must be deleted first.
const DELETE_POLICIES: &str = of_unused!(
    "DELETE FROM quota_policies WHERE id IN (SELECT p.id FROM quota_policies p",
    "NOT EXISTS (
        SELECT 1 FROM quota_usages u WHERE u.policy_id = p.id AND u.closed_at IS NOT NULL)",
    "id"
);

/// Deletes all unused policies.
pub(super) async fn delete(
    database: &Database,
    unused: &Unused<'_>,
) -> Result<u64, RepositoryError> {
    prune::all(database, || about(DELETE_REQUEST_IDS, unused)).await?;
    prune::all(database, || about(DELETE_RESERVATIONS, unused)).await?;
    prune::all(database, || about(DELETE_PERIODS, unused)).await?;
    let mut total = 0;
    loop {
        let deleted = delete_batch(database, unused).await?;
        total += deleted as u64;
        if deleted < BATCH as usize {
            return Ok(total);
        }
    }
}

async fn delete_batch(database: &Database, unused: &Unused<'_>) -> Result<usize, RepositoryError> {
    let mut session = database.writing().await?;
    let revision = next_revision(&mut session).await?;
    let rows = session.rows(about(DELETE_POLICIES, unused)).await?;
    let deleted: Result<Vec<String>, sqlx::Error> = rows.iter().map(|row| row.get("id")).collect();
    let deleted = deleted.map_err(Outage::Sql)?;
    // Without a change, the next revision is not committed.
    if !deleted.is_empty() {
        deletions::write(&mut session, revision, &deleted).await?;
        notify(&mut session).await?;
        commit(session).await?;
    }
    Ok(deleted.len())
}

/// Binds the selection of unused policies.
fn about(sql: &'static str, unused: &Unused<'_>) -> Statement {
    Statement::new(sql)
        .bind(unused.name)
        .bind(unused.subject_type.name())
        .bind(unused.period.name())
        .bind(unused.before)
        .bind(BATCH)
}
