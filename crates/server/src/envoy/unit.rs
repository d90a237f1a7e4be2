use std::time::Duration;

use headgate_config::quoted;
use serde::Deserialize;

/// A stretch of time. A month has 30 days and a year 365, as in envoyproxy/ratelimit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub(crate) enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    /// The longest first.
    pub(super) const ALL: [Self; 7] =
        [Self::Year, Self::Month, Self::Week, Self::Day, Self::Hour, Self::Minute, Self::Second];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    pub(super) const fn seconds(self) -> u64 {
        const DAY: u64 = 86_400;
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => DAY,
            Self::Week => 7 * DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        }
    }

    /// As long as `times` of it.
    pub(super) fn window(self, times: u32) -> Duration {
        Duration::from_secs(self.seconds() * u64::from(times))
    }
}

impl TryFrom<String> for Unit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_meant = |unit: &Self| unit.name().eq_ignore_ascii_case(&text);
        Self::ALL.into_iter().find(is_meant).ok_or_else(|| {
            let mut names = Self::ALL.map(Self::name);
            names.reverse();
            format!("expected one of {}, got {}", names.join(", "), quoted(&text))
        })
    }
}
