//! Events of quotas.

use std::{fmt, str::FromStr};

use headgate::Timestamp;
use jiff::tz::TimeZone;
use serde::{Serialize, Serializer, ser::SerializeStruct};
use thiserror::Error;

use crate::{QuotaId, QuotaPeriod, QuotaUsage, Subject};

/// An event of a policy. Each kind occurs once per period of a policy, regardless of resets,
/// changes, retries and other replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaEvent {
    /// Deterministic id, see [`QuotaEvent::id`].
    pub event_id: String,
    /// Kind of event.
    pub kind: EventKind,
    /// Id of the policy.
    pub quota_id: QuotaId,
    /// Subject of the policy.
    pub subject: Subject,
    /// Period of the policy.
    pub period: QuotaPeriod,
    /// Limit at that time.
    pub limit: u64,
    /// Usage at that time.
    pub used: u64,
    /// Alert threshold of the policy.
    pub alert_threshold_percent: Option<u8>,
    /// Time of the event.
    pub at: Timestamp,
    /// End of the period.
    pub reset_at: Timestamp,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// Usage reached the alert threshold.
    ThresholdReached,
    /// Usage reached the limit, or an increment was denied, whichever came first.
    Exceeded,
}

/// Unknown kind of event.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: QUOTA_THRESHOLD_REACHED, QUOTA_EXCEEDED")]
pub struct UnknownKind;

// === impl EventKind ===

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::ThresholdReached, Self::Exceeded];

    /// Returns the name in messages and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThresholdReached => "QUOTA_THRESHOLD_REACHED",
            Self::Exceeded => "QUOTA_EXCEEDED",
        }
    }

    /// Returns the suffix of event ids.
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
    /// Returns the id of an event, which is the same on every replica.
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
                let percent = QuotaUsage::percent(self.used, self.limit);
                object.serialize_field("usage_percent", &percent)?;
                let threshold = &self.alert_threshold_percent;
                object.serialize_field("alert_threshold_percent", threshold)?;
                object.serialize_field("reached_at", &text(self.at))?;
            }
        }
        object.end()
    }
}

/// Formats as RFC 3339 with milliseconds and `+00:00`.
fn text(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    let instant = jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX);
    instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

#[cfg(test)]
mod tests;
