//! New keys while the store is full.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{sync::Arc, time::Duration};

use headgate::{
    Algorithm, Batch, Check, Cost, Key, LeaseId, Limit, ManualClock, Outcome, State, SyncStore,
    Timestamp, Verb, algorithm::Period,
};
use headgate_store_memory::{Builder, MemoryStore, NumericKey};

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// Cells in a row for each byte of the sketch: eight groups, four rows, eight bytes a cell.
const BYTES_PER_COLUMN: usize = 8 * 4 * 8;

/// A store without free slots.
struct Full {
    clock: Arc<ManualClock>,
    store: MemoryStore<Arc<ManualClock>>,
}

impl Full {
    fn new() -> Self {
        Self::build(MemoryStore::builder())
    }

    fn with_width(width: usize) -> Self {
        Self::build(MemoryStore::builder().overflow_bytes(width * BYTES_PER_COLUMN))
    }

    fn build(builder: Builder) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = builder.capacity(1).clock(Arc::clone(&clock)).build();
        let full = Self { clock, store };
        let year = Limit::cooldown(Duration::from_hours(24 * 365)).unwrap();
        assert!(full.acquire("settled", &year).allowed);
        full
    }

    fn acquire(&self, name: &str, limit: &Limit) -> Outcome {
        self.act(Verb::Acquire, name, limit)
    }

    fn act(&self, verb: Verb, name: &str, limit: &Limit) -> Outcome {
        let check = Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
        self.store.apply_now(verb, &check.into())[0]
    }

    /// Takes one unit for the n-th address.
    fn take(&self, n: u64, limit: &Limit) -> bool {
        let subject = NumericKey { space: 1, number: n };
        self.store.acquire_numeric(subject, limit, Cost::ONE).unwrap().allowed
    }

    /// Share of subjects that are denied although they never took anything.
    fn false_denials(&self, limit: &Limit) -> f64 {
        const PROBES: u32 = 20_000;
        let denied = (0..PROBES).filter(|n| {
            let name = format!("honest:{n}");
            !self.act(Verb::Peek, &name, limit).allowed
        });
        denied.count() as f64 / f64::from(PROBES)
    }
}

/// Limits of every algorithm, of `number` in about a minute.
fn limits(number: u64) -> Vec<Limit> {
    let minute = Duration::from_secs(60);
    let algorithms = Algorithm::RATES.into_iter().filter(|name| *name != Algorithm::Calendar);
    let limits = algorithms.map(|algorithm| Limit::new(algorithm, number, minute).unwrap());
    limits.chain([Limit::calendar(number, Period::Day, "UTC").unwrap()]).collect()
}

fn per_minute(number: u64) -> Limit {
    Limit::token_bucket(number, Duration::from_secs(60)).unwrap()
}

/// The same numbers every time (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn every_new_key_has_its_own_units_while_the_store_is_full() {
    for limit in limits(5) {
        let full = Full::new();
        for i in 0..100 {
            let name = format!("late:{i}");
            for left in (0..5).rev() {
                let outcome = full.acquire(&name, &limit);
                assert!(outcome.allowed && outcome.remaining == left, "{limit:?}: {outcome:?}");
            }
            let denied = full.acquire(&name, &limit);
            assert!(!denied.allowed && denied.retry_after > Duration::ZERO, "{limit:?}");
        }
        assert_eq!(full.store.overflowed(), 600, "{limit:?}");
        assert_eq!(full.store.len(), 1, "{limit:?}");
    }
}

#[test]
fn a_new_key_is_admitted_after_retry_after() {
    for limit in limits(3) {
        let full = Full::new();
        for _ in 0..3 {
            assert!(full.acquire("late", &limit).allowed);
        }
        let denied = full.acquire("late", &limit);
        // Sliding windows round their cells up to the next millisecond.
        full.clock.advance(denied.retry_after + Duration::from_millis(1));
        assert!(full.acquire("late", &limit).allowed, "{limit:?} after {:?}", denied.retry_after);
    }
}

/// Every admission is also admitted by the reference, which keeps each subject separately: with
/// collisions, over time, with slots that are freed and taken.
#[test]
fn no_new_key_gets_more_than_its_limit() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for limit in limits(4) {
        let clock = Arc::new(ManualClock::new(START));
        let builder = MemoryStore::builder().capacity(20).overflow_bytes(64 * BYTES_PER_COLUMN);
        let store = builder.clock(Arc::clone(&clock)).build();
        let mut reference = vec![State::Fresh; 60];
        let longest_step = if limit.window().is_some() { 400_000 } else { 400_000_000 };
        let (mut admitted, mut denied) = (0, 0);
        for _ in 0..30_000 {
            clock.advance(Duration::from_micros(random.below(longest_step)));
            let subject = random.below(60) as usize;
            let cost = Cost::new(1 + random.below(3)).unwrap();
            let name = format!("subject:{subject}");
            let outcome = store.acquire(Key::new(&name).unwrap(), &limit, cost).unwrap();
            if outcome.allowed {
                admitted += 1;
                let fits = limit.admit(&mut reference[subject], cost, outcome.at);
                assert!(fits, "{limit:?}: {subject} got more than its limit");
            } else {
                denied += 1;
            }
        }
        assert!(admitted > 300 && denied > 300, "{limit:?}: {admitted} and {denied}");
        assert!(store.overflowed() > 1_000, "{limit:?}: {}", store.overflowed());
    }
}

#[test]
fn usage_of_a_new_key_still_counts_after_it_gets_a_slot() {
    for limit in limits(2) {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::builder().capacity(1).clock(Arc::clone(&clock)).build();
        let full = Full { clock, store };
        let second = Limit::cooldown(Duration::from_secs(1)).unwrap();
        assert!(full.acquire("settled", &second).allowed);
        assert!(full.acquire("late", &limit).allowed && full.acquire("late", &limit).allowed);
        assert_eq!(full.store.overflowed(), 2);

        full.clock.advance(Duration::from_millis(1_001));
        assert!(!full.acquire("late", &limit).allowed, "{limit:?}: it began anew");
        assert_eq!(full.store.overflowed(), 2, "there was room");
        full.act(Verb::Reset, "late", &limit);
        assert!(full.acquire("late", &limit).allowed, "{limit:?}: a reset forgets both");
    }
}

#[test]
fn a_flood_of_a_million_addresses_locks_no_new_key_out() {
    let full = Full::new();
    let limit = per_minute(120);
    for n in 0..1_000_000 {
        full.take(n, &limit);
    }
    assert!(full.store.overflowed() > 900_000);
    // x = 1,000,000 / (120 * 131,072): at most x^4 = 0.002 %, for any sequence of requests.
    let share = full.false_denials(&limit);
    assert!(share < 0.001, "{share} of honest newcomers are denied");
}

/// The most that an attacker with many addresses can do is to use them up one after the other. Then
/// a new key is denied with the probability of a Bloom filter: `(1 - e^-x)^4` for `x` addresses
/// used up for each column, at most `x^4`.
#[test]
fn false_denials_follow_the_formula() {
    const WIDTH: u64 = 4_096;
    for capacity in [1, 5] {
        let limit = per_minute(capacity);
        for x in [0.25, 0.5, 1.0, 2.0] {
            let full = Full::with_width(WIDTH as usize);
            for n in 0..(x * (WIDTH * capacity) as f64) as u64 {
                full.take(n / capacity, &limit);
            }
            let measured = full.false_denials(&limit);
            let expected = (1.0 - (-x).exp()).powi(4);
            println!("limit {capacity}, x = {x}: expected {expected:.4}, measured {measured:.4}");
            let tolerance = 0.01 + expected / 10.0;
            assert!((measured - expected).abs() < tolerance, "x = {x}: {measured}, {expected}");
            assert!(measured <= x.powi(4) + 0.01, "x = {x}: {measured} is beyond the bound");
        }
    }
}

#[test]
fn a_flood_of_single_requests_denies_fewer_than_the_formula_says() {
    const WIDTH: u64 = 4_096;
    let limit = per_minute(20);
    for x in [0.25, 0.5, 1.0, 2.0] {
        let full = Full::with_width(WIDTH as usize);
        for n in 0..(x * (WIDTH * 20) as f64) as u64 {
            full.take(n, &limit);
        }
        let measured = full.false_denials(&limit);
        let at_most = (1.0 - f64::exp(-x)).powi(4);
        println!("single requests, x = {x}: at most {at_most:.4}, measured {measured:.4}");
        assert!(measured <= at_most + 0.01, "x = {x}: {measured}, {at_most}");
    }
}

#[test]
fn room_comes_back_with_time() {
    let full = Full::with_width(64);
    let limit = per_minute(2);
    for n in 0..10_000 {
        full.take(n, &limit);
    }
    assert!(full.false_denials(&limit) > 0.99);
    full.clock.advance(Duration::from_secs(61));
    assert!(full.false_denials(&limit) < f64::EPSILON);
}

#[test]
fn limits_per_hour_do_not_block_limits_per_minute() {
    let full = Full::with_width(64);
    let hourly = Limit::token_bucket(1, Duration::from_hours(1)).unwrap();
    for n in 0..10_000 {
        full.take(n, &hourly);
    }
    assert!(full.false_denials(&hourly) > 0.99);
    assert!(full.false_denials(&per_minute(2)) < f64::EPSILON);
}

#[test]
fn a_peek_takes_nothing() {
    for limit in limits(2) {
        let full = Full::new();
        for _ in 0..10 {
            assert_eq!(full.act(Verb::Peek, "late", &limit).remaining, 2, "{limit:?}");
        }
        assert!(full.acquire("late", &limit).allowed);
        assert_eq!(full.act(Verb::Peek, "late", &limit).remaining, 1, "{limit:?}");
    }
}

#[test]
fn a_refund_returns_nothing_and_a_reset_everything() {
    for limit in limits(2) {
        let full = Full::new();
        full.acquire("late", &limit);
        full.acquire("late", &limit);
        let refund = full.act(Verb::Refund, "late", &limit);
        assert!(refund.allowed && refund.remaining == 0, "{limit:?}: {refund:?}");
        assert!(!full.acquire("late", &limit).allowed, "{limit:?}");
        assert_eq!(full.act(Verb::Reset, "late", &limit).remaining, 2, "{limit:?}");
        assert_eq!(full.acquire("late", &limit).remaining, 1, "{limit:?}");
    }
}

#[test]
fn new_keys_can_reserve_commit_and_cancel() {
    for limit in limits(3) {
        let full = Full::new();
        let reserve = |id| {
            let lease = Duration::from_secs(5);
            full.act(Verb::Reserve { id: LeaseId::from(id), lease }, "late", &limit)
        };
        assert!(reserve(1).allowed && reserve(2).allowed && reserve(3).allowed, "{limit:?}");
        assert!(!reserve(4).allowed, "{limit:?}");
        let act = |verb| full.act(verb, "late", &limit).allowed;
        assert!(act(Verb::Commit(LeaseId::from(1))), "{limit:?}");
        assert!(!act(Verb::Commit(LeaseId::from(1))), "{limit:?}: committed before");
        assert!(act(Verb::Cancel(LeaseId::from(2))), "{limit:?}");
        assert_eq!(full.act(Verb::Peek, "late", &limit).remaining, 0, "nothing is given back");
        full.clock.advance(Duration::from_secs(5));
        assert!(!act(Verb::Cancel(LeaseId::from(3))), "{limit:?}: expired");
    }
}

#[test]
fn a_cancelled_reservation_of_a_new_key_leaves_its_others() {
    let (full, limit) = (Full::new(), per_minute(10));
    let [first, second] = [1, 2].map(LeaseId::from);
    for id in [first, second] {
        let lease = Duration::from_secs(30);
        assert!(full.act(Verb::Reserve { id, lease }, "new", &limit).allowed);
    }
    assert!(full.act(Verb::Cancel(first), "new", &limit).allowed);
    assert!(!full.act(Verb::Commit(first), "new", &limit).allowed, "it has ended");
    assert!(full.act(Verb::Commit(second), "new", &limit).allowed);
}

#[test]
fn reservations_of_new_keys_are_bounded_and_report_retry_after() {
    let full = Full::new();
    let limit = per_minute(1_000);
    let lease = Duration::from_secs(5);
    let reserve = |n: u64| {
        full.act(Verb::Reserve { id: LeaseId::from(n), lease }, &format!("late:{n}"), &limit)
    };
    let allowed = (0..1_000).filter(|n| reserve(*n).allowed).count();
    assert_eq!(allowed, 16);
    let denied = reserve(1_000);
    assert_eq!((denied.allowed, denied.retry_after), (false, lease));
    full.clock.advance(lease);
    assert!(reserve(1_001).allowed);
}

#[test]
fn a_batch_with_new_keys_is_all_or_nothing() {
    let full = Full::new();
    let (narrow, wide) = (per_minute(1), per_minute(10));
    let check = |name, limit| Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    let batch = Batch::new([check("a", &wide), check("b", &narrow)]).unwrap();
    let take = || full.store.apply_now(Verb::Acquire, &batch);
    assert!(take().iter().all(|outcome| outcome.allowed));
    for _ in 0..5 {
        let outcomes = take();
        assert!(outcomes[0].allowed && !outcomes[1].allowed);
    }
    assert_eq!(full.act(Verb::Peek, "a", &wide).remaining, 9, "what was refused took nothing");
}

#[test]
fn exact_checks_are_never_counted_in_the_sketch() {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_000_000)));
    let builder = MemoryStore::builder().capacity(1).overflow_bytes(16 * BYTES_PER_COLUMN);
    let store = builder.clock(Arc::clone(&clock)).build();
    let window = Duration::from_secs(60);
    for limit in [Limit::token_bucket(3, window), Limit::sliding_window(3, window)] {
        let limit = limit.unwrap();
        let ask = |verb, check: Check<'_>| store.apply_now(verb, &check.into())[0];
        let first = ask(Verb::Acquire, one("first", &limit).exact());
        assert_eq!((first.allowed, first.remaining), (true, 2), "there is a slot");
        for i in 0..500 {
            ask(Verb::Acquire, one(&format!("flood{i}"), &limit));
        }
        for i in 0..50 {
            let name = format!("new{i}");
            let seen = ask(Verb::Peek, one(&name, &limit).exact());
            assert_eq!((seen.allowed, seen.remaining), (true, 3));
            let denied = SyncStore::apply_one(&store, Verb::Acquire, one(&name, &limit).exact());
            assert_eq!((denied.allowed, denied.remaining), (false, 3));
            assert!(!denied.retry_after.is_zero());
        }
        let again = ask(Verb::Acquire, one("first", &limit).exact());
        assert_eq!((again.allowed, again.remaining), (true, 1));
        clock.advance(2 * window);
        let admitted = ask(Verb::Acquire, one("new0", &limit).exact());
        assert_eq!((admitted.allowed, admitted.remaining), (true, 2), "there is a slot again");
        clock.advance(2 * window);
    }
}

fn one<'a>(name: &'a str, limit: &'a Limit) -> Check<'a> {
    Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap()
}
