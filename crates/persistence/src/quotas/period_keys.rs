//! Periods whose data is deleted: their request ids and reservations, and then their rows.

use headgate_quota::RepositoryError;
use serde::Serialize;

use super::{corrupt, to_json};
use crate::{outage::Outage, row::Row, session::Session, statement::Statement};

/// Maximum number of periods per transaction.
pub(super) const MAX_PERIODS: u32 = 1_000;

/// Maximum number of request ids and reservations per transaction.
const MAX_IDS: u32 = 5_000;

/// Keys of periods, as JSON.
pub(super) struct PeriodKeys(String);

#[derive(Serialize)]
struct PeriodKey {
    policy_id: String,
    period_name: String,
}

/// Deletes some rows of a table by their period and a third column of its primary key.
///
/// PostgreSQL must not read the whole table, whatever it assumes about its size: a lateral subquery
/// with an order is a search of the primary key for each period, and rows are found again by their
/// location. On SQLite, `CROSS JOIN` keeps the order of tables.
macro_rules! delete_some {
    ($table:literal, $id:literal) => {
        (
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE ctid = ANY (ARRAY(
                    SELECT i.ctid
                    FROM jsonb_to_recordset(CAST($1 AS jsonb))
                        AS k(policy_id text, period_name text)
                    CROSS JOIN LATERAL (SELECT t.ctid FROM ",
                $table,
                " t WHERE t.policy_id = k.policy_id AND t.period_name = k.period_name
                        ORDER BY t.",
                $id,
                " LIMIT $2) AS i
                    LIMIT $2))
                RETURNING 1"
            ),
            concat!(
                "DELETE FROM ",
                $table,
                " WHERE (policy_id, period_name, ",
                $id,
                ") IN (
                    SELECT t.policy_id, t.period_name, t.",
                $id,
                " FROM json_each($1) AS k
                    CROSS JOIN ",
                $table,
                " t ON t.policy_id = k.value->>'policy_id'
                        AND t.period_name = k.value->>'period_name'
                    LIMIT $2)
                RETURNING 1"
            ),
        )
    };
}

pub(super) const DELETE_REQUEST_IDS: (&str, &str) = delete_some!("quota_increments", "request_id");

pub(super) const DELETE_RESERVATIONS: (&str, &str) = delete_some!("quota_reservations", "id");

/// Applies a statement to the rows of the periods.
macro_rules! of_periods {
    ($verb:literal) => {
        (
            concat!(
                $verb,
                " WHERE (policy_id, period_name) IN (
                    SELECT policy_id, period_name FROM jsonb_to_recordset(CAST($1 AS jsonb))
                        AS k(policy_id text, period_name text))
                RETURNING 1"
            ),
            concat!(
                $verb,
                " WHERE (policy_id, period_name) IN (
                    SELECT value->>'policy_id', value->>'period_name' FROM json_each($1))
                RETURNING 1"
            ),
        )
    };
}

/// Marks periods without request ids and reservations.
pub(super) const MARK: (&str, &str) = of_periods!("UPDATE quota_usages SET ids_deleted = TRUE");

/// Deletes periods.
pub(super) const DELETE: (&str, &str) = of_periods!("DELETE FROM quota_usages");

// === impl PeriodKeys ===

impl PeriodKeys {
    /// Reads the keys; `None` without rows.
    pub(super) fn read(rows: &[Row]) -> Result<Option<Self>, RepositoryError> {
        if rows.is_empty() {
            return Ok(None);
        }
        let key = |row: &Row| {
            let (policy_id, period_name) = (row.get("policy_id")?, row.get("period_name")?);
            Ok(PeriodKey { policy_id, period_name })
        };
        let keys: Result<Vec<_>, _> = rows.iter().map(key).collect();
        Ok(Some(Self(to_json(&keys.map_err(corrupt("a usage"))?)?)))
    }

    /// Deletes some request ids and reservations of the periods; returns how many, and whether none
    /// is left.
    pub(super) async fn delete_ids(&self, session: &mut Session) -> Result<(u64, bool), Outage> {
        let mut left = MAX_IDS;
        for (on_postgres, on_sqlite) in [DELETE_REQUEST_IDS, DELETE_RESERVATIONS] {
            let some = Statement::either(on_postgres, on_sqlite).bind(&*self.0).bind(left);
            let deleted = u32::try_from(session.rows(some).await?.len()).unwrap_or(left);
            left = left.saturating_sub(deleted);
        }
        Ok((u64::from(MAX_IDS - left), left > 0))
    }

    /// Applies [`MARK`] or [`DELETE`]; returns the number of periods.
    pub(super) async fn apply(
        &self,
        session: &mut Session,
        (on_postgres, on_sqlite): (&'static str, &'static str),
    ) -> Result<u64, Outage> {
        let statement = Statement::either(on_postgres, on_sqlite).bind(&*self.0);
        Ok(session.rows(statement).await?.len() as u64)
    }
}
