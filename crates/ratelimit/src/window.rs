//! The text form of a window: `60s`, `1m`, `1h`, or `60` for seconds.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The length of a window in whole seconds.
///
/// Parsing refuses zero and anything but digits with an optional unit; [`headgate::Limit`] checks
/// the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window(u64);

/// Error for a text that is not a window.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("window must be written like 60s, 1m, 1h or 60 (seconds)")]
pub struct InvalidWindow;

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;

impl Window {
    /// A window of this many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds)
    }

    /// The seconds in it.
    pub const fn seconds(self) -> u64 {
        self.0
    }
}

impl FromStr for Window {
    type Err = InvalidWindow;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let seconds_per_unit = match &text[digits.len()..] {
            "" | "s" => 1,
            "m" => MINUTE,
            "h" => HOUR,
            _ => return Err(InvalidWindow),
        };
        // `parse` would accept a sign.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidWindow);
        }
        let units: u64 = digits.parse().map_err(|_| InvalidWindow)?;
        let seconds = units.checked_mul(seconds_per_unit).filter(|seconds| *seconds > 0);
        seconds.map(Self).ok_or(InvalidWindow)
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
    fn parses_what_it_displays() {
        for (text, seconds, displayed) in [
            ("60s", 60, "60s"),
            ("1m", 60, "60s"),
            ("60", 60, "60s"),
            ("1h", 3600, "1h"),
            ("24h", 86_400, "24h"),
            ("1440m", 86_400, "24h"),
            ("90m", 5400, "5400s"),
        ] {
            let window: Window = text.parse().unwrap();
            assert_eq!((window.seconds(), window.to_string().as_str()), (seconds, displayed));
            assert_eq!(displayed.parse(), Ok(window));
        }
    }

    #[test]
    fn refuses_anything_but_digits_with_a_unit() {
        for text in [
            "",
            "s",
            "0",
            "0s",
            "-1",
            "-1s",
            "+1",
            "1.5m",
            "60 s",
            "1d",
            "1ms",
            "60S",
            "６０s",
            "\u{0}",
            "99999999999999999999",
            "18446744073709551615h",
            "1e3",
        ] {
            assert_eq!(text.parse::<Window>(), Err(InvalidWindow), "{text:?}");
        }
    }
}
