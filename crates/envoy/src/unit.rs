use std::time::Duration;

use headgate_config::quoted;
use serde::Deserialize;

/// Unit of a rate's window. A month has 30 days and a year 365, as in envoyproxy/ratelimit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Unit {
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
}

impl Unit {
    /// Every unit, longest first.
    pub(crate) const ALL: [Self; 7] =
        [Self::Year, Self::Month, Self::Week, Self::Day, Self::Hour, Self::Minute, Self::Second];

    /// The names, for error messages.
    pub(crate) const EXPECTED: &str = "one of second, minute, hour, day, week, month, year";

    pub(crate) const fn name(self) -> &'static str {
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

    pub(crate) const fn seconds(self) -> u64 {
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

    /// Length of a window of `multiplier` units.
    pub(crate) fn window(self, multiplier: u32) -> Duration {
        Duration::from_secs(self.seconds() * u64::from(multiplier))
    }
}

impl TryFrom<String> for Unit {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let has_name = |unit: &Self| unit.name().eq_ignore_ascii_case(&text);
        Self::ALL
            .into_iter()
            .find(has_name)
            .ok_or_else(|| format!("expected {}, got {}", Self::EXPECTED, quoted(&text)))
    }
}
