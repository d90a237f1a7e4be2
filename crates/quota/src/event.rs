//! What others are told about quotas.

use std::{fmt, str::FromStr};

use headgate::Timestamp;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use thiserror::Error;

use crate::{QuotaDomainService, QuotaId, QuotaPeriod, Subject};

/// What happened to a policy's usage. Each kind happens once in a policy's period, whatever is
/// reset, changed, retried or done by another replica after that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaEvent {
    /// The same wherever and whenever it is told: see [`QuotaEvent::id`].
    pub event_id: String,
    /// What happened.
    pub kind: EventKind,
    /// To which policy.
    pub quota_id: QuotaId,
    /// Whom the policy is about.
    pub subject: Subject,
    /// In which kind of period.
    pub period: QuotaPeriod,
    /// The limit at that time.
    pub limit: u64,
    /// How much was used.
    pub used: u64,
    /// The threshold that was reached, if it was one.
    pub alert_threshold_percent: Option<u8>,
    /// When it happened.
    pub at: Timestamp,
    /// When the period ends.
    pub reset_at: Timestamp,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// Usage reached the alert threshold.
    ThresholdReached,
    /// Usage reached the limit, or a request was refused: whichever came first.
    Exceeded,
}

/// A name that is no kind's.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: QUOTA_THRESHOLD_REACHED, QUOTA_EXCEEDED")]
pub struct UnknownKind;

// === impl EventKind ===

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::ThresholdReached, Self::Exceeded];

    /// The name in messages and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThresholdReached => "QUOTA_THRESHOLD_REACHED",
            Self::Exceeded => "QUOTA_EXCEEDED",
        }
    }

    /// What an event's id ends in.
    const fn suffix(self) -> &'static str {
        match self {
            Self::ThresholdReached => "threshold",
            Self::Exceeded => "exceeded",
        }
    }
}

impl FromStr for EventKind {
    type Err = UnknownKind;

    fn from_str(name: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownKind)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl QuotaEvent ===

impl QuotaEvent {
    /// The id of what happens once in this period of this policy.
    pub fn id(policy: &QuotaId, period_name: &str, kind: EventKind) -> String {
        format!("{policy}:{period_name}:{}", kind.suffix())
    }
}

impl Serialize for QuotaEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("QuotaEvent", 11)?;
        object.serialize_field("event_id", &self.event_id)?;
        object.serialize_field("event_type", self.kind.name())?;
        object.serialize_field("quota_id", &self.quota_id)?;
        object.serialize_field("subject_type", self.subject.kind.name())?;
        object.serialize_field("subject_id", &self.subject.id)?;
        object.serialize_field("period", self.period.name())?;
        object.serialize_field("limit", &self.limit)?;
        object.serialize_field("used", &self.used)?;
        match self.kind {
            EventKind::Exceeded => {
                object.serialize_field("exceeded_at", &text(self.at))?;
                object.serialize_field("reset_at", &text(self.reset_at))?;
            }
            EventKind::ThresholdReached => {
                let percent = QuotaDomainService::usage_percent(self.used, self.limit);
                object.serialize_field("usage_percent", &percent)?;
                let threshold = &self.alert_threshold_percent;
                object.serialize_field("alert_threshold_percent", threshold)?;
                object.serialize_field("reached_at", &text(self.at))?;
            }
        }
        object.end()
    }
}

/// RFC 3339 with three fraction digits and `+00:00`.
fn text(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

#[cfg(test)]
mod tests;
