//! Changes of overrides between two revisions.

use headgate_ratelimit::{OverrideId, RepositoryError, Revision, RuleDelta};

use super::{CHUNK, record};
use crate::{outage::Outage, session::Session, statement::Statement};

/// Selects changed overrides by id with their current columns, which are null for deleted ones.
macro_rules! changed {
    ($further:literal) => {
        concat!(
            "SELECT c.override_id, r.id AS rule, o.id, o.rule_id, o.subject, o.limit_count,
                o.ends_at, o.reason, o.created_at, o.updated_at
            FROM (
                SELECT DISTINCT override_id FROM rate_limit_override_changes
                WHERE revision > $1",
            $further,
            " ORDER BY override_id LIMIT $2
            ) AS c LEFT JOIN rate_limit_overrides o ON o.id = c.override_id
            LEFT JOIN rate_limit_rules r ON r.id = o.rule_id
            ORDER BY c.override_id"
        )
    };
}

const FIRST: &str = changed!("");

const FURTHER: &str = changed!(" AND override_id > $3");

const LIST_CHANGES: (&str, &str) = (
    "INSERT INTO rate_limit_override_changes (revision, override_id)
    SELECT $2, CAST(value AS uuid) FROM jsonb_array_elements_text(CAST($1 AS jsonb))",
    "INSERT INTO rate_limit_override_changes (revision, override_id)
    SELECT $2, value FROM json_each($1)",
);

const DELETE_REVISIONS: &str = "DELETE FROM rate_limit_override_changes WHERE revision <= $1";

/// Adds the changes after `since` to a delta.
pub(crate) async fn read(
    session: &mut Session,
    since: Revision,
    delta: &mut RuleDelta,
) -> Result<(), RepositoryError> {
    let mut last: Option<OverrideId> = None;
    loop {
        let chunk = match last {
            None => Statement::new(FIRST).bind(since.0).bind(CHUNK as u64),
            Some(last) => Statement::new(FURTHER).bind(since.0).bind(CHUNK as u64).bind(last),
        };
        let rows = session.rows(chunk).await?;
        for row in &rows {
            let id = OverrideId::from(row.id("override_id").map_err(Outage::Sql)?);
            let subject: Option<String> = row.get("subject").map_err(Outage::Sql)?;
            match subject {
                Some(_) => delta.overrides.push(record::read(row)?),
                None => delta.deleted_overrides.push(id),
            }
            last = Some(id);
        }
        if rows.len() < CHUNK {
            return Ok(());
        }
    }
}

/// Records the overrides that `revision` changes.
pub(super) async fn write(
    session: &mut Session,
    revision: Revision,
    overrides: &[OverrideId],
) -> Result<(), Outage> {
    for chunk in overrides.chunks(CHUNK) {
        let ids: Vec<String> = chunk.iter().map(OverrideId::to_string).collect();
        // Cannot fail: a list of texts that is written to memory.
        let ids = serde_json::to_string(&ids).unwrap_or_default();
        let list = Statement::either(LIST_CHANGES.0, LIST_CHANGES.1).bind(&*ids);
        session.execute(list.bind(revision.0)).await?;
    }
    Ok(())
}

/// Deletes records of revisions until `oldest`.
pub(crate) async fn prune(session: &mut Session, oldest: i64) -> Result<(), Outage> {
    session.execute(Statement::new(DELETE_REVISIONS).bind(oldest)).await
}
