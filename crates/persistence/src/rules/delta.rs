//! Changes between two revisions, recorded by writers and read by replicas.

use headgate_ratelimit::{RepositoryError, Revision, RuleDelta, RuleId};

use super::{CHUNK, batch, record};
use crate::{outage::Outage, overrides, row::Row, session::Session, statement::Statement};

/// Maximum number of rules of one revision that are recorded. After larger changes, replicas load
/// all rules.
const MAX_LISTED: usize = 10_000;

/// Number of revisions that are kept.
const REVISIONS: i64 = 1_000;

/// Maximum number of changed rules that are kept after a change of more than [`FEW`].
const RULES: i64 = 50_000;

/// Changes of at most this many rules do not trigger the limit of [`RULES`].
const FEW: usize = 100;

/// Counts the recorded revisions between `$1` and `$2`.
const RECORDED: &str = "
    SELECT count(*) AS total FROM (
        SELECT revision FROM rate_limit_rule_changes WHERE revision > $1 AND revision <= $2
        UNION
        SELECT revision FROM rate_limit_override_changes WHERE revision > $1 AND revision <= $2
    ) AS recorded";

/// Selects changed rules by id with their current columns, which are null for deleted rules.
macro_rules! changed {
    ($further:literal) => {
        concat!(
            "SELECT c.rule_id, r.id, r.name, r.scope, r.identifier_pattern, r.limit_count,
                r.window_secs, r.algorithm, r.burst, r.fail_mode, r.lease_share_percent,
                r.lease_hold_ms, r.selector, r.enabled, r.created_at, r.updated_at
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

const DELETE_REVISIONS: &str = "DELETE FROM rate_limit_rule_changes WHERE revision <= $1";

const DELETE_RULES: &str = "
    DELETE FROM rate_limit_rule_changes WHERE revision <= (
        SELECT revision FROM rate_limit_rule_changes ORDER BY revision DESC LIMIT 1 OFFSET $1)";

/// Returns the changes after `since` until `now`, the revision that `session` sees; `None` if a
/// revision in between is not recorded any more, or never was: a server of an older version or an
/// operator wrote it.
pub(super) async fn read(
    session: &mut Session,
    since: Revision,
    now: Revision,
) -> Result<Option<RuleDelta>, RepositoryError> {
    let mut delta = RuleDelta { revision: now, ..RuleDelta::default() };
    if since == now {
        return Ok(Some(delta));
    }
    let recorded = Statement::new(RECORDED).bind(since.0).bind(now.0);
    // After a restore, the database may be older than the caller's rules.
    if since > now || session.count(recorded).await? != since.0.abs_diff(now.0) {
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
            overrides::read_changes(session, since, &mut delta).await?;
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

/// Records the rules that `revision` changes, and deletes old records.
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
    prune(session, revision).await?;
    if rules.len() > FEW {
        session.execute(Statement::new(DELETE_RULES).bind(RULES)).await?;
    }
    Ok(())
}

/// Deletes records of old revisions.
pub(crate) async fn prune(session: &mut Session, revision: Revision) -> Result<(), Outage> {
    let oldest = revision.0 - REVISIONS;
    session.execute(Statement::new(DELETE_REVISIONS).bind(oldest)).await?;
    overrides::prune(session, oldest).await
}
