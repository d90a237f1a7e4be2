use super::*;

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(instant.as_microsecond().cast_unsigned())
}

/// Returns name and bounds of the period at a moment in a zone.
fn span(period: QuotaPeriod, zone: Option<&str>, moment: &str) -> (String, Timestamp, Timestamp) {
    let span = PeriodCalendar::new(period, zone).unwrap().at(at(moment));
    assert!(span.contains(at(moment)), "{span:?}");
    assert!(!span.contains(span.end) && span.contains(span.start));
    (span.name, span.start, span.end)
}

fn expected(name: &str, start: &str, end: &str) -> (String, Timestamp, Timestamp) {
    (name.to_owned(), at(start), at(end))
}

#[test]
fn days_are_in_utc_by_default() {
    let day = |moment| span(QuotaPeriod::Daily, None, moment);
    let today = expected("2026-02-23", "2026-02-23T00:00:00Z", "2026-02-24T00:00:00Z");
    assert_eq!(day("2026-02-23T00:00:00Z"), today);
    assert_eq!(day("2026-02-23T23:59:59.999999Z"), today);
    assert_eq!(day("2026-02-24T00:00:00Z").0, "2026-02-24");

    let tokyo = span(QuotaPeriod::Daily, Some("Asia/Tokyo"), "2026-02-23T15:00:00Z");
    assert_eq!(tokyo, expected("2026-02-24", "2026-02-23T15:00:00Z", "2026-02-24T15:00:00Z"));
}

#[test]
fn a_day_has_23_or_25_hours_when_clocks_change() {
    for (zone, moment, name, start, end) in [
        (
            "America/New_York",
            "2026-03-08T12:00:00Z",
            "2026-03-08",
            "2026-03-08T05:00:00Z",
            "2026-03-09T04:00:00Z",
        ),
        (
            "America/New_York",
            "2026-11-02T04:59:59Z",
            "2026-11-01",
            "2026-11-01T04:00:00Z",
            "2026-11-02T05:00:00Z",
        ),
        (
            "Europe/Berlin",
            "2026-03-29T01:30:00Z",
            "2026-03-29",
            "2026-03-28T23:00:00Z",
            "2026-03-29T22:00:00Z",
        ),
        (
            "Europe/Berlin",
            "2026-10-25T22:59:59Z",
            "2026-10-25",
            "2026-10-24T22:00:00Z",
            "2026-10-25T23:00:00Z",
        ),
        // Midnight is skipped: the day begins an hour later.
        (
            "America/Santiago",
            "2026-09-06T12:00:00Z",
            "2026-09-06",
            "2026-09-06T04:00:00Z",
            "2026-09-07T03:00:00Z",
        ),
    ] {
        let day = span(QuotaPeriod::Daily, Some(zone), moment);
        assert_eq!(day, expected(name, start, end), "{zone}");
    }
}

#[test]
fn months_have_28_to_31_days() {
    let month = |moment| span(QuotaPeriod::Monthly, None, moment);
    let january = expected("2026-01", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z");
    assert_eq!(month("2026-01-31T23:59:59.999Z"), january);
    let february = expected("2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z");
    assert_eq!(month("2026-02-28T23:59:59Z"), february);
    assert_eq!(month("2028-02-29T12:00:00Z").0, "2028-02");
    assert_eq!(month("2028-02-29T12:00:00Z").2, at("2028-03-01T00:00:00Z"));
    assert_eq!(month("2026-12-31T23:59:59Z").2, at("2027-01-01T00:00:00Z"));

    let day = span(QuotaPeriod::Daily, None, "2028-02-29T12:00:00Z");
    assert_eq!(day, expected("2028-02-29", "2028-02-29T00:00:00Z", "2028-03-01T00:00:00Z"));
    // A month with a clock change begins and ends at different offsets.
    let march = span(QuotaPeriod::Monthly, Some("Europe/Berlin"), "2026-03-31T21:59:59Z");
    assert_eq!(march, expected("2026-03", "2026-02-28T23:00:00Z", "2026-03-31T22:00:00Z"));
}

#[test]
fn last_returns_the_last_millisecond() {
    let span =
        PeriodCalendar::new(QuotaPeriod::Daily, None).unwrap().at(at("2026-02-23T12:00:00Z"));
    assert_eq!(span.last(), at("2026-02-23T23:59:59.999Z"));
}

#[test]
fn rejects_unknown_time_zones() {
    let error = PeriodCalendar::new(QuotaPeriod::Daily, Some("Mars/Olympus")).unwrap_err();
    assert!(matches!(error, LimitError::UnknownZone(_)), "{error}");
}
