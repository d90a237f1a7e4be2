//! Deletes unused policies that a program created by itself, in batches: one notification per
//! batch, and no lock is held for long.

use headgate_quota::{RepositoryError, Unused};

use super::{
    commit, corrupt, deletions,
    period_keys::{self, MAX_PERIODS, PeriodKeys},
    to_json,
    write::{next_revision, notify},
};
use crate::{Database, outage::Outage, session::Session, statement::Statement};

/// Number of policies that a statement reads.
const PAGE: u32 = 500;

/// A condition of unused policies `p`. PostgreSQL might join `NOT EXISTS` with all periods; this
/// reads those of one policy.
macro_rules! is_unused {
    () => {
        "(p.name = $1 AND p.subject_type = $2 AND p.period = $3 AND p.enabled
            AND p.updated_at < $4 AND COALESCE((
                SELECT max(n.updated_at) FROM quota_usages n WHERE n.policy_id = p.id) < $4, TRUE))"
    };
}

/// Selects a page of all policies, so that the statement is short if few are unused.
pub(super) const SELECT_PAGE: &str = concat!(
    "SELECT p.id, ",
    is_unused!(),
    " AS unused FROM (SELECT * FROM quota_policies WHERE id > $5 ORDER BY id LIMIT $6) AS p
    ORDER BY p.id"
);

/// Selects closed periods of the given policies that are unused.
pub(super) const SELECT_PERIODS: (&str, &str) = (
    concat!(
        "SELECT u.policy_id, u.period_name
        FROM jsonb_array_elements_text(CAST($5 AS jsonb)) AS k(id)
        JOIN quota_policies p ON p.id = k.id
        CROSS JOIN LATERAL (SELECT policy_id, period_name FROM quota_usages
            WHERE policy_id = p.id AND closed_at IS NOT NULL ORDER BY period_name LIMIT $6) AS u
        WHERE ",
        is_unused!(),
        " LIMIT $6"
    ),
    concat!(
        "SELECT u.policy_id, u.period_name FROM json_each($5) AS k
        CROSS JOIN quota_policies p ON p.id = k.value
        CROSS JOIN quota_usages u ON u.policy_id = p.id
        WHERE u.closed_at IS NOT NULL AND ",
        is_unused!(),
        " LIMIT $6"
    ),
);

/// Closed periods are found by their policy, so they must be deleted first.
macro_rules! without_periods {
    () => {
        concat!(
            "(SELECT max(u.closed_at) FROM quota_usages u WHERE u.policy_id = p.id) IS NULL AND ",
            is_unused!()
        )
    };
}

pub(super) const DELETE_POLICIES: (&str, &str) = (
    concat!(
        "DELETE FROM quota_policies WHERE id IN (
            SELECT p.id FROM jsonb_array_elements_text(CAST($5 AS jsonb)) AS k(id)
            JOIN quota_policies p ON p.id = k.id WHERE ",
        without_periods!(),
        ") RETURNING id"
    ),
    concat!(
        "DELETE FROM quota_policies WHERE id IN (
            SELECT p.id FROM json_each($5) AS k CROSS JOIN quota_policies p ON p.id = k.value WHERE ",
        without_periods!(),
        ") RETURNING id"
    ),
);

/// A page of policies.
struct PolicyPage {
    unused: Vec<String>,
    /// Id of the last policy, unless the page is the last one.
    last: Option<String>,
}

/// Deletes all unused policies.
pub(super) async fn delete(
    database: &Database,
    unused: &Unused<'_>,
) -> Result<u64, RepositoryError> {
    let (mut total, mut last) = (0, Some(String::new()));
    while let Some(after) = last {
        let page = read_page(database, unused, &after).await?;
        if !page.unused.is_empty() {
            let policies = to_json(&page.unused)?;
            total += loop {
                if let Some(deleted) = delete_some(database, unused, &policies).await? {
                    break deleted;
                }
            };
        }
        last = page.last;
    }
    Ok(total)
}

async fn read_page(
    database: &Database,
    unused: &Unused<'_>,
    after: &str,
) -> Result<PolicyPage, RepositoryError> {
    let mut session = database.reading_for_server().await?;
    let rows = session.rows(about((SELECT_PAGE, SELECT_PAGE), unused).bind(after).bind(PAGE));
    let rows = rows.await?;
    session.commit().await?;
    let read = || -> Result<PolicyPage, sqlx::Error> {
        let mut page = PolicyPage { unused: Vec::new(), last: None };
        for row in &rows {
            if row.get("unused")? {
                page.unused.push(row.get("id")?);
            }
        }
        if let Some(row) = rows.get(PAGE as usize - 1) {
            page.last = Some(row.get("id")?);
        }
        Ok(page)
    };
    read().map_err(corrupt("a policy"))
}

/// Deletes some data of the given policies, or the policies, if there is none: then it returns
/// their number.
async fn delete_some(
    database: &Database,
    unused: &Unused<'_>,
    policies: &str,
) -> Result<Option<u64>, RepositoryError> {
    let mut session = database.writing().await?;
    let periods = about(SELECT_PERIODS, unused).bind(policies).bind(MAX_PERIODS);
    let Some(periods) = PeriodKeys::read(&session.rows(periods).await?)? else {
        return delete_policies(session, unused, policies).await.map(Some);
    };
    // Closed periods have no concurrent increments, so this waits for no lock.
    let (_, is_empty) = periods.delete_ids(&mut session).await?;
    if is_empty {
        periods.apply(&mut session, period_keys::DELETE).await?;
    }
    commit(session).await?;
    Ok(None)
}

async fn delete_policies(
    mut session: Session,
    unused: &Unused<'_>,
    policies: &str,
) -> Result<u64, RepositoryError> {
    let revision = next_revision(&mut session).await?;
    let rows = session.rows(about(DELETE_POLICIES, unused).bind(policies)).await?;
    let deleted: Result<Vec<String>, sqlx::Error> = rows.iter().map(|row| row.get("id")).collect();
    let deleted = deleted.map_err(Outage::Sql)?;
    // Without a change, the next revision is not committed.
    if !deleted.is_empty() {
        deletions::write(&mut session, revision, &deleted).await?;
        notify(&mut session).await?;
        commit(session).await?;
    }
    Ok(deleted.len() as u64)
}

/// Binds the selection of unused policies.
fn about((on_postgres, on_sqlite): (&'static str, &'static str), unused: &Unused<'_>) -> Statement {
    Statement::either(on_postgres, on_sqlite)
        .bind(unused.name)
        .bind(unused.subject_type.name())
        .bind(unused.period.name())
        .bind(unused.before)
}
