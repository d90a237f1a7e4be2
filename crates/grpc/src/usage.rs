//! `GetUsage`: usage under a rule.

use headgate_ratelimit::usecase::{Usage, UsageError};

use super::{error::CallError, proto::GetUsageResponse, wire::number};

/// Returns a rule, and its usage by a subject.
pub(super) fn shown(usage: &Usage) -> Result<GetUsageResponse, CallError> {
    // Only stored rules have usage; the default rule has none.
    let rule = usage.rule.rule().ok_or_else(|| CallError::NoSuchRule("default".to_owned()))?;
    Ok(GetUsageResponse {
        rule_id: rule.id.to_string(),
        rule_name: rule.display_name(),
        limit: rule.spec.limit.into(),
        window_secs: rule.spec.window_seconds.into(),
        algorithm: rule.spec.algorithm.name().to_owned(),
        enabled: rule.spec.enabled,
        used: usage.subject.map(|subject| number(subject.used)),
        remaining: usage.subject.map(|subject| number(subject.remaining)),
        reset_at: usage.subject.map(|subject| number(subject.reset_at)),
    })
}

impl From<UsageError> for CallError {
    fn from(error: UsageError) -> Self {
        match error {
            UsageError::NoSuchRule(id) => Self::NoSuchRule(id.to_string()),
            UsageError::OtherSubject(_) | UsageError::Identifier(_) => {
                Self::field("identifier", error.to_string())
            }
        }
    }
}
