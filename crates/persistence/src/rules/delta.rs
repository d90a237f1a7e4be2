//! What changed between two revisions: written down by whoever writes, and read by replicas.

use headgate_ratelimit::{RepositoryError, Revision, RuleDelta, RuleId};

use super::{CHUNK, batch, record};
use crate::{outage::Outage, row::Row, session::Session, statement::Statement};

/// The most rules of one revision that are written down. A list that changes more than that is
/// read as a whole by replicas.
const MAX_LISTED: usize = 10_000;

/// How many revisions are remembered, whatever they changed.
const REVISIONS: i64 = 1_000;

/// How many changed rules are remembered, at most, after a change of more than [`FEW`].
const RULES: i64 = 50_000;

/// Changes of so few rules are only forgotten by their number.
const FEW: usize = 100;

/// How many revisions are remembered of those after `$1`.
const REMEMBERED: &str = "
    SELECT count(DISTINCT revision) AS total FROM rate_limit_rule_changes
    WHERE revision > $1 AND revision <= $2";

/// Selects changed rules with what they say now, by their ids; those that are gone say nothing.
macro_rules! changed {
    ($further:literal) => {
        concat!(
            "SELECT c.rule_id, r.id, r.name, r.scope, r.identifier_pattern, r.limit_count,
                r.window_secs, r.algorithm, r.burst, r.fail_mode, r.enabled, r.created_at,
                r.updated_at
            FROM (
                SELECT DISTINCT rule_id FROM rate_limit_rule_changes
                WHERE revision > $1",
            $further,
            " ORDER BY rule_id LIMIT $2
            ) AS c LEFT JOIN rate_limit_rules r ON r.id = c.rule_id
            ORDER BY c.rule_id"
        )
    };
}

const FIRST: &str = changed!("");

const FURTHER: &str = changed!(" AND rule_id > $3");

const FORGET_REVISIONS: &str = "DELETE FROM rate_limit_rule_changes WHERE revision <= $1";

const FORGET_RULES: &str = "
    DELETE FROM rate_limit_rule_changes WHERE revision <= (
        SELECT revision FROM rate_limit_rule_changes ORDER BY revision DESC LIMIT 1 OFFSET $1)";

/// Reads what changed after `since` and until `now`, the revision that `session` sees; `None` if
/// one of the revisions between them was forgotten, or was never written down: by a server of an
/// older version, or by hand.
pub(super) async fn read(
    session: &mut Session,
    since: Revision,
    now: Revision,
) -> Result<Option<RuleDelta>, RepositoryError> {
    let mut delta = RuleDelta { revision: now, ..RuleDelta::default() };
    if since == now {
        return Ok(Some(delta));
    }
    let remembered = Statement::new(REMEMBERED).bind(since.0).bind(now.0);
    // After a restore the database may be older than what is known of it.
    if since > now || session.count(remembered).await? != since.0.abs_diff(now.0) {
        return Ok(None);
    }
    let mut last: Option<RuleId> = None;
    loop {
        let chunk = match last {
            None => Statement::new(FIRST).bind(since.0).bind(CHUNK as u64),
            Some(last) => Statement::new(FURTHER).bind(since.0).bind(CHUNK as u64).bind(last),
        };
        let rows = session.rows(chunk).await?;
        for row in &rows {
            last = Some(add(&mut delta, row)?);
        }
        if rows.len() < CHUNK {
            return Ok(Some(delta));
        }
    }
}

fn add(delta: &mut RuleDelta, row: &Row) -> Result<RuleId, RepositoryError> {
    let id = RuleId::from(row.id("rule_id").map_err(Outage::Sql)?);
    let scope: Option<String> = row.get("scope").map_err(Outage::Sql)?;
    match scope {
        Some(_) => delta.changed.push(record::read(row)?),
        None => delta.deleted.push(id),
    }
    Ok(id)
}

/// Writes down which rules `revision` changes, and forgets what is too long ago.
pub(super) async fn write(
    session: &mut Session,
    revision: Revision,
    rules: &[RuleId],
) -> Result<(), Outage> {
    if rules.len() <= MAX_LISTED {
        for chunk in rules.chunks(CHUNK) {
            let statement = batch::statement(batch::LIST_CHANGES, &batch::ids(chunk));
            session.execute(statement.bind(revision.0)).await?;
        }
    }
    let forgotten = Statement::new(FORGET_REVISIONS).bind(revision.0 - REVISIONS);
    session.execute(forgotten).await?;
    if rules.len() > FEW {
        session.execute(Statement::new(FORGET_RULES).bind(RULES)).await?;
    }
    Ok(())
}
