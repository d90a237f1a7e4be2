//! Overrides as rows, and as JSON in the audit log.

use headgate::Timestamp;
use headgate_ratelimit::{
    Input, OverrideDraft, OverrideId, OverrideSpec, RepositoryError, RuleOverride,
};
use jiff::tz::TimeZone;
use serde_json::{Value as Json, json};

use crate::{moment::Moment, row::Row};

/// Reads an override and validates it, since rows may have been edited by hand.
pub(super) fn read(row: &Row) -> Result<RuleOverride, RepositoryError> {
    let id = row.id("id").map_err(|error| RepositoryError::Corrupt(error.to_string()))?;
    let corrupt = |why: String| RepositoryError::Corrupt(format!("override {id}: {why}"));
    let draft = draft(row).map_err(|error| corrupt(error.to_string()))?;
    let spec = draft.validate(None).map_err(|errors| {
        let messages: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
        corrupt(messages.join("; "))
    })?;
    let time = |column| row.time(column).map_err(|error| corrupt(error.to_string()));
    let (created_at, updated_at) = (time("created_at")?, time("updated_at")?);
    Ok(RuleOverride { id: OverrideId::from(id), spec, created_at, updated_at })
}

fn draft(row: &Row) -> Result<OverrideDraft, sqlx::Error> {
    let subject: String = row.get("subject")?;
    let until: Option<Moment> = row.get("ends_at")?;
    let reason: Option<String> = row.get("reason")?;
    Ok(OverrideDraft {
        rule_id: row.id("rule_id")?.to_string().into(),
        // What is no JSON fails the validation.
        subject: serde_json::from_str::<Json>(&subject).unwrap_or_default().into(),
        limit: row.get::<i64>("limit_count")?.into(),
        until: until.map_or(Input::Null, |until| Some(until.0).into()),
        reason: reason.map_or(Input::Null, Input::Given),
    })
}

/// Converts an override to JSON.
pub(super) fn to_json(spec: &OverrideSpec) -> String {
    let json = json!({
        "name": spec.subject.to_string(),
        "rule_id": spec.rule.to_string(),
        "subject": spec.subject.to_json(),
        "limit": spec.limit,
        "until": spec.until.map(shown),
        "reason": spec.reason,
    });
    json.to_string()
}

/// Formats a time as APIs do.
fn shown(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}
