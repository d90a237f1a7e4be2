//! Deleted policies by revision, so that replicas need not load all policies after a deletion.

use headgate_quota::{QuotaId, RepositoryError, Revision};

use super::to_json;
use crate::{outage::Outage, session::Session, statement::Statement};

/// Number of revisions whose deletions are kept. A replica that is further behind has another
/// number of policies than the database, and loads all of them.
const REVISIONS: i64 = 1_000;

/// Maximum number of deletions that are read: beyond it, loading all policies is as fast.
const MAX_READ: u32 = 50_000;

const WRITE: (&str, &str) = (
    "INSERT INTO quota_policy_deletions (revision, policy_id)
    SELECT $2, value FROM jsonb_array_elements_text(CAST($1 AS jsonb))",
    "INSERT INTO quota_policy_deletions (revision, policy_id) SELECT $2, value FROM json_each($1)",
);

const DELETE_OLD: &str = "DELETE FROM quota_policy_deletions WHERE revision <= $1";

const READ: &str = "
    SELECT policy_id FROM quota_policy_deletions WHERE revision > $1
    ORDER BY revision LIMIT $2";

/// Records the policies that `revision` deletes, and removes old records.
pub(super) async fn write(
    session: &mut Session,
    revision: Revision,
    policies: &[String],
) -> Result<(), Outage> {
    let statement = Statement::either(WRITE.0, WRITE.1).bind(&*to_json(policies)?);
    session.execute(statement.bind(revision.0)).await?;
    session.execute(Statement::new(DELETE_OLD).bind(revision.0 - REVISIONS)).await
}

/// Returns the policies that were deleted after the revision `since`.
pub(super) async fn read(
    session: &mut Session,
    since: Revision,
) -> Result<Vec<QuotaId>, RepositoryError> {
    let rows = session.rows(Statement::new(READ).bind(since.0).bind(MAX_READ)).await?;
    let id = |row: &crate::row::Row| {
        let text: String = row.get("policy_id").map_err(Outage::Sql)?;
        let invalid = |_| RepositoryError::Corrupt(format!("a deleted policy's id: {text}"));
        text.parse().map_err(invalid)
    };
    rows.iter().map(id).collect()
}
