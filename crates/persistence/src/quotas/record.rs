//! Policies as rows, and as JSON in the audit log.

use headgate_quota::{
    Draft, FieldError, Input, PeriodSpan, PeriodUsage, QuotaPolicy, QuotaSpec, RepositoryError,
};
use serde_json::json;

use super::{corrupt, unsigned};
use crate::{moment::Moment, row::Row, statement::Statement};

/// Reads a policy and validates it, since rows may have been edited by hand.
pub(super) fn policy(row: &Row) -> Result<QuotaPolicy, RepositoryError> {
    let id: String = row.get("id").map_err(corrupt("a policy"))?;
    let invalid = |why: String| RepositoryError::Corrupt(format!("{id}: {why}"));
    let draft = draft(row).map_err(|error| invalid(error.to_string()))?;
    let spec = draft.restore().map_err(|errors| invalid(summary(&errors)))?;
    let time = |column| row.time(column).map_err(|error| invalid(error.to_string()));
    let (created_at, updated_at) = (time("created_at")?, time("updated_at")?);
    let id = id.parse().map_err(|error| invalid(format!("{error}")))?;
    Ok(QuotaPolicy { id, spec, created_at, updated_at })
}

fn draft(row: &Row) -> Result<Draft, sqlx::Error> {
    Ok(Draft {
        name: Input::Given(row.get("name")?),
        subject_type: Input::Given(row.get("subject_type")?),
        subject_id: Input::Given(row.get("subject_id")?),
        limit: Input::Given(row.get("quota_limit")?),
        period: Input::Given(row.get("period")?),
        time_zone: optional(row.get("time_zone")?),
        enabled: Input::Given(row.get("enabled")?),
        alert_threshold_percent: optional(row.get("alert_threshold_percent")?),
    })
}

fn optional<T>(value: Option<T>) -> Input<T> {
    value.map_or(Input::Null, Input::Given)
}

fn summary(errors: &[FieldError]) -> String {
    let messages: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.message)).collect();
    messages.join("; ")
}

/// Binds the columns of a policy, from `$1` on in the order of the table.
pub(super) fn bind(statement: Statement, policy: &QuotaPolicy) -> Statement {
    let spec = &policy.spec;
    statement
        .bind(&policy.id)
        .bind(&*spec.name)
        .bind(spec.subject.kind.name())
        .bind(&*spec.subject.id)
        .bind(spec.limit)
        .bind(spec.period.name())
        .bind(spec.time_zone.as_deref())
        .bind(spec.enabled)
        .bind(spec.alert_threshold_percent.map(u32::from))
        .bind(policy.created_at)
        .bind(policy.updated_at)
}

/// Converts a policy to JSON.
pub(super) fn to_json(spec: &QuotaSpec) -> String {
    json!({
        "name": spec.name,
        "subject_type": spec.subject.kind.name(),
        "subject_id": spec.subject.id,
        "limit": spec.limit,
        "period": spec.period.name(),
        "time_zone": spec.time_zone,
        "enabled": spec.enabled,
        "alert_threshold_percent": spec.alert_threshold_percent,
    })
    .to_string()
}

/// Reads the usage of a period.
pub(super) fn usage(row: &Row) -> Result<PeriodUsage, RepositoryError> {
    let read = || {
        let span = PeriodSpan {
            name: row.get("period_name")?,
            start: row.time("period_start")?,
            end: row.time("period_end")?,
        };
        let (taken, reserved) = (unsigned(row.get("used")?), unsigned(row.get("reserved")?));
        Ok(PeriodUsage {
            span,
            limit: unsigned(row.get("quota_limit")?),
            used: taken.saturating_sub(reserved),
            reserved,
            closed_at: row.get::<Option<Moment>>("closed_at")?.map(|moment| moment.0),
            updated_at: row.time("updated_at")?,
        })
    };
    read().map_err(corrupt("a usage"))
}
