//! How a stretch of time is written: `60s`, `1m`, `1h`, or `60` for seconds.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// So many seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window(pub(crate) u64);

/// A text that is no window.
#[derive(Clone, Copy, Debug, Error)]
#[error("expected a time such as 60s, 1m, 1h or 60 (seconds)")]
pub(crate) struct NotAWindow;

const HOUR: u64 = 3600;

impl FromStr for Window {
    type Err = NotAWindow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let seconds_per_unit = match &text[digits.len()..] {
            "" | "s" => 1,
            "m" => 60,
            "h" => HOUR,
            _ => return Err(NotAWindow),
        };
        // `parse` would take a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAWindow);
        }
        let units: u64 = digits.parse().map_err(|_| NotAWindow)?;
        units.checked_mul(seconds_per_unit).map(Self).ok_or(NotAWindow)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds >= HOUR && seconds.is_multiple_of(HOUR) => {
                write!(f, "{}h", seconds / HOUR)
            }
            seconds => write!(f, "{seconds}s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_can_be_given() {
        for (text, seconds, shown) in [
            ("60s", 60, "60s"),
            ("1m", 60, "60s"),
            ("60", 60, "60s"),
            ("24h", 86_400, "24h"),
            ("90m", 5400, "5400s"),
        ] {
            let window: Window = text.parse().unwrap();
            assert_eq!((window.0, window.to_string().as_str()), (seconds, shown));
            assert_eq!(shown.parse::<Window>().unwrap(), window);
        }
        for text in ["", "s", "-1s", "+1", "1.5h", "1d", "18446744073709551615h"] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
    }
}
