use std::time::Duration;

use headgate::{
    Algorithm, Cost,
    algorithm::{Period, bucket},
};

use super::*;

const START: Timestamp = Timestamp::from_micros(1_772_928_123_456_789);

fn limits() -> Vec<Limit> {
    let windows = [1, 17, 60, 3_600, 86_400].map(Duration::from_secs);
    let numbers = [1, 7, 10, 4_095, 4_096];
    let algorithms = Algorithm::RATES.into_iter().filter(|name| *name != Algorithm::Calendar);
    let limit = |algorithm, number, window| Limit::new(algorithm, number, window).unwrap();
    let mut limits: Vec<Limit> = algorithms
        .flat_map(|name| windows.map(|window| numbers.map(|number| limit(name, number, window))))
        .flatten()
        .collect();
    for period in [Period::Day, Period::Month] {
        limits.push(Limit::calendar(1_000_000, period, "Asia/Tokyo").unwrap());
    }
    limits
}

/// Reference values, computed independently.
#[test]
fn mix_is_the_finalizer_of_splitmix64() {
    assert_eq!(mix(1), 0x5692_161d_100b_05e5);
    assert_eq!(mix(0x0123_4567_89ab_cdef), 0xb2c0_58e4_ebb5_112c);
    assert_eq!(mix(u64::MAX), 0xb4d0_55fc_f2cb_bd7b);
}

fn tables(overflow: &Overflow) -> usize {
    overflow.tables.iter().filter(|table| table.get().is_some()).count()
}

#[test]
fn usage_is_decoded_to_the_unit() {
    for limit in limits() {
        let overflow = Overflow::new(1 << 20);
        let subject = Fingerprint::from(7);
        for used in 1..=limit.capacity().min(20) {
            let mut state = overflow.usage(subject, &limit, START);
            assert!(limit.admit(&mut state, Cost::ONE, START), "{limit:?} after {used}");
            overflow.raise(subject, &limit, &state, START);
            let seen = overflow.usage(subject, &limit, START);
            let left = limit.remaining(&seen, START);
            assert_eq!(left, limit.capacity() - used, "{limit:?}");
            assert_eq!(left, limit.remaining(&state, START), "{limit:?}");
            if let State::Bucket(_) = state {
                assert_eq!(seen, state, "{limit:?}: a bucket flows back to the fraction");
            }
        }
    }
}

#[test]
fn usage_is_gone_when_the_limit_resets() {
    for limit in limits() {
        let overflow = Overflow::new(1 << 20);
        let subject = Fingerprint::from(7);
        let mut state = State::Fresh;
        assert!(limit.admit(&mut state, Cost::ONE, START));
        overflow.raise(subject, &limit, &state, START);
        // Held usage is rounded up to the millisecond, and lasts for two of the counters' windows.
        let whole = START.plus(limit.reset_after(&state, START).next_multiple_of(1_000) + 1_000);
        let seen = overflow.usage(subject, &limit, whole);
        assert_eq!(limit.remaining(&seen, whole), limit.capacity(), "{limit:?}");
    }
}

#[test]
fn limits_share_a_table_if_their_usage_lasts_about_as_long() {
    let group = |micros| {
        Group::of(&Limit::fixed_window(10, Duration::from_micros(micros)).unwrap()).index()
    };
    let scales = [1_000_000, 10_000_000, 600_000_000, 36_000_000_000].map(group);
    assert_eq!(scales[0], scales[1], "a second and ten");
    assert!(scales[1] < scales[2] && scales[2] < scales[3], "{scales:?}");
    // The longest of a group still belongs to it.
    let longer = [10_000_001, 600_000_001, 36_000_000_001].map(group);
    assert_eq!(longer[..2], scales[2..], "{longer:?}");
    assert!(longer[2] > scales[3]);
}

#[test]
fn limits_that_differ_in_their_burst_find_each_others_usage() {
    let bucket = |burst| {
        let limit = Limit::token_bucket(100, Duration::from_secs(120)).unwrap();
        limit.with_burst(burst).unwrap()
    };
    let (small, large) = (bucket(100), bucket(1_000));
    for (charged, other, left) in [(&small, &large, 900), (&large, &small, 0)] {
        let overflow = Overflow::new(1 << 20);
        let subject = Fingerprint::from(7);
        let mut state = State::Fresh;
        assert!(charged.admit(&mut state, Cost::new(100).unwrap(), START));
        overflow.raise(subject, charged, &state, START);
        assert!(overflow.is_charged(subject, other, START));
        assert_eq!(other.remaining(&overflow.usage(subject, other, START), START), left);
    }
}

#[test]
fn a_table_is_allocated_for_the_first_subject_of_its_group() {
    let overflow = Overflow::new(1 << 20);
    let minute = Limit::token_bucket(10, Duration::from_secs(60)).unwrap();
    let day = Limit::fixed_window(10, Duration::from_hours(24)).unwrap();
    assert_eq!(overflow.usage(Fingerprint::from(7), &minute, START), State::Fresh);
    assert_eq!(tables(&overflow), 0);
    for (i, limit) in [&minute, &day, &minute].into_iter().enumerate() {
        let mut state = State::Fresh;
        limit.admit(&mut state, Cost::ONE, START);
        overflow.raise(Fingerprint::from(i as u64), limit, &state, START);
    }
    assert_eq!(tables(&overflow), 2);
    let bytes: usize = overflow.tables.iter().filter_map(OnceLock::get).map(|t| t.len() * 8).sum();
    assert_eq!(bytes, (1 << 20) / Group::COUNT * 2);
}

#[test]
fn a_far_future_does_not_wrap_around() {
    let limit = Limit::token_bucket(10, Duration::from_secs(60)).unwrap();
    let rate = 10;
    let far = State::Bucket(bucket::State { full_at: u64::MAX / 2, fraction: 9, rate });
    assert_eq!(level::encode(&far, &limit), u64::MAX);
}

#[test]
fn usage_that_has_ended_is_not_mistaken_for_that_of_others() {
    for limit in limits() {
        let overflow = Overflow::new(1 << 20);
        let [early, late, new] = [7, 8, 9].map(Fingerprint::from);
        let is_charged = |subject, now| overflow.is_charged(subject, &limit, now);
        let charge = |subject, units, now| {
            let mut state = State::Fresh;
            assert!(limit.admit(&mut state, Cost::new(units).unwrap(), now), "{limit:?}");
            overflow.raise(subject, &limit, &state, now);
            state
        };
        let state = charge(early, limit.capacity(), START);
        assert!(is_charged(early, START) && !is_charged(new, START), "{limit:?}");
        let ended = START.plus(limit.reset_after(&state, START).next_multiple_of(1_000) + 1_000);
        charge(late, 1, ended);
        assert!(is_charged(late, ended), "{limit:?}");
        assert!(!is_charged(early, ended) && !is_charged(new, ended), "{limit:?}");
    }
}

#[test]
fn a_level_is_exact_to_the_last_microsecond() {
    let levels = limits().into_iter().filter(|it| Group::of(it).encoding() == Encoding::Level);
    for limit in levels {
        let overflow = Overflow::new(1 << 20);
        let subject = Fingerprint::from(7);
        let mut state = State::Fresh;
        assert!(limit.admit(&mut state, Cost::ONE, START));
        overflow.raise(subject, &limit, &state, START);
        let last = START.plus(limit.reset_after(&state, START) - 1);
        let left = limit.remaining(&overflow.usage(subject, &limit, last), last);
        assert_eq!(left, limit.capacity() - 1, "{limit:?}");
    }
}

#[test]
fn held_usage_of_less_than_a_unit_counts_as_none() {
    for algorithm in [Algorithm::SlidingWindow, Algorithm::SlidingWindowCounter] {
        let overflow = Overflow::new(1 << 20);
        let subject = Fingerprint::from(7);
        let [small, large] = [10, 1_000]
            .map(|number| Limit::new(algorithm, number, Duration::from_secs(60)).unwrap());
        let mut state = State::Fresh;
        assert!(large.admit(&mut state, Cost::new(99).unwrap(), START));
        overflow.raise(subject, &large, &state, START);
        assert_eq!(overflow.usage(subject, &small, START), State::Fresh, "{algorithm}");
    }
}

#[test]
fn counters_stay_in_their_window_if_it_does_not_end_with_a_millisecond() {
    let overflow = Overflow::new(1 << 20);
    let subject = Fingerprint::from(7);
    let window = Duration::from_micros(1_500_250);
    let limit = Limit::sliding_window_counter(10, window).unwrap();
    let mut state = State::Fresh;
    assert!(limit.admit(&mut state, Cost::new(3).unwrap(), START));
    overflow.raise(subject, &limit, &state, START);
    for later in [START, START + window] {
        assert_eq!(overflow.usage(subject, &limit, later), state);
    }
}
