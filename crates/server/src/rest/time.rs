//! Timestamps of the REST API: RFC 3339 with milliseconds and `+00:00`.

use headgate::Timestamp;
use jiff::{Timestamp as Instant, tz::TimeZone};
use serde::Serializer;

/// Writes a time, for `#[serde(serialize_with)]`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
pub(super) fn serialize<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*time))
}

/// Formats a time.
pub(super) fn text(time: Timestamp) -> String {
    let micros = i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
    // Beyond the year 9999 there is nothing to write.
    let instant = Instant::from_microsecond(micros).unwrap_or(Instant::MAX);
    instant.to_zoned(TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
}

/// Parses a time.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let instant: Instant = text.parse().ok()?;
    Some(Timestamp::from_micros(u64::try_from(instant.as_microsecond()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_fraction_digits_and_an_offset() {
        let time = Timestamp::from_micros(1_771_581_600_000_000);
        assert_eq!(text(time), "2026-02-20T10:00:00.000+00:00");
        assert_eq!(parse("2026-02-20T10:00:00.000+00:00"), Some(time));
        assert_eq!(parse("2026-02-20T19:00:00+09:00"), Some(time));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(parse("1960-01-01T00:00:00Z"), None);
    }
}
