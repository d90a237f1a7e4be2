//! How a window is written: `60s`, `1m`, `1h`, or `60` for seconds.

use thiserror::Error;

/// A text that is no window.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("window must be written like 60s, 1m, 1h or 60 (seconds)")]
pub(crate) struct NotAWindow;

/// The seconds in a window.
pub(crate) fn seconds(text: &str) -> Result<u64, NotAWindow> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds_per_unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(NotAWindow),
    };
    // `parse` would take a sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NotAWindow);
    }
    let units: u64 = digits.parse().map_err(|_| NotAWindow)?;
    let seconds = units.checked_mul(seconds_per_unit).ok_or(NotAWindow)?;
    if seconds == 0 { Err(NotAWindow) } else { Ok(seconds) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_seconds_minutes_or_hours() {
        for (text, expected) in
            [("60s", 60), ("1m", 60), ("1h", 3600), ("60", 60), ("1440m", 86_400)]
        {
            assert_eq!(seconds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_not_a_window() {
        let texts = [
            "",
            "s",
            "0",
            "0s",
            "-1",
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
        ];
        for text in texts {
            assert_eq!(seconds(text), Err(NotAWindow), "{text:?}");
        }
    }
}
