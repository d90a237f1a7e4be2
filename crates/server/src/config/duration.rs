use std::time::Duration;

use serde::Deserialize;

use super::problem::shown;

/// A stretch of time, written `500ms`, `30s`, `5m` or `1h`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Stretch(Duration);

impl Stretch {
    /// The longest: a day.
    const MAX: Duration = Duration::from_hours(24);

    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// The time itself.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<String> for Stretch {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text).filter(|time| !time.is_zero() && *time <= Self::MAX).map(Self).ok_or_else(
            || {
                format!(
                    "expected a time of up to a day such as 500ms, 30s, 5m or 1h, got {}",
                    shown(&text)
                )
            },
        )
    }
}

fn parse(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let millis_per_unit = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    let units: u64 = digits.parse().ok()?;
    Some(Duration::from_millis(units.checked_mul(millis_per_unit)?))
}
