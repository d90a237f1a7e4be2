//! Statements and rows of reservations.

use std::time::Duration;

use headgate_quota::{
    LastUse, Operation, RepositoryError, Reservation, ReservationStatus, SettledFor,
    ledger::book::Account,
};
use serde::Serialize;

use super::read::account;
use crate::{
    quotas::{corrupt, unsigned},
    row::Row,
    sql::time,
};

/// The columns that [`read`] needs.
macro_rules! columns {
    () => {
        "r.policy_id, r.period_name, r.id, r.request_id, r.amount, r.held, r.charged, r.returned,
        r.owed, r.status, r.metered, r.ttl_seconds, r.expires_at, r.created_at, r.use_request_id,
        r.use_amount, r.use_charged, r.use_owed, r.use_stop, r.settle_amount, r.settle_overdraft"
    };
}

/// Selects reservations by id and by request id, each with its own index.
pub(super) const SELECT: (&str, &str) = (
    concat!(
        "SELECT ",
        columns!(),
        " FROM jsonb_to_recordset(CAST($1 AS jsonb))
            AS k(policy_id text, period_name text, id text)
        JOIN quota_reservations r ON r.policy_id = k.policy_id AND r.period_name = k.period_name
            AND r.id = k.id
        UNION
        SELECT ",
        columns!(),
        " FROM jsonb_to_recordset(CAST($1 AS jsonb))
            AS k(policy_id text, period_name text, request_id text)
        JOIN quota_reservations r ON r.policy_id = k.policy_id AND r.period_name = k.period_name
            AND r.request_id = k.request_id"
    ),
    concat!(
        "SELECT ",
        columns!(),
        " FROM json_each($1) JOIN quota_reservations r ON r.policy_id = value->>'policy_id'
            AND r.period_name = value->>'period_name' AND r.id = value->>'id'
        UNION
        SELECT ",
        columns!(),
        " FROM json_each($1) JOIN quota_reservations r ON r.policy_id = value->>'policy_id'
            AND r.period_name = value->>'period_name' AND r.request_id = value->>'request_id'"
    ),
);

/// Selects one reservation.
pub(in crate::quotas) const SELECT_ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM quota_reservations r WHERE policy_id = $1 AND period_name = $2 AND id = $3"
);

/// Inserts new reservations, and updates changed ones.
pub(super) const WRITE: (&str, &str) = (
    concat!(
        "INSERT INTO quota_reservations (policy_id, period_name, id, request_id, amount, held,
            charged, returned, owed, status, metered, ttl_seconds, expires_at, created_at,
            use_request_id, use_amount, use_charged, use_owed, use_stop, settle_amount,
            settle_overdraft)
        SELECT k.policy_id, k.period_name, k.id, k.request_id, k.amount, k.held, k.charged,
            k.returned, k.owed, k.status, k.metered, k.ttl_seconds, ",
        time!("k.expires_at"),
        ", ",
        time!("k.created_at"),
        ", k.use_request_id, k.use_amount, k.use_charged, k.use_owed, k.use_stop, k.settle_amount,
            k.settle_overdraft
        FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text, id text,
            request_id text, amount bigint, held bigint, charged bigint, returned bigint,
            owed bigint, status text, metered boolean, ttl_seconds bigint, expires_at bigint,
            created_at bigint, use_request_id text, use_amount bigint, use_charged bigint,
            use_owed bigint, use_stop boolean, settle_amount bigint, settle_overdraft boolean)
        ON CONFLICT (policy_id, period_name, id) DO UPDATE SET ",
        "held = excluded.held, charged = excluded.charged, returned = excluded.returned,
        owed = excluded.owed, status = excluded.status, expires_at = excluded.expires_at,
        use_request_id = excluded.use_request_id, use_amount = excluded.use_amount,
        use_charged = excluded.use_charged, use_owed = excluded.use_owed,
        use_stop = excluded.use_stop, settle_amount = excluded.settle_amount,
        settle_overdraft = excluded.settle_overdraft"
    ),
    "INSERT INTO quota_reservations (policy_id, period_name, id, request_id, amount, held,
        charged, returned, owed, status, metered, ttl_seconds, expires_at, created_at,
        use_request_id, use_amount, use_charged, use_owed, use_stop, settle_amount,
        settle_overdraft)
    SELECT value->>'policy_id', value->>'period_name', value->>'id', value->>'request_id',
        value->>'amount', value->>'held', value->>'charged', value->>'returned', value->>'owed',
        value->>'status', value->>'metered', value->>'ttl_seconds', value->>'expires_at',
        value->>'created_at', value->>'use_request_id', value->>'use_amount',
        value->>'use_charged', value->>'use_owed', value->>'use_stop', value->>'settle_amount',
        value->>'settle_overdraft'
    FROM json_each($1) WHERE true
    ON CONFLICT (policy_id, period_name, id) DO UPDATE SET
        held = excluded.held, charged = excluded.charged, returned = excluded.returned,
        owed = excluded.owed, status = excluded.status, expires_at = excluded.expires_at,
        use_request_id = excluded.use_request_id, use_amount = excluded.use_amount,
        use_charged = excluded.use_charged, use_owed = excluded.use_owed,
        use_stop = excluded.use_stop, settle_amount = excluded.settle_amount,
        settle_overdraft = excluded.settle_overdraft",
);

/// Sums up what reservations hold whose TTL is over, by period.
pub(super) const SELECT_DUE: (&str, &str) = (
    "SELECT r.policy_id, r.period_name, CAST(sum(r.held) AS bigint) AS held, count(*) AS total
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text)
    JOIN quota_reservations r ON r.policy_id = k.policy_id AND r.period_name = k.period_name
    WHERE r.status = 'pending' AND r.expires_at <= $2
    GROUP BY r.policy_id, r.period_name",
    "SELECT r.policy_id, r.period_name, CAST(sum(r.held) AS INTEGER) AS held, count(*) AS total
    FROM json_each($1) JOIN quota_reservations r ON r.policy_id = value->>'policy_id'
        AND r.period_name = value->>'period_name'
    WHERE r.status = 'pending' AND r.expires_at <= $2
    GROUP BY r.policy_id, r.period_name",
);

/// Ends reservations whose TTL is over.
pub(super) const EXPIRE: (&str, &str) = (
    "UPDATE quota_reservations AS r SET status = 'expired', returned = r.held, held = 0
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text)
    WHERE r.policy_id = k.policy_id AND r.period_name = k.period_name
        AND r.status = 'pending' AND r.expires_at <= $2",
    "UPDATE quota_reservations AS r SET status = 'expired', returned = r.held, held = 0
    FROM json_each($1)
    WHERE r.policy_id = value->>'policy_id' AND r.period_name = value->>'period_name'
        AND r.status = 'pending' AND r.expires_at <= $2",
);

/// A period.
#[derive(Serialize)]
pub(in crate::quotas) struct AccountRow<'a> {
    policy_id: &'a str,
    period_name: &'a str,
}

/// What identifies a reservation.
#[derive(Serialize)]
pub(super) struct ReservationKey<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    id: Option<&'a str>,
    request_id: Option<&'a str>,
}

/// A reservation as it is sent to the database.
#[derive(Serialize)]
pub(super) struct ReservationRow<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    id: &'a str,
    request_id: Option<&'a str>,
    amount: u64,
    held: u64,
    charged: u64,
    returned: u64,
    owed: u64,
    status: &'static str,
    metered: bool,
    ttl_seconds: u64,
    expires_at: u64,
    created_at: u64,
    use_request_id: Option<&'a str>,
    use_amount: Option<u64>,
    use_charged: Option<u64>,
    use_owed: Option<u64>,
    use_stop: Option<bool>,
    settle_amount: Option<u64>,
    settle_overdraft: Option<bool>,
}

// === impl AccountRow ===

impl<'a> From<&'a Account> for AccountRow<'a> {
    fn from(account: &'a Account) -> Self {
        Self { policy_id: account.policy.as_str(), period_name: &account.period_name }
    }
}

/// Returns the key of the reservation that an operation needs; `None` if it needs none.
pub(super) fn key(operation: &Operation) -> Option<ReservationKey<'_>> {
    let (id, request_id) = match operation {
        Operation::Change(change) => (Some(change.id.as_str()), None),
        Operation::Reserve(reserve) => (None, Some(reserve.request_id.as_deref()?)),
        Operation::Increment(_) | Operation::Refund(_) => return None,
    };
    let (policy_id, period_name) = (operation.policy().as_str(), operation.period_name());
    Some(ReservationKey { policy_id, period_name, id, request_id })
}

/// Converts a reservation.
pub(super) fn row<'a>((account, one): (&'a Account, &'a Reservation)) -> ReservationRow<'a> {
    let last = one.last_use.as_ref();
    ReservationRow {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        id: one.id.as_str(),
        request_id: one.request_id.as_deref(),
        amount: one.amount,
        held: one.held,
        charged: one.charged,
        returned: one.returned,
        owed: one.owed,
        status: one.status.name(),
        metered: one.metered,
        ttl_seconds: one.ttl.as_secs(),
        expires_at: one.expires_at.as_micros(),
        created_at: one.created_at.as_micros(),
        use_request_id: last.and_then(|last| last.request_id.as_deref()),
        use_amount: last.map(|last| last.amount),
        use_charged: last.map(|last| last.charged),
        use_owed: last.map(|last| last.owed),
        use_stop: last.map(|last| last.stop),
        settle_amount: one.settled_for.map(|wanted| wanted.amount),
        settle_overdraft: one.settled_for.map(|wanted| wanted.overdraft),
    }
}

/// Reads a reservation.
pub(in crate::quotas) fn read(row: &Row) -> Result<(Account, Reservation), RepositoryError> {
    let text: String = row.get("id").map_err(corrupt("a reservation"))?;
    let invalid = |why: &dyn std::fmt::Display| RepositoryError::Corrupt(format!("{text}: {why}"));
    let status: String = row.get("status").map_err(|error| invalid(&error))?;
    let status: ReservationStatus = status.parse().map_err(|error| invalid(&error))?;
    let id = text.parse().map_err(|error| invalid(&error))?;
    let units = |column| row.get::<i64>(column).map(unsigned);
    let read = || {
        let reservation = Reservation {
            id,
            request_id: row.get("request_id")?,
            amount: units("amount")?,
            held: units("held")?,
            charged: units("charged")?,
            returned: units("returned")?,
            owed: units("owed")?,
            status,
            metered: row.get("metered")?,
            ttl: Duration::from_secs(units("ttl_seconds")?),
            expires_at: row.time("expires_at")?,
            created_at: row.time("created_at")?,
            last_use: last_use(row)?,
            settled_for: settled_for(row)?,
        };
        Ok::<_, sqlx::Error>((account(row)?, reservation))
    };
    read().map_err(|error| invalid(&error))
}

fn last_use(row: &Row) -> Result<Option<LastUse>, sqlx::Error> {
    let units = |column| row.get::<Option<i64>>(column).map(|units| unsigned(units.unwrap_or(0)));
    let Some(amount) = row.get::<Option<i64>>("use_amount")? else { return Ok(None) };
    Ok(Some(LastUse {
        request_id: row.get("use_request_id")?,
        amount: unsigned(amount),
        charged: units("use_charged")?,
        owed: units("use_owed")?,
        stop: row.get::<Option<bool>>("use_stop")?.unwrap_or(false),
    }))
}

fn settled_for(row: &Row) -> Result<Option<SettledFor>, sqlx::Error> {
    let amount: Option<i64> = row.get("settle_amount")?;
    let overdraft = row.get::<Option<bool>>("settle_overdraft")?.unwrap_or(false);
    Ok(amount.map(|amount| SettledFor { amount: unsigned(amount), overdraft }))
}
