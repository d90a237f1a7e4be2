//! Rules as rows, and as JSON in the audit log.

use headgate::FailMode;
use headgate_ratelimit::{
    Draft, FieldError, Input, RateLimitRule, RepositoryError, RuleId, RuleSpec,
};
use serde::Serialize;
use serde_json::json;

use crate::row::Row;

/// Reads a rule and validates it, since rows may have been edited by hand.
pub(super) fn read(row: &Row) -> Result<RateLimitRule, RepositoryError> {
    let id = row.id("id").map_err(|error| RepositoryError::Corrupt(error.to_string()))?;
    let corrupt = |why: String| RepositoryError::Corrupt(format!("{id}: {why}"));
    let draft = draft(row).map_err(|error| corrupt(error.to_string()))?;
    let spec = draft.validate(None).map_err(|errors| corrupt(summary(&errors)))?;
    let time = |column| row.time(column).map_err(|error| corrupt(error.to_string()));
    let (created_at, updated_at) = (time("created_at")?, time("updated_at")?);
    Ok(RateLimitRule { id: RuleId::from(id), spec, created_at, updated_at })
}

fn draft(row: &Row) -> Result<Draft, sqlx::Error> {
    Ok(Draft {
        name: optional(row.get("name")?),
        scope: Input::Given(row.get("scope")?),
        identifier_pattern: Input::Given(row.get("identifier_pattern")?),
        limit: Input::Given(row.get("limit_count")?),
        window_seconds: Input::Given(row.get("window_secs")?),
        algorithm: Input::Given(row.get("algorithm")?),
        burst: optional(row.get("burst")?),
        fail_mode: optional(row.get("fail_mode")?),
        enabled: Input::Given(row.get("enabled")?),
    })
}

fn optional<T>(value: Option<T>) -> Input<T> {
    value.map_or(Input::Null, Input::Given)
}

fn summary(errors: &[FieldError]) -> String {
    let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
    messages.join("; ")
}

/// A rule as it is sent to the database.
#[derive(Serialize)]
pub(super) struct WireRule<'a> {
    id: String,
    name: Option<&'a str>,
    scope: &'static str,
    identifier_pattern: String,
    limit_count: u32,
    window_secs: u32,
    algorithm: &'static str,
    burst: Option<u32>,
    fail_mode: Option<&'static str>,
    enabled: bool,
    created_at: u64,
    updated_at: u64,
}

impl<'a> From<&'a RateLimitRule> for WireRule<'a> {
    fn from(rule: &'a RateLimitRule) -> Self {
        let spec = &rule.spec;
        Self {
            id: rule.id.to_string(),
            name: spec.name.as_deref(),
            scope: spec.scope.name(),
            identifier_pattern: spec.identifier_pattern.to_string(),
            limit_count: spec.limit,
            window_secs: spec.window_seconds,
            algorithm: spec.algorithm.name(),
            burst: spec.burst,
            fail_mode: spec.fail_mode.map(FailMode::name),
            enabled: spec.enabled,
            created_at: rule.created_at.as_micros(),
            updated_at: rule.updated_at.as_micros(),
        }
    }
}

/// Converts a rule to JSON.
pub(super) fn to_json(spec: &RuleSpec) -> String {
    json!({
        "name": spec.name,
        "scope": spec.scope.name(),
        "identifier_pattern": spec.identifier_pattern.to_string(),
        "limit": spec.limit,
        "window_seconds": spec.window_seconds,
        "algorithm": spec.algorithm.name(),
        "burst": spec.burst,
        "fail_mode": spec.fail_mode.map(FailMode::name),
        "enabled": spec.enabled,
    })
    .to_string()
}
