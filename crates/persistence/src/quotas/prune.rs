//! Closes periods that have ended and deletes old data, in batches, so that no lock is held for
//! long.

use headgate::Timestamp;
use headgate_quota::{Pruned, RepositoryError, Retention};

use super::{commit, to_json};
use crate::{Database, statement::Statement};

/// Maximum number of rows per transaction.
pub(super) const BATCH: u32 = 5_000;

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

const DELETE_REQUEST_IDS: &str = "
    DELETE FROM quota_increments WHERE (policy_id, period_name, request_id) IN (
        SELECT i.policy_id, i.period_name, i.request_id FROM quota_increments i
        JOIN quota_usages u ON u.policy_id = i.policy_id AND u.period_name = i.period_name
        WHERE u.closed_at IS NOT NULL AND u.period_end < $1 LIMIT $2)
    RETURNING 1";

const DELETE_RESERVATIONS: &str = "
    DELETE FROM quota_reservations WHERE (policy_id, period_name, id) IN (
        SELECT r.policy_id, r.period_name, r.id FROM quota_reservations r
        JOIN quota_usages u ON u.policy_id = r.policy_id AND u.period_name = r.period_name
        WHERE u.closed_at IS NOT NULL AND u.period_end < $1 AND r.status <> 'pending' LIMIT $2)
    RETURNING 1";

/// A period with pending reservations stays until they have ended.
const DELETE_PERIODS: &str = "
    DELETE FROM quota_usages WHERE (policy_id, period_name) IN (
        SELECT policy_id, period_name FROM quota_usages
        WHERE closed_at IS NOT NULL AND period_end < $1 AND reserved = 0 LIMIT $2)
    RETURNING 1";

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

/// Deletes old data.
pub(super) async fn prune(
    database: &Database,
    retention: &Retention,
) -> Result<Pruned, RepositoryError> {
    // Request ids and reservations are found by their period, so they must be deleted first.
    let request_ids_before = retention.request_ids_before.max(retention.periods_before);
    let sinks = to_json(&retention.sinks)?;
    let request_ids = || Statement::new(DELETE_REQUEST_IDS).bind(request_ids_before).bind(BATCH);
    let reservations = || Statement::new(DELETE_RESERVATIONS).bind(request_ids_before).bind(BATCH);
    let periods = || Statement::new(DELETE_PERIODS).bind(retention.periods_before).bind(BATCH);
    let events = || {
        let events = Statement::either(DELETE_EVENTS.0, DELETE_EVENTS.1);
        events.bind(retention.events_before).bind(BATCH).bind(&*sinks)
    };
    Ok(Pruned {
        request_ids: all(database, request_ids).await? + all(database, reservations).await?,
        periods: all(database, periods).await?,
        events: all(database, events).await?,
    })
}

/// Repeats a statement until it affects no more rows.
pub(super) async fn all(
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
