//! Which policies were deleted by which revision, so that replicas need not read all others.

use headgate_quota::{QuotaId, RepositoryError, Revision};

use super::to_json;
use crate::{outage::Outage, session::Session, statement::Statement};

/// How many revisions are remembered. Whoever is further behind finds that the number of policies
/// does not fit, and reads all of them.
const REVISIONS: i64 = 1_000;

/// The most deletions that are read one by one: beyond that, reading all policies is as quick.
const MAX_READ: u32 = 50_000;

const WRITE: (&str, &str) = (
    "INSERT INTO quota_policy_deletions (revision, policy_id)
    SELECT $2, value FROM jsonb_array_elements_text(CAST($1 AS jsonb))",
    "INSERT INTO quota_policy_deletions (revision, policy_id) SELECT $2, value FROM json_each($1)",
);

const FORGET: &str = "DELETE FROM quota_policy_deletions WHERE revision <= $1";

const READ: &str = "
    SELECT policy_id FROM quota_policy_deletions WHERE revision > $1
    ORDER BY revision LIMIT $2";

/// Writes down which policies `revision` deletes, and forgets what is too long ago.
pub(super) async fn write(
    session: &mut Session,
    revision: Revision,
    policies: &[String],
) -> Result<(), Outage> {
    let statement = Statement::either(WRITE.0, WRITE.1).bind(&*to_json(policies)?);
    session.execute(statement.bind(revision.0)).await?;
    session.execute(Statement::new(FORGET).bind(revision.0 - REVISIONS)).await
}

/// Reads which policies were deleted after the revision `since`.
pub(super) async fn read(
    session: &mut Session,
    since: Revision,
) -> Result<Vec<QuotaId>, RepositoryError> {
    let rows = session.rows(Statement::new(READ).bind(since.0).bind(MAX_READ)).await?;
    let id = |row: &crate::row::Row| {
        let text: String = row.get("policy_id").map_err(Outage::Sql)?;
        let odd = |_| RepositoryError::Corrupt(format!("a deleted policy's id: {text}"));
        text.parse().map_err(odd)
    };
    rows.iter().map(id).collect()
}
