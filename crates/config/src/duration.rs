use std::time::Duration;

use serde::Deserialize;

use crate::problem::quoted;

/// A duration of up to a day, written `500ms`, `30s`, `5m` or `1h`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct ConfigDuration(Duration);

impl ConfigDuration {
    const MAX: Duration = Duration::from_hours(24);

    /// Creates a duration of `seconds`.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Returns the duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl TryFrom<String> for ConfigDuration {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let in_range = |duration: &Duration| !duration.is_zero() && *duration <= Self::MAX;
        parse(&text).filter(in_range).map(Self).ok_or_else(|| {
            format!(
                "expected a duration of up to a day such as 500ms, 30s, 5m or 1h, got {}",
                quoted(&text)
            )
        })
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
