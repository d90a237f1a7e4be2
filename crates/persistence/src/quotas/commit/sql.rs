//! The statements of a batch for PostgreSQL and SQLite. Rows are bound as a JSON array.

use crate::sql::time;

/// Creates missing rows, in a fixed order. A disabled policy needs one only for its reservations.
pub(super) const ENSURE: (&str, &str) = (
    concat!(
        "INSERT INTO quota_usages
            (policy_id, period_name, period_start, period_end, quota_limit, used, updated_at)
        SELECT k.policy_id, k.period_name, ",
        time!("k.period_start"),
        ", ",
        time!("k.period_end"),
        ", p.quota_limit, 0, $2
        FROM jsonb_to_recordset(CAST($1 AS jsonb))
            AS k(policy_id text, period_name text, period_start bigint, period_end bigint,
                reserving boolean)
        JOIN quota_policies p ON p.id = k.policy_id AND (p.enabled OR k.reserving)
        WHERE k.period_start IS NOT NULL AND NOT EXISTS (
            SELECT FROM quota_usages u
            WHERE u.policy_id = k.policy_id AND u.period_name = k.period_name)
        ORDER BY k.policy_id, k.period_name
        ON CONFLICT DO NOTHING"
    ),
    "INSERT INTO quota_usages
        (policy_id, period_name, period_start, period_end, quota_limit, used, updated_at)
    SELECT value->>'policy_id', value->>'period_name', value->>'period_start',
        value->>'period_end', p.quota_limit, 0, $2
    FROM json_each($1) JOIN quota_policies p ON p.id = value->>'policy_id'
        AND (p.enabled OR value->>'reserving')
    WHERE value->>'period_start' IS NOT NULL
    ON CONFLICT DO NOTHING",
);

/// Locks the rows in a fixed order. SQLite has one writer at a time.
pub(super) const LOCK: (&str, &str) = (
    "SELECT u.policy_id, u.period_name, u.period_end, u.used, u.reserved, u.resets,
        u.threshold_told, u.exceeded_told
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text)
    JOIN quota_usages u ON u.policy_id = k.policy_id AND u.period_name = k.period_name
    ORDER BY u.policy_id, u.period_name
    FOR UPDATE OF u",
    "SELECT u.policy_id, u.period_name, u.period_end, u.used, u.reserved, u.resets,
        u.threshold_told, u.exceeded_told
    FROM json_each($1)
    JOIN quota_usages u
        ON u.policy_id = value->>'policy_id' AND u.period_name = value->>'period_name'",
);

/// Selects the policies, and the time at which the transaction began by PostgreSQL's clock.
pub(super) const TERMS: (&str, &str) = (
    "SELECT p.id, p.subject_type, p.subject_id, p.period, p.quota_limit, p.enabled,
        p.alert_threshold_percent, now() AS now
    FROM jsonb_array_elements_text(CAST($1 AS jsonb)) AS k(id)
    JOIN quota_policies p ON p.id = k.id",
    "SELECT p.id, p.subject_type, p.subject_id, p.period, p.quota_limit, p.enabled,
        p.alert_threshold_percent
    FROM json_each($1) AS k JOIN quota_policies p ON p.id = k.value",
);

/// Selects the charges of request ids.
pub(super) const SELECT_CHARGES: (&str, &str) = (
    "SELECT i.policy_id, i.period_name, i.request_id, i.amount, i.used, i.reserved,
        i.quota_limit, i.resets, i.refunded
    FROM jsonb_to_recordset(CAST($1 AS jsonb))
        AS k(policy_id text, period_name text, request_id text)
    JOIN quota_increments i ON i.policy_id = k.policy_id AND i.period_name = k.period_name
        AND i.request_id = k.request_id",
    "SELECT i.policy_id, i.period_name, i.request_id, i.amount, i.used, i.reserved,
        i.quota_limit, i.resets, i.refunded
    FROM json_each($1)
    JOIN quota_increments i ON i.policy_id = value->>'policy_id'
        AND i.period_name = value->>'period_name' AND i.request_id = value->>'request_id'",
);

/// Updates usage. `updated_at` never goes back, even if a server's clock is behind.
pub(super) const UPDATE_USAGES: (&str, &str) = (
    "UPDATE quota_usages AS u SET used = k.used, reserved = k.reserved,
        quota_limit = k.quota_limit, threshold_told = k.threshold_told, exceeded_told = k.exceeded_told,
        updated_at = greatest(u.updated_at, $2)
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text, used bigint,
        reserved bigint, quota_limit bigint, threshold_told boolean, exceeded_told boolean)
    WHERE u.policy_id = k.policy_id AND u.period_name = k.period_name",
    "UPDATE quota_usages AS u SET used = value->>'used', reserved = value->>'reserved',
        quota_limit = value->>'quota_limit',
        threshold_told = value->>'threshold_told', exceeded_told = value->>'exceeded_told',
        updated_at = max(u.updated_at, $2)
    FROM json_each($1)
    WHERE u.policy_id = value->>'policy_id' AND u.period_name = value->>'period_name'",
);

/// Inserts the charges of request ids.
pub(super) const INSERT_CHARGES: (&str, &str) = (
    "INSERT INTO quota_increments
        (policy_id, period_name, request_id, amount, used, reserved, quota_limit, resets, refunded,
        created_at)
    SELECT k.policy_id, k.period_name, k.request_id, k.amount, k.used, k.reserved, k.quota_limit,
        k.resets, k.refunded, $2
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text,
        request_id text, amount bigint, used bigint, reserved bigint, quota_limit bigint,
        resets bigint, refunded bigint)",
    "INSERT INTO quota_increments
        (policy_id, period_name, request_id, amount, used, reserved, quota_limit, resets, refunded,
        created_at)
    SELECT value->>'policy_id', value->>'period_name', value->>'request_id', value->>'amount',
        value->>'used', value->>'reserved', value->>'quota_limit', value->>'resets',
        value->>'refunded', $2
    FROM json_each($1)",
);

/// Updates the refunds of charges.
pub(super) const REFUND_CHARGES: (&str, &str) = (
    "UPDATE quota_increments AS i SET refunded = k.refunded
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text,
        request_id text, refunded bigint)
    WHERE i.policy_id = k.policy_id AND i.period_name = k.period_name
        AND i.request_id = k.request_id",
    "UPDATE quota_increments AS i SET refunded = value->>'refunded'
    FROM json_each($1)
    WHERE i.policy_id = value->>'policy_id' AND i.period_name = value->>'period_name'
        AND i.request_id = value->>'request_id'",
);

/// Serializes transactions that insert events. It is the last lock that a transaction takes, which
/// prevents deadlocks.
pub(super) const LOCK_EVENTS: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('headgate.quota_events', 0))";

/// Inserts events.
pub(super) const INSERT_EVENTS: (&str, &str) = (
    concat!(
        "INSERT INTO quota_events (event_id, kind, policy_id, subject_type, subject_id, period,
            quota_limit, used, alert_threshold_percent, occurred_at, reset_at)
        SELECT k.event_id, k.kind, k.policy_id, k.subject_type, k.subject_id, k.period,
            k.quota_limit, k.used, k.alert_threshold_percent, ",
        time!("k.occurred_at"),
        ", ",
        time!("k.reset_at"),
        " FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(place bigint, event_id text, kind text,
            policy_id text, subject_type text, subject_id text, period text, quota_limit bigint,
            used bigint, alert_threshold_percent bigint, occurred_at bigint, reset_at bigint)
        ORDER BY k.place
        ON CONFLICT (event_id) DO NOTHING"
    ),
    "INSERT INTO quota_events (event_id, kind, policy_id, subject_type, subject_id, period,
        quota_limit, used, alert_threshold_percent, occurred_at, reset_at)
    SELECT value->>'event_id', value->>'kind', value->>'policy_id', value->>'subject_type',
        value->>'subject_id', value->>'period', value->>'quota_limit', value->>'used',
        value->>'alert_threshold_percent', value->>'occurred_at', value->>'reset_at'
    FROM json_each($1) WHERE true ORDER BY value->>'place'
    ON CONFLICT (event_id) DO NOTHING",
);
