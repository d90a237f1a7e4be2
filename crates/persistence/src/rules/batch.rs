//! The statements that write rules, for PostgreSQL and SQLite. Rows are bound as a JSON array, so
//! that a thousand rules need as many statements as one.

use headgate_ratelimit::{RuleId, RuleSpec};
use serde::Serialize;

use crate::{sql::time, statement::Statement};

/// A statement for PostgreSQL and for SQLite.
pub(super) type Sql = (&'static str, &'static str);

/// Scope, pattern and window of a rule.
#[derive(Serialize)]
pub(super) struct Identity {
    scope: &'static str,
    identifier_pattern: String,
    window_secs: u32,
}

/// Rows of rules from JSON, for PostgreSQL.
macro_rules! recordset {
    () => {
        "FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(id uuid, name text, scope text,
            identifier_pattern text, limit_count bigint, window_secs bigint, algorithm text,
            burst bigint, fail_mode text, lease_share_percent bigint, lease_hold_ms bigint,
            selector text, enabled boolean, created_at bigint, updated_at bigint)"
    };
}

/// Ids from a JSON array, for PostgreSQL.
macro_rules! uuids {
    () => {
        "(SELECT CAST(value AS uuid) FROM jsonb_array_elements_text(CAST($1 AS jsonb)))"
    };
}

pub(super) const CREATE: Sql = (
    concat!(
        "INSERT INTO rate_limit_rules (id, name, scope, identifier_pattern, limit_count,
            window_secs, algorithm, burst, fail_mode, lease_share_percent, lease_hold_ms,
            selector, enabled, created_at, updated_at)
        SELECT k.id, k.name, k.scope, k.identifier_pattern, k.limit_count, k.window_secs,
            k.algorithm, k.burst, k.fail_mode, k.lease_share_percent, k.lease_hold_ms,
            k.selector, k.enabled, ",
        time!("k.created_at"),
        ", ",
        time!("k.updated_at"),
        " ",
        recordset!()
    ),
    "INSERT INTO rate_limit_rules (id, name, scope, identifier_pattern, limit_count, window_secs,
        algorithm, burst, fail_mode, lease_share_percent, lease_hold_ms, selector, enabled,
        created_at, updated_at)
    SELECT value->>'id', value->>'name', value->>'scope', value->>'identifier_pattern',
        value->>'limit_count', value->>'window_secs', value->>'algorithm', value->>'burst',
        value->>'fail_mode', value->>'lease_share_percent', value->>'lease_hold_ms',
        value->>'selector', value->>'enabled', value->>'created_at', value->>'updated_at'
    FROM json_each($1)",
);

pub(super) const UPDATE: Sql = (
    concat!(
        "UPDATE rate_limit_rules AS r SET name = k.name, scope = k.scope,
            identifier_pattern = k.identifier_pattern, limit_count = k.limit_count,
            window_secs = k.window_secs, algorithm = k.algorithm, burst = k.burst,
            fail_mode = k.fail_mode, lease_share_percent = k.lease_share_percent,
            lease_hold_ms = k.lease_hold_ms, selector = k.selector, enabled = k.enabled, updated_at = ",
        time!("k.updated_at"),
        " ",
        recordset!(),
        " WHERE r.id = k.id"
    ),
    "UPDATE rate_limit_rules AS r SET name = value->>'name', scope = value->>'scope',
        identifier_pattern = value->>'identifier_pattern', limit_count = value->>'limit_count',
        window_secs = value->>'window_secs', algorithm = value->>'algorithm',
        burst = value->>'burst', fail_mode = value->>'fail_mode',
        lease_share_percent = value->>'lease_share_percent',
        lease_hold_ms = value->>'lease_hold_ms', selector = value->>'selector',
        enabled = value->>'enabled', updated_at = value->>'updated_at'
    FROM json_each($1) WHERE r.id = value->>'id'",
);

/// Gives rules temporary patterns that no rule can have: patterns contain no braces.
pub(super) const PARK: Sql = (
    concat!(
        "UPDATE rate_limit_rules SET identifier_pattern = '{' || CAST(id AS TEXT) WHERE id IN ",
        uuids!()
    ),
    "UPDATE rate_limit_rules SET identifier_pattern = '{' || id
    WHERE id IN (SELECT value FROM json_each($1))",
);

pub(super) const DELETE: Sql = (
    concat!("DELETE FROM rate_limit_rules WHERE id IN ", uuids!()),
    "DELETE FROM rate_limit_rules WHERE id IN (SELECT value FROM json_each($1))",
);

/// Selects an existing rule with one of these identities.
pub(super) const DUPLICATES: Sql = (
    "SELECT r.scope, r.identifier_pattern, r.window_secs
    FROM jsonb_to_recordset(CAST($1 AS jsonb))
        AS k(scope text, identifier_pattern text, window_secs bigint)
    JOIN rate_limit_rules r ON r.scope = k.scope
        AND r.identifier_pattern = k.identifier_pattern AND r.window_secs = k.window_secs
    LIMIT 1",
    "SELECT r.scope, r.identifier_pattern, r.window_secs
    FROM json_each($1) AS k
    JOIN rate_limit_rules r ON r.scope = k.value->>'scope'
        AND r.identifier_pattern = k.value->>'identifier_pattern'
        AND r.window_secs = k.value->>'window_secs'
    LIMIT 1",
);

/// Selects one of these scopes and patterns with more than `$2` windows.
pub(super) const TOO_MANY_WINDOWS: Sql = (
    "SELECT r.scope, r.identifier_pattern
    FROM (SELECT DISTINCT scope, identifier_pattern FROM jsonb_to_recordset(CAST($1 AS jsonb))
        AS j(scope text, identifier_pattern text)) AS k
    JOIN rate_limit_rules r ON r.scope = k.scope
        AND r.identifier_pattern = k.identifier_pattern
    GROUP BY r.scope, r.identifier_pattern HAVING count(*) > $2 LIMIT 1",
    "SELECT r.scope, r.identifier_pattern
    FROM (SELECT DISTINCT value->>'scope' AS scope,
        value->>'identifier_pattern' AS identifier_pattern FROM json_each($1)) AS k
    JOIN rate_limit_rules r ON r.scope = k.scope
        AND r.identifier_pattern = k.identifier_pattern
    GROUP BY r.scope, r.identifier_pattern HAVING count(*) > $2 LIMIT 1",
);

pub(super) const LIST_CHANGES: Sql = (
    "INSERT INTO rate_limit_rule_changes (revision, rule_id)
    SELECT $2, CAST(value AS uuid) FROM jsonb_array_elements_text(CAST($1 AS jsonb))",
    "INSERT INTO rate_limit_rule_changes (revision, rule_id) SELECT $2, value FROM json_each($1)",
);

/// Returns the statement with `rows` as its first parameter.
pub(super) fn statement((on_postgres, on_sqlite): Sql, rows: &impl Serialize) -> Statement {
    // Cannot fail: the rows have string keys and are written to memory.
    let rows = serde_json::to_string(rows).unwrap_or_default();
    Statement::either(on_postgres, on_sqlite).bind(&*rows)
}

/// Formats ids for both databases.
pub(super) fn ids(ids: &[RuleId]) -> Vec<String> {
    ids.iter().map(RuleId::to_string).collect()
}

impl From<&RuleSpec> for Identity {
    fn from(spec: &RuleSpec) -> Self {
        let (scope, pattern, window_secs) = spec.identity();
        Self { scope: scope.name(), identifier_pattern: pattern.to_string(), window_secs }
    }
}
