//! Closes periods that have ended and deletes old data, in batches, so that no lock is held for
//! long.

use headgate::Timestamp;
use headgate_quota::{Pruned, RepositoryError, Retention};

use super::{
    commit,
    period_keys::{self, MAX_PERIODS, PeriodKeys},
    to_json,
};
use crate::{Database, statement::Statement};

/// Maximum number of closed periods and deleted events per transaction.
const BATCH: u32 = 5_000;

/// Numbers of rows that [`clear`] has deleted or marked.
#[derive(Default)]
struct Cleared {
    periods: u64,
    ids: u64,
}

/// Skips locked rows, which are closed the next time.
const CLOSE: (&str, &str) = (
    "UPDATE quota_usages SET closed_at = $1 WHERE (policy_id, period_name) IN (
        SELECT policy_id, period_name FROM quota_usages
        WHERE closed_at IS NULL AND period_end <= $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1",
    "UPDATE quota_usages SET closed_at = $1 WHERE (policy_id, period_name) IN (
        SELECT policy_id, period_name FROM quota_usages
        WHERE closed_at IS NULL AND period_end <= $1 LIMIT $2)
    RETURNING 1",
);

/// Selects closed periods that may have request ids or reservations and ended before `$1`. Their
/// number does not grow with the history. The order makes PostgreSQL use the index.
///
/// A period with pending reservations stays as it is until they have ended.
pub(super) const WITH_IDS: &str = "
    SELECT policy_id, period_name FROM quota_usages
    WHERE closed_at IS NOT NULL AND NOT ids_deleted AND period_end < $1 AND reserved = 0
    ORDER BY period_end LIMIT $2";

/// Selects closed periods that ended before `$1`.
pub(super) const OLD: &str = "
    SELECT policy_id, period_name FROM quota_usages
    WHERE closed_at IS NOT NULL AND period_end < $1 AND reserved = 0
    ORDER BY period_end LIMIT $2";

/// Keeps events that are not delivered to all sinks, however old they are.
const DELETE_EVENTS: (&str, &str) = (
    "DELETE FROM quota_events WHERE seq IN (
        SELECT e.seq FROM quota_events e WHERE e.occurred_at < $1 AND NOT EXISTS (
            SELECT FROM jsonb_array_elements_text(CAST($3 AS jsonb)) AS s(sink)
            WHERE NOT EXISTS (SELECT FROM quota_deliveries d
                WHERE d.event_id = e.event_id AND d.sink = s.sink))
        LIMIT $2)
    RETURNING 1",
    "DELETE FROM quota_events WHERE seq IN (
        SELECT e.seq FROM quota_events e WHERE e.occurred_at < $1 AND NOT EXISTS (
            SELECT 1 FROM json_each($3) AS s
            WHERE NOT EXISTS (SELECT 1 FROM quota_deliveries d
                WHERE d.event_id = e.event_id AND d.sink = s.value))
        LIMIT $2)
    RETURNING 1",
);

/// Closes periods that have ended.
pub(super) async fn close(database: &Database, now: Timestamp) -> Result<u64, RepositoryError> {
    all(database, || Statement::either(CLOSE.0, CLOSE.1).bind(now).bind(BATCH)).await
}

/// Deletes old data. A failed step does not keep the others from running; the first error is
/// returned.
pub(super) async fn prune(
    database: &Database,
    retention: &Retention,
) -> Result<Pruned, RepositoryError> {
    let sinks = to_json(&retention.sinks)?;
    let events = || {
        let events = Statement::either(DELETE_EVENTS.0, DELETE_EVENTS.1);
        events.bind(retention.events_before).bind(BATCH).bind(&*sinks)
    };
    let ids = clear(database, WITH_IDS, retention.request_ids_before, period_keys::MARK).await;
    let old = clear(database, OLD, retention.periods_before, period_keys::DELETE).await;
    let events = all(database, events).await;
    let (ids, old) = (ids?, old?);
    Ok(Pruned { request_ids: ids.ids + old.ids, periods: old.periods, events: events? })
}

/// Deletes the request ids and reservations of the periods that `find` selects, and then applies
/// `finish` to the periods, which `find` must not select again.
async fn clear(
    database: &Database,
    find: &'static str,
    before: Timestamp,
    finish: (&'static str, &'static str),
) -> Result<Cleared, RepositoryError> {
    let mut cleared = Cleared::default();
    loop {
        // With SQLite, a search in a read transaction blocks no writer.
        let mut session = database.reading_for_server().await?;
        let rows = session.rows(Statement::new(find).bind(before).bind(MAX_PERIODS)).await?;
        session.commit().await?;
        let Some(periods) = PeriodKeys::read(&rows)? else {
            return Ok(cleared);
        };
        let mut session = database.writing().await?;
        let (ids, is_empty) = periods.delete_ids(&mut session).await?;
        if is_empty {
            cleared.periods += periods.apply(&mut session, finish).await?;
        }
        commit(session).await?;
        cleared.ids += ids;
    }
}

/// Repeats a statement until it affects no more rows.
async fn all(
    database: &Database,
    statement: impl Fn() -> Statement,
) -> Result<u64, RepositoryError> {
    let mut total = 0;
    loop {
        let mut session = database.writing().await?;
        let rows = session.rows(statement()).await?.len();
        commit(session).await?;
        total += rows as u64;
        if rows < BATCH as usize {
            return Ok(total);
        }
    }
}

#[cfg(test)]
mod tests;
