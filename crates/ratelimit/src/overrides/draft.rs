//! Overrides before validation.

use headgate::Timestamp;
use headgate_admin::{FieldError, FieldReader, Input};
use serde_json::Value as Json;

use super::{OverrideSpec, OverrideSubject};
use crate::RuleId;

/// The fields of an override before validation.
#[derive(Clone, Debug, Default)]
pub struct OverrideDraft {
    /// Id of the rule.
    pub rule_id: Input<String>,
    /// Attributes and their values, a JSON object.
    pub subject: Input<Json>,
    /// Units per window.
    pub limit: Input<i64>,
    /// End; `None` if the given text is no time.
    pub until: Input<Option<Timestamp>>,
    /// Note for people.
    pub reason: Input<String>,
}

impl OverrideDraft {
    /// Maximum length of the reason in characters.
    pub const MAX_REASON_CHARS: usize = 500;

    /// Validates the fields and reports all errors at once. An end must be after `now`, if given.
    pub fn validate(self, now: Option<Timestamp>) -> Result<OverrideSpec, Vec<FieldError>> {
        let mut reader = FieldReader::default();
        let rule = reader.required("rule_id", self.rule_id, "a string", |id| {
            id.parse::<RuleId>().map_err(|_| ("invalid", "rule_id must be a UUID".to_owned()))
        });
        let subject = reader.required("subject", self.subject, "an object", |json| {
            OverrideSubject::parse(&json).map_err(|error| ("invalid", error.to_string()))
        });
        let limit = reader.required("limit", self.limit, "a whole number", |limit| {
            u32::try_from(limit).ok().filter(|limit| *limit > 0).ok_or_else(|| {
                ("out_of_range", format!("limit must be a whole number from 1 to {}", u32::MAX))
            })
        });
        let until = reader.read("until", self.until, "a time", |until| {
            let until = until.ok_or_else(|| {
                ("invalid", "until must be a time such as 2026-12-01T00:00:00Z".to_owned())
            })?;
            match now {
                Some(now) if until <= now => {
                    Err(("past", "until must be in the future".to_owned()))
                }
                _ => Ok(until),
            }
        });
        let reason = reader.read("reason", self.reason, "a string", |text| {
            let max = Self::MAX_REASON_CHARS;
            let short = (1..=max).contains(&text.chars().count());
            short
                .then_some(text)
                .ok_or_else(|| ("length", format!("reason must have 1 to {max} characters")))
        });
        let (Some(rule), Some(subject), Some(limit)) = (rule, subject, limit) else {
            return Err(reader.errors());
        };
        let (until, reason) = (until.or(None), reason.or(None));
        reader.finish(OverrideSpec { rule, subject, limit, until, reason })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_errors_are_reported_at_once() {
        let now = Timestamp::from_micros(1_000_000);
        let draft = OverrideDraft {
            rule_id: "x".to_owned().into(),
            subject: json!({"a": []}).into(),
            limit: 0.into(),
            until: Some(now).into(),
            reason: String::new().into(),
        };
        let errors = draft.validate(Some(now)).unwrap_err();
        let fields: Vec<&str> = errors.iter().map(|error| error.field).collect();
        assert_eq!(fields, ["rule_id", "subject", "limit", "until", "reason"]);
        let errors = OverrideDraft::default().validate(None).unwrap_err();
        assert_eq!(errors.len(), 3);
    }

    #[test]
    fn stored_overrides_may_have_ended() {
        let draft = OverrideDraft {
            rule_id: RuleId::random().to_string().into(),
            subject: json!({"tenant": "acme"}).into(),
            limit: 5000.into(),
            until: Some(Timestamp::from_micros(5)).into(),
            reason: Input::Null,
        };
        assert!(draft.clone().validate(None).is_ok());
        assert!(draft.validate(Some(Timestamp::from_micros(9))).is_err());
    }
}
