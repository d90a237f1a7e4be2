//! Policies before validation.

use headgate::Cost;
use headgate_admin::{FieldError, FieldReader, Input, InvalidValue};

use crate::{PeriodCalendar, QuotaPeriod, QuotaSpec, Subject, SubjectType};

/// The fields of a policy before validation.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// See [`QuotaSpec::name`].
    pub name: Input<String>,
    /// The kind of [`QuotaSpec::subject`].
    pub subject_type: Input<String>,
    /// The id of [`QuotaSpec::subject`].
    pub subject_id: Input<String>,
    /// See [`QuotaSpec::limit`].
    pub limit: Input<i64>,
    /// See [`QuotaSpec::period`].
    pub period: Input<String>,
    /// See [`QuotaSpec::time_zone`].
    pub time_zone: Input<String>,
    /// See [`QuotaSpec::enabled`].
    pub enabled: Input<bool>,
    /// See [`QuotaSpec::alert_threshold_percent`].
    pub alert_threshold_percent: Input<i64>,
}

// === impl Draft ===

impl Draft {
    /// Maximum length of names and subject ids in characters.
    pub const MAX_CHARS: usize = 255;

    /// Validates the fields and reports all errors at once. Optional fields that are missing keep
    /// their value in `current`, if given.
    pub fn validate(self, current: Option<&QuotaSpec>) -> Result<QuotaSpec, Vec<FieldError>> {
        self.read(current, parse_zone)
    }

    /// Validates the fields of a stored policy. Its time zone may be unknown to this version: such
    /// a policy cannot be used, but can be shown, changed and deleted.
    pub fn restore(self) -> Result<QuotaSpec, Vec<FieldError>> {
        self.read(None, Ok)
    }

    fn read(
        self,
        current: Option<&QuotaSpec>,
        parse_zone: impl FnOnce(String) -> Result<String, InvalidValue>,
    ) -> Result<QuotaSpec, Vec<FieldError>> {
        let mut reader = FieldReader::default();
        let name = reader.required("name", self.name, "a string", text("name"));
        let kind = reader.required("subject_type", self.subject_type, "a string", |name| {
            name.parse::<SubjectType>().map_err(unknown)
        });
        let id = reader.required("subject_id", self.subject_id, "a string", text("subject_id"));
        let limit = reader.required("limit", self.limit, "a whole number", parse_limit);
        let period = reader.required("period", self.period, "a string", |name| {
            name.parse::<QuotaPeriod>().map_err(unknown)
        });
        let time_zone = reader
            .read("time_zone", self.time_zone, "a string", parse_zone)
            .or(current.and_then(|policy| policy.time_zone.clone()));
        let enabled = reader
            .read("enabled", self.enabled, "a boolean", Ok)
            .or(current.map(|policy| policy.enabled))
            .unwrap_or(true);
        let threshold = ("alert_threshold_percent", self.alert_threshold_percent);
        let alert_threshold_percent = reader
            .read(threshold.0, threshold.1, "a whole number", parse_threshold)
            .or(current.and_then(|policy| policy.alert_threshold_percent));
        let (Some(name), Some(kind), Some(id), Some(limit), Some(period)) =
            (name, kind, id, limit, period)
        else {
            return Err(reader.errors());
        };
        reader.finish(QuotaSpec {
            name,
            subject: Subject { kind, id },
            limit,
            period,
            time_zone,
            enabled,
            alert_threshold_percent,
        })
    }

    /// Validates a partial update: all fields that are missing keep their value in `current`.
    pub fn amend(self, current: &QuotaSpec) -> Result<QuotaSpec, Vec<FieldError>> {
        let kept = Self::from(current);
        let or = |sent: Input<String>, kept| if sent == Input::Missing { kept } else { sent };
        let limit = if self.limit == Input::Missing { kept.limit } else { self.limit };
        let full = Self {
            name: or(self.name, kept.name),
            subject_type: or(self.subject_type, kept.subject_type),
            subject_id: or(self.subject_id, kept.subject_id),
            limit,
            period: or(self.period, kept.period),
            ..self
        };
        full.validate(Some(current))
    }
}

impl From<&QuotaSpec> for Draft {
    fn from(spec: &QuotaSpec) -> Self {
        Self {
            name: spec.name.clone().into(),
            subject_type: spec.subject.kind.name().to_owned().into(),
            subject_id: spec.subject.id.clone().into(),
            limit: spec.limit.cast_signed().into(),
            period: spec.period.name().to_owned().into(),
            time_zone: spec.time_zone.clone().map_or(Input::Null, Input::Given),
            enabled: spec.enabled.into(),
            alert_threshold_percent: spec
                .alert_threshold_percent
                .map_or(Input::Null, |percent| Input::Given(percent.into())),
        }
    }
}

fn text(field: &'static str) -> impl Fn(String) -> Result<String, InvalidValue> {
    move |text| {
        if text.chars().any(char::is_control) {
            return Err(("invalid", format!("{field} must not contain control characters")));
        }
        if text.trim().is_empty() || text.chars().count() > Draft::MAX_CHARS {
            let max = Draft::MAX_CHARS;
            return Err(("length", format!("{field} must have 1 to {max} characters")));
        }
        Ok(text)
    }
}

fn unknown(error: impl std::fmt::Display) -> InvalidValue {
    ("unknown", error.to_string())
}

fn parse_limit(number: i64) -> Result<u64, InvalidValue> {
    match u64::try_from(number) {
        Ok(0) | Err(_) => Err(("must_be_positive", "limit must be greater than 0".to_owned())),
        Ok(number) if number > Cost::MAX => {
            Err(("too_large", format!("limit must be at most {}", Cost::MAX)))
        }
        Ok(number) => Ok(number),
    }
}

fn parse_zone(name: String) -> Result<String, InvalidValue> {
    match PeriodCalendar::new(QuotaPeriod::Daily, Some(&name)) {
        Ok(_) if name.len() <= 64 => Ok(name),
        Ok(_) => Err(("length", "time_zone must have at most 64 characters".to_owned())),
        Err(error) => Err(unknown(error)),
    }
}

fn parse_threshold(percent: i64) -> Result<u8, InvalidValue> {
    let message = "alert_threshold_percent must be between 0 and 100";
    let percent = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
    percent.ok_or_else(|| ("out_of_range", message.to_owned()))
}

#[cfg(test)]
mod tests;
