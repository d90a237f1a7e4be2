//! The caller's timeout: the `grpc-timeout` header.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

const HEADER: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the caller's timeout, if it is valid: up to eight digits and a unit.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    parse(headers.get(HEADER)?.to_str().ok()?)
}

fn parse(text: &str) -> Option<Duration> {
    const MAX_DIGITS: usize = 8;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > MAX_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_digits_and_a_unit() {
        let cases = [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("3S", Duration::from_secs(3)),
            ("4m", Duration::from_millis(4)),
            ("5u", Duration::from_micros(5)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("99999999H", Duration::from_secs(99_999_999 * 3600)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_a_deadline() {
        for text in ["", "S", "1", "1s", "-1S", "+1S", "1.5S", "100000000S", "1 S", "１S", "é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
