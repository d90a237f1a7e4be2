use super::*;

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond() as u64)
}

#[track_caller]
fn fires(cron: &str, after: &str, next: &str) {
    let cron: Cron = cron.parse().unwrap();
    assert_eq!(cron.next_after(at(after)), Some(at(next)), "{cron} after {after}");
}

#[test]
fn it_fires_when_all_fields_match() {
    fires("0 0 * * *", "2026-02-23T14:30:00Z", "2026-02-24T00:00:00Z");
    fires("0 0 * * *", "2026-02-24T00:00:00Z", "2026-02-25T00:00:00Z");
    fires("0 0 * * *", "2026-02-23T23:59:59.999Z", "2026-02-24T00:00:00Z");
    fires("0 0 1 * *", "2026-02-23T14:30:00Z", "2026-03-01T00:00:00Z");
    fires("0 0 31 * *", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z");
    fires("0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z");
    fires("*/15 9-17 * * MON-FRI", "2026-02-27T17:45:00Z", "2026-03-02T09:00:00Z");
    fires("5/20 * * * *", "2026-02-27T17:46:00Z", "2026-02-27T18:05:00Z");
    fires("59 23 31 dec ?", "2026-02-27T17:46:00Z", "2026-12-31T23:59:00Z");
}

#[test]
fn six_fields_begin_with_seconds() {
    fires("30 0 0 * * *", "2026-02-23T00:00:30Z", "2026-02-24T00:00:30Z");
    fires("*/10 * * * * *", "2026-02-23T00:00:05Z", "2026-02-23T00:00:10Z");
    fires("10,20 5 * * * *", "2026-02-23T00:05:20Z", "2026-02-23T01:05:10Z");
}

#[test]
fn either_field_of_a_day_is_enough_if_both_are_restricted() {
    // The 13th is a Friday; the 6th is, too.
    fires("0 0 13 * FRI", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z");
    fires("0 0 13 * 1", "2026-02-09T00:00:00Z", "2026-02-13T00:00:00Z");
    fires("0 0 * * 7", "2026-02-23T00:00:00Z", "2026-03-01T00:00:00Z");
    fires("0 0 * * 0", "2026-02-23T00:00:00Z", "2026-03-01T00:00:00Z");
}

#[test]
fn invalid_expressions_are_rejected() {
    for (text, message) in [
        ("", "expected 5 or 6 fields (seconds first), got 0"),
        ("0 0 * *", "expected 5 or 6 fields (seconds first), got 4"),
        ("0 0 0 * * * *", "expected 5 or 6 fields (seconds first), got 7"),
        ("60 0 * * *", r#"the minute must be 0 to 59, *, a list, a range or a step, got "60""#),
        ("0 24 * * *", r#"the hour must be 0 to 23, *, a list, a range or a step, got "24""#),
        ("0 0 31 2 *", "schedule never fires (no such date)"),
    ] {
        assert_eq!(text.parse::<Cron>().unwrap_err().to_string(), message);
    }
    for text in ["0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "*/0 0 * * *", "5-1 0 * * *", "-1 0 * * *"]
    {
        assert!(text.parse::<Cron>().is_err(), "{text}");
    }
    for text in ["+1 0 * * *", "1, 0 * * *", "a 0 * * *", "1--2 0 * * *", "@daily * * * *"] {
        assert!(text.parse::<Cron>().is_err(), "{text}");
    }
}

#[test]
fn daily_and_monthly_parse_as_printed() {
    for cron in [Cron::daily(), Cron::monthly()] {
        assert_eq!(cron.to_string().parse(), Ok(cron));
    }
}
