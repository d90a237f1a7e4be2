//! Invalid limits are rejected; calendar windows follow their time zones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use headgate::{
    Algorithm, Cost, CostError, Limit, LimitError, Spent, State, Timestamp,
    algorithm::{Calendar, Period},
    limit::Parameters,
};

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn invalid_limits_are_refused_with_the_reason() {
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar) {
        let new = |limit, window| Limit::new(algorithm, limit, window);
        assert_eq!(new(0, MINUTE), Err(LimitError::Zero));
        let Err(LimitError::TooLarge { max, got, .. }) = new(u64::MAX, MINUTE) else { panic!() };
        assert_eq!(got, u64::MAX);
        assert!(new(max, MINUTE).is_ok(), "{algorithm}");
        assert!(matches!(new(max + 1, MINUTE), Err(LimitError::TooLarge { .. })), "{algorithm}");
        for window in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
            assert_eq!(new(1, window), Err(LimitError::Window(window)));
        }
    }
    assert_eq!(Limit::new(Algorithm::Calendar, 1, MINUTE), Err(LimitError::NeedsPeriod));
    assert_eq!(Limit::calendar(0, Period::Day, "UTC"), Err(LimitError::Zero));
    assert!(matches!(
        Limit::calendar(u64::MAX, Period::Day, "UTC"),
        Err(LimitError::TooLarge { .. })
    ));
    let nowhere = Limit::calendar(1, Period::Day, "Mars/Olympus").unwrap_err().to_string();
    assert_eq!(
        nowhere,
        "unknown time zone \"Mars/Olympus\": expected an IANA name such as Asia/Tokyo"
    );
}

#[test]
fn only_buckets_have_a_burst_and_it_is_bounded() {
    let bucket = || Limit::token_bucket(1, Limit::MAX_WINDOW).unwrap();
    assert_eq!(bucket().with_burst(0), Err(LimitError::ZeroBurst));
    assert_eq!(bucket().with_burst(1), Ok(bucket()), "it takes the longest window to fill");
    assert_eq!(bucket().with_burst(2), Err(LimitError::BurstTooLarge));
    assert_eq!(bucket().with_burst(u64::MAX), Err(LimitError::BurstTooLarge));
    // It takes 584,000 years to fill, which just exceeds 64 bits of microseconds.
    let daily = Limit::token_bucket(1, 24 * 60 * MINUTE).unwrap();
    assert_eq!(daily.with_burst(213_503_984), Err(LimitError::BurstTooLarge));
    let window = Limit::fixed_window(1, MINUTE).unwrap();
    assert_eq!(window.with_burst(1), Err(LimitError::NoBurst(Algorithm::FixedWindow)));
}

#[test]
fn costs_are_positive_and_bounded() {
    assert_eq!(Cost::new(0), Err(CostError::Zero));
    assert_eq!(Cost::new(u64::MAX), Err(CostError::TooLarge));
    assert_eq!(Cost::new(Cost::MAX).map(Cost::get), Ok(1 << 53));
    for (spent, units) in [(7, 7), (Cost::MAX, Cost::MAX), (u64::MAX, Cost::MAX)] {
        assert_eq!(Spent::with_overdraft(spent).units(), units);
    }
}

#[test]
fn limits_report_their_capacity_and_window() {
    let told = |limit: Limit| match limit.parameters() {
        Parameters::SlidingWindow(it) => (u64::from(it.limit()), it.window()),
        Parameters::SlidingWindowCounter(it) => (u64::from(it.limit()), it.window()),
        Parameters::FixedWindow(it) => (u64::from(it.limit()), it.window()),
        Parameters::TokenBucket(it) | Parameters::LeakyBucket(it) => {
            (it.burst().into(), it.window())
        }
        Parameters::Concurrency(it) => (u64::from(it.limit()), it.window()),
        Parameters::Calendar(_) => unreachable!("it has no window"),
    };
    for algorithm in Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar) {
        let limit = Limit::new(algorithm, 7, MINUTE).unwrap();
        assert_eq!((limit.capacity(), limit.window()), (7, Some(MINUTE)), "{algorithm}");
        assert_eq!(told(limit), (7, 60_000_000), "{algorithm}");
    }
}

#[test]
fn a_share_is_an_equal_part_and_at_least_one() {
    let parts = |n| std::num::NonZeroU32::new(n).unwrap();
    for algorithm in Algorithm::ALL {
        let limit = if algorithm == Algorithm::Calendar {
            Limit::calendar(10, Period::Day, "UTC").unwrap()
        } else {
            Limit::new(algorithm, 10, MINUTE).unwrap()
        };
        assert_eq!(limit.share(parts(1)), limit);
        let share = limit.share(parts(3));
        assert_eq!((share.capacity(), share.window()), (3, limit.window()), "{algorithm}");
        assert_eq!(limit.share(parts(11)).capacity(), 1, "{algorithm}");
    }
    let bucket = Limit::token_bucket(10, MINUTE).unwrap().with_burst(40).unwrap();
    let expected = Limit::token_bucket(3, MINUTE).unwrap().with_burst(13).unwrap();
    assert_eq!(bucket.share(parts(3)), expected);
}

fn calendar(period: Period, zone: &str) -> Calendar {
    let Parameters::Calendar(calendar) =
        Limit::calendar(5, period, zone).unwrap().parameters().clone()
    else {
        unreachable!("it was just made")
    };
    calendar
}

fn at(text: &str) -> Timestamp {
    let time: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_micros(time.as_microsecond() as u64)
}

#[test]
fn calendar_periods_begin_and_end_at_local_midnight() {
    let cases = [
        // zone, period, at, from, to
        (
            "UTC",
            Period::Day,
            "2026-02-23T12:00:00Z",
            "2026-02-23T00:00:00Z",
            "2026-02-24T00:00:00Z",
        ),
        (
            "Asia/Tokyo",
            Period::Day,
            "2026-02-23T15:00:00Z",
            "2026-02-23T15:00:00Z",
            "2026-02-24T15:00:00Z",
        ),
        (
            "Asia/Tokyo",
            Period::Month,
            "2026-02-28T14:59:59Z",
            "2026-01-31T15:00:00Z",
            "2026-02-28T15:00:00Z",
        ),
        // Clocks go forward: 23 hours. Back: 25.
        (
            "America/New_York",
            Period::Day,
            "2026-03-08T12:00:00Z",
            "2026-03-08T05:00:00Z",
            "2026-03-09T04:00:00Z",
        ),
        (
            "America/New_York",
            Period::Day,
            "2026-11-01T12:00:00Z",
            "2026-11-01T04:00:00Z",
            "2026-11-02T05:00:00Z",
        ),
        // Beirut skips midnight itself: the day begins at one o'clock.
        (
            "Asia/Beirut",
            Period::Day,
            "2026-03-29T12:00:00Z",
            "2026-03-28T22:00:00Z",
            "2026-03-29T21:00:00Z",
        ),
        (
            "UTC",
            Period::Month,
            "2026-01-31T23:59:59.999999Z",
            "2026-01-01T00:00:00Z",
            "2026-02-01T00:00:00Z",
        ),
        (
            "UTC",
            Period::Month,
            "2028-02-29T00:00:00Z",
            "2028-02-01T00:00:00Z",
            "2028-03-01T00:00:00Z",
        ),
        (
            "UTC",
            Period::Month,
            "2026-12-31T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
        ),
    ];
    for (zone, period, now, from, to) in cases {
        let expected = (at(from).as_micros(), at(to).as_micros());
        assert_eq!(calendar(period, zone).bounds(at(now)), expected, "{zone} {period:?} {now}");
    }
}

#[test]
fn a_calendar_counts_only_the_current_period() {
    let limit = Limit::calendar(5, Period::Day, "Asia/Tokyo").unwrap();
    let mut state = State::Fresh;
    let five = Cost::new(5).unwrap();
    let (last, first) = (at("2026-02-23T14:59:59.999999Z"), at("2026-02-23T15:00:00Z"));
    assert!(limit.admit(&mut state, five, last));
    assert!(!limit.admits(&state, Cost::ONE, last));
    assert_eq!(limit.retry_after(&state, Cost::ONE, last), 1);
    assert!(limit.admit(&mut state, five, first));
    assert_eq!(limit.reset_after(&state, first), 86_400_000_000);
}

#[test]
fn an_overdraft_takes_what_is_left_and_a_bounded_debt() {
    let now = Timestamp::from_micros(1_700_000_000_000_000);
    let calendar = Limit::calendar(10, Period::Day, "UTC").unwrap();
    let others = Algorithm::ALL
        .into_iter()
        .filter(|algorithm| !matches!(algorithm, Algorithm::Calendar | Algorithm::Concurrency));
    let others = others.map(|algorithm| Limit::new(algorithm, 10, MINUTE).unwrap());
    for limit in others.chain([calendar]) {
        let mut state = State::default();
        assert_eq!(limit.room(&state, now), 10 + Limit::MAX_DEBT * 10, "{limit:?}");
        limit.record(&mut state, Cost::new(30).unwrap(), now);
        assert_eq!((limit.remaining(&state, now), limit.debt(&state, now)), (0, 20), "{limit:?}");
        assert_eq!(limit.room(&state, now), Limit::MAX_DEBT * 10 - 20, "{limit:?}");
    }
    let places = Limit::concurrency(10, MINUTE).unwrap();
    assert_eq!(places.room(&State::default(), now), 10, "places have no debt");
}

#[test]
fn the_last_day_of_the_calendar_has_an_end() {
    let limit = Limit::calendar(1, Period::Day, "UTC").unwrap();
    let mut state = State::default();
    let now = Timestamp::from_micros(i64::MAX as u64);
    assert!(limit.admit(&mut state, Cost::ONE, now));
    assert_eq!((limit.remaining(&state, now), limit.reset_after(&state, now)), (0, 1));
}
