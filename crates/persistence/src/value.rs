//! Parameters of statements.

use headgate::Timestamp;
use headgate_quota::QuotaId;
use headgate_ratelimit::{OverrideId, RuleId};
use uuid::Uuid;

use crate::moment::Moment;

/// A parameter of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Option<String>),
    Number(Option<i64>),
    Flag(bool),
    Id(Uuid),
    Time(Option<Moment>),
}

// === impl Value ===

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Some(text).into()
    }
}

impl From<Option<&str>> for Value {
    fn from(text: Option<&str>) -> Self {
        // PostgreSQL cannot store this character.
        Self::Text(text.map(|text| text.replace('\0', "\u{FFFD}")))
    }
}

impl From<&QuotaId> for Value {
    fn from(id: &QuotaId) -> Self {
        id.as_str().into()
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Some(number).into()
    }
}

impl From<Option<i64>> for Value {
    fn from(number: Option<i64>) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Some(number).into()
    }
}

impl From<Option<u32>> for Value {
    fn from(number: Option<u32>) -> Self {
        Self::Number(number.map(i64::from))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(Some(number.try_into().unwrap_or(i64::MAX)))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<RuleId> for Value {
    fn from(id: RuleId) -> Self {
        Self::Id(id.as_uuid())
    }
}

impl From<OverrideId> for Value {
    fn from(id: OverrideId) -> Self {
        Self::Id(id.as_uuid())
    }
}

impl From<Timestamp> for Value {
    fn from(time: Timestamp) -> Self {
        Some(time).into()
    }
}

impl From<Option<Timestamp>> for Value {
    fn from(time: Option<Timestamp>) -> Self {
        Self::Time(time.map(Moment))
    }
}
