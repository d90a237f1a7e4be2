//! Rules as rows, and as JSON in the audit log.

use std::time::Duration;

use headgate::{FailMode, LeasePolicy};
use headgate_ratelimit::{
    Draft, FieldError, Input, LeaseDraft, RateLimitRule, RepositoryError, RuleId, RuleSpec,
};
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::selector;
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
        lease: lease(row)?,
        enabled: Input::Given(row.get("enabled")?),
        selector: selector::read(row.get("selector")?),
    })
}

/// The hold is shortened to what the window allows: a server of an older version, which does not
/// know leases, may have shortened the window.
fn lease(row: &Row) -> Result<Input<LeaseDraft>, sqlx::Error> {
    let share_percent: Option<i64> = row.get("lease_share_percent")?;
    let hold_ms: Option<i64> = row.get("lease_hold_ms")?;
    if share_percent.is_none() && hold_ms.is_none() {
        return Ok(Input::Null);
    }
    let window: i64 = row.get("window_secs")?;
    let window = Duration::from_secs(window.try_into().unwrap_or_default());
    let most = i64::try_from(LeasePolicy::max_hold_ms(window)).unwrap_or(i64::MAX);
    let hold_ms = optional(hold_ms.map(|hold_ms| hold_ms.min(most)));
    Ok(Input::Given(LeaseDraft { share_percent: optional(share_percent), hold_ms }))
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
    lease_share_percent: Option<u8>,
    lease_hold_ms: Option<u16>,
    selector: Option<String>,
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
            lease_share_percent: spec.lease.map(LeasePolicy::share_percent),
            lease_hold_ms: spec.lease.map(LeasePolicy::hold_ms),
            selector: spec.selector.as_deref().map(|own| selector::to_json(own).to_string()),
            enabled: spec.enabled,
            created_at: rule.created_at.as_micros(),
            updated_at: rule.updated_at.as_micros(),
        }
    }
}

/// Converts a rule to JSON.
pub(super) fn to_json(spec: &RuleSpec) -> String {
    let mut json = json!({
        "name": spec.name,
        "scope": spec.scope.name(),
        "identifier_pattern": spec.identifier_pattern.to_string(),
        "limit": spec.limit,
        "window_seconds": spec.window_seconds,
        "algorithm": spec.algorithm.name(),
        "burst": spec.burst,
        "fail_mode": spec.fail_mode.map(FailMode::name),
        "lease": spec.lease.map(|lease| json!({
            "share_percent": lease.share_percent(),
            "hold_ms": lease.hold_ms(),
        })),
        "enabled": spec.enabled,
    });
    if let (Some(own), Some(fields)) = (&spec.selector, json.as_object_mut())
        && let Json::Object(mut conditions) = selector::to_json(own)
    {
        if let Some(limits) = conditions.remove(selector::LIMITS) {
            fields.insert("limit".to_owned(), limits);
        }
        fields.extend(conditions);
    }
    json.to_string()
}
