//! Stores that shield and replace other stores.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    io,
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use headgate::{
    Batch, BatchLimiter, Breaker, Check, CheckMode, Circuit, Cost, Degraded, FailCause, FailMode,
    FailurePolicy, Key, LeaseId, Limit, ManualClock, Outcome, Source, Store, StoreError,
    StoreFuture, Timestamp, Verb,
};
use headgate_store_memory::MemoryStore;

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

/// A store in memory that a test can take away.
struct Fragile {
    store: MemoryStore<Arc<ManualClock>>,
    down: AtomicBool,
    asked: AtomicU32,
}

impl Fragile {
    fn new(clock: &Arc<ManualClock>) -> Arc<Self> {
        let store = MemoryStore::builder().clock(Arc::clone(clock)).build();
        Arc::new(Self { store, down: AtomicBool::new(false), asked: AtomicU32::new(0) })
    }
}

impl Store for Fragile {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        self.asked.fetch_add(1, Relaxed);
        if self.down.load(Relaxed) {
            return StoreFuture::pending(async {
                Err(StoreError::unavailable(io::Error::other("taken away")))
            });
        }
        self.store.apply(verb, batch)
    }
}

fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waited"),
    }
}

fn limit() -> Limit {
    Limit::token_bucket(4, Duration::from_secs(60)).unwrap()
}

fn acquire(store: &dyn Store, limit: &Limit, mode: FailMode) -> Result<Outcome, StoreError> {
    let check = Check::new(Key::new("k").unwrap(), limit, Cost::ONE).unwrap().with_fail_mode(mode);
    at_once(store.apply(Verb::Acquire, &check.into())).map(|outcomes| outcomes[0])
}

#[test]
fn a_breaker_leaves_a_failing_store_alone_and_tries_again_after_a_pause() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let pause = Duration::from_millis(500);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with_thresholds(3, pause);
    let limit = limit();
    let ask = || acquire(&breaker, &limit, FailMode::Open);
    assert!(ask().is_ok());

    store.down.store(true, Relaxed);
    for _ in 0..3 {
        assert!(matches!(ask(), Err(StoreError::Unavailable(_))));
    }
    assert!(breaker.is_open());
    let asked = store.asked.load(Relaxed);
    for _ in 0..100 {
        assert!(matches!(ask(), Err(StoreError::BreakerOpen)));
    }
    assert_eq!(store.asked.load(Relaxed), asked, "nobody asks");

    clock.advance(pause);
    for _ in 0..100 {
        assert!(ask().is_err());
    }
    assert_eq!(store.asked.load(Relaxed), asked + 1, "one tries");

    store.down.store(false, Relaxed);
    clock.advance(pause);
    assert!(ask().is_ok());
    assert!(!breaker.is_open());
}

#[test]
fn a_circuit_that_may_retry_admits_one_try_at_once() {
    let clock = ManualClock::new(START);
    let circuit = Circuit::new(2, Duration::from_secs(3600));
    circuit.record(true, &clock);
    circuit.allow_retry_now();
    circuit.record(true, &clock);
    assert!(circuit.is_open() && !circuit.admits(&clock), "it was not open yet");
    circuit.allow_retry_now();
    assert!(circuit.admits(&clock) && !circuit.admits(&clock), "one, and not two");
    circuit.record(false, &clock);
    assert!(!circuit.is_open() && circuit.admits(&clock));
}

#[test]
fn a_breaker_tries_again_when_the_clock_was_set_back() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let pause = Duration::from_millis(500);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with_thresholds(1, pause);
    let limit = limit();
    let ask = || acquire(&breaker, &limit, FailMode::Open);
    store.down.store(true, Relaxed);
    assert!(ask().is_err() && breaker.is_open());
    let asked = store.asked.load(Relaxed);

    // By less than a pause: what is due stays due. By more: nobody knows for how long it has been open.
    let set_back =
        |millis: u64| clock.set(Timestamp::from_micros(START.as_micros() - millis * 1_000));
    clock.set(START + Duration::from_millis(400));
    assert!(matches!(ask(), Err(StoreError::BreakerOpen)));
    set_back(0);
    assert!(matches!(ask(), Err(StoreError::BreakerOpen)));
    assert_eq!(store.asked.load(Relaxed), asked);
    set_back(3_600_000);
    for _ in 0..100 {
        assert!(ask().is_err());
    }
    assert_eq!(store.asked.load(Relaxed), asked + 1, "one tries, and then there is a pause again");
    clock.advance(pause);
    store.down.store(false, Relaxed);
    assert!(ask().is_ok());
    assert!(!breaker.is_open());
}

#[test]
fn a_breaker_does_not_mind_one_bad_key() {
    struct Corrupt;
    impl Store for Corrupt {
        fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
            StoreFuture::ready(Err(StoreError::Corrupt("a string".into())))
        }
    }
    let breaker =
        Breaker::new(Corrupt, ManualClock::new(START)).with_thresholds(3, Duration::from_secs(1));
    for _ in 0..10 {
        assert!(matches!(acquire(&breaker, &limit(), FailMode::Open), Err(StoreError::Corrupt(_))));
    }
    assert!(!breaker.is_open());
}

#[test]
fn a_breaker_around_stores_with_breakers_leaves_it_to_them() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    store.down.store(true, Relaxed);
    let pause = Duration::from_millis(500);
    let inner =
        Arc::new(Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with_thresholds(3, pause));
    assert!(!store.has_breakers() && inner.has_breakers());
    let outer = Breaker::new(Arc::clone(&inner), Arc::clone(&clock)).with_thresholds(1, pause);
    for _ in 0..5 {
        assert!(acquire(&outer, &limit(), FailMode::Open).is_err());
    }
    assert_eq!(store.asked.load(Relaxed), 3, "as often as the inner one lets through");
    assert!(inner.is_open() && !outer.is_open());
}

#[test]
fn errors_tell_an_outage_from_one_bad_call() {
    let cases = [
        // error, is_outage, is_temporary, is_unsent
        (StoreError::unavailable(io::Error::other("gone")), true, true, false),
        (StoreError::Timeout(Duration::from_secs(1)), true, true, false),
        (StoreError::BreakerOpen, true, true, true),
        (StoreError::Overloaded, false, true, true),
        (StoreError::Contended(20), false, true, false),
        (StoreError::Refused("OOM".into()), false, true, false),
        (StoreError::Corrupt("a string".into()), false, false, false),
        (StoreError::Unsupported("leases"), false, false, true),
    ];
    for (error, is_outage, is_temporary, is_unsent) in cases {
        let is = (error.is_outage(), error.is_temporary(), error.is_unsent());
        assert_eq!(is, (is_outage, is_temporary, is_unsent), "{error}");
    }
}

fn policy(replicas: u32) -> (Arc<Fragile>, impl Store) {
    let (primary, policy, _) = policy_at(replicas);
    (primary, policy)
}

fn policy_at(replicas: u32) -> (Arc<Fragile>, impl Store, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(START));
    let primary = Fragile::new(&clock);
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let replicas = NonZeroU32::new(replicas).unwrap();
    let policy = FailurePolicy::new(Arc::clone(&primary), local, replicas, Arc::clone(&clock));
    (primary, policy, clock)
}

#[test]
fn each_failure_mode_decides_in_its_own_way() {
    let (primary, policy) = policy(2);
    let limit = limit();
    assert_eq!(acquire(&policy, &limit, FailMode::Closed).unwrap().degraded, None);
    primary.down.store(true, Relaxed);

    let by = |outcome: &Outcome| outcome.degraded.and_then(Degraded::fail_mode);
    let open = acquire(&policy, &limit, FailMode::Open).unwrap();
    assert!(open.allowed && open.remaining == 4 && by(&open) == Some(FailMode::Open));
    assert_eq!(open.degraded.unwrap().cause, FailCause::Unavailable);
    let closed = acquire(&policy, &limit, FailMode::Closed).unwrap();
    assert!(!closed.allowed && closed.remaining == 0 && by(&closed) == Some(FailMode::Closed));
    assert!(closed.retry_after >= Duration::from_secs(1));
    // Half of four for each of two replicas.
    let local = || acquire(&policy, &limit, FailMode::Local).unwrap();
    assert_eq!([local().remaining, local().remaining], [1, 0]);
    let denied = local();
    assert!(!denied.allowed && by(&denied) == Some(FailMode::Local));
    assert_eq!(denied.retry_after, Duration::from_secs(30), "two a minute");
}

#[test]
fn a_capped_limit_admits_all_of_itself_in_a_window_and_no_more() {
    let (primary, policy, clock) = policy_at(2);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let ask = || acquire(&policy, &limit, FailMode::Capped).unwrap();
    for _ in 0..4 {
        // As when failing open: what is left in the store is unknown.
        let admitted = ask();
        assert!(admitted.allowed && admitted.remaining == 4, "{admitted:?}");
        assert_eq!(admitted.reset_after, Duration::ZERO);
        assert_eq!(admitted.degraded.unwrap().name(), "capped");
    }
    let denied = ask();
    assert!(!denied.allowed && denied.remaining == 0, "{denied:?}");
    assert_eq!(denied.retry_after, Duration::from_secs(15), "four a minute");
    clock.advance(Duration::from_secs(15));
    assert!(ask().allowed && !ask().allowed);
    // The store comes and goes: what was counted here still counts.
    primary.down.store(false, Relaxed);
    assert_eq!(ask().degraded, None);
    primary.down.store(true, Relaxed);
    assert!(!ask().allowed);
}

#[test]
fn a_remembered_denial_denies_in_every_mode_with_what_is_left_of_its_time() {
    let (primary, policy, clock) = policy_at(1);
    let limit = limit();
    for _ in 0..4 {
        assert!(acquire(&policy, &limit, FailMode::Open).unwrap().allowed);
    }
    assert!(!acquire(&policy, &limit, FailMode::Open).unwrap().allowed);
    primary.down.store(true, Relaxed);
    clock.advance(Duration::from_secs(5));
    for mode in FailMode::ALL {
        let denied = acquire(&policy, &limit, mode).unwrap();
        assert!(!denied.allowed && denied.remaining == 0, "{mode}: {denied:?}");
        assert_eq!(denied.retry_after, Duration::from_secs(10), "{mode}");
        assert_eq!(denied.reset_after, Duration::from_secs(55), "{mode}");
        assert_eq!(denied.degraded.unwrap().source, Source::RememberedDenial, "{mode}");
    }
    clock.advance(Duration::from_secs(10));
    assert!(acquire(&policy, &limit, FailMode::Open).unwrap().allowed, "its time is up");
}

#[test]
fn a_remembered_denial_stops_those_it_binds_and_takes_nothing_of_them() {
    let (primary, policy, _) = policy_at(1);
    let limit = limit();
    let check = |name, mode| {
        let check = Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
        check.with_fail_mode(mode)
    };
    let ask = |batch: &Batch<'_>| {
        let outcomes = at_once(policy.apply(Verb::Acquire, batch)).unwrap();
        outcomes.iter().map(|outcome| outcome.allowed).collect::<Vec<_>>()
    };
    let blocked = check("blocked", FailMode::Open);
    for _ in 0..5 {
        ask(&blocked.into());
    }
    primary.down.store(true, Relaxed);
    let other = check("other", FailMode::Capped);
    for _ in 0..10 {
        assert_eq!(ask(&Batch::new([other, blocked]).unwrap()), [true, false]);
    }
    for _ in 0..4 {
        let shadow = blocked.with_mode(CheckMode::Optional);
        assert_eq!(ask(&Batch::new([other, shadow]).unwrap()), [true, false]);
    }
    assert_eq!(ask(&other.into()), [false], "those four were counted, and nothing before");
}

#[test]
fn a_reset_ends_what_is_remembered_and_what_was_counted_locally() {
    let (primary, policy, _) = policy_at(1);
    let limit = limit();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    let ask = || acquire(&policy, &limit, FailMode::Capped).unwrap();
    let exhaust = || (0..6).filter(|_| ask().allowed).count();
    assert_eq!(exhaust(), 4);
    primary.down.store(true, Relaxed);
    assert_eq!(exhaust(), 0, "remembered");
    assert!(at_once(policy.apply(Verb::Reset, &check.into())).is_err());
    assert_eq!(exhaust(), 0, "a reset that did not reach the store changes nothing");

    let reset = || {
        primary.down.store(false, Relaxed);
        at_once(policy.apply(Verb::Reset, &check.into())).unwrap();
        primary.down.store(true, Relaxed);
    };
    reset();
    assert_eq!(exhaust(), 4, "the cap, and no more");
    reset();
    assert_eq!(exhaust(), 4);
}

#[test]
fn a_reservation_that_was_made_locally_is_settled_locally() {
    let (primary, policy, clock) = policy_at(1);
    primary.down.store(true, Relaxed);
    let cooldown = Limit::cooldown(Duration::from_secs(300)).unwrap();
    let check = |name| Check::new(Key::new(name).unwrap(), &cooldown, Cost::ONE).unwrap();
    let open = check("open").with_fail_mode(FailMode::Open);
    let batch = Batch::new([check("ip"), open, check("nick")]).unwrap();
    let limiter = BatchLimiter::new(policy);
    let lease = Duration::from_secs(10);
    let reserve = || at_once(limiter.reserve(&batch, lease)).map(|(held, _)| held);

    let first = reserve().unwrap();
    assert!(reserve().is_err(), "one at a time");
    assert!(at_once(limiter.cancel(first)).unwrap());
    let second = reserve().unwrap();
    // The store is back, and knows nothing of it.
    primary.down.store(false, Relaxed);
    assert!(at_once(limiter.commit(second)).unwrap());
    primary.down.store(true, Relaxed);
    clock.advance(lease);
    assert!(reserve().is_err(), "it was committed");
    clock.advance(Duration::from_secs(290));
    let third = reserve().unwrap();
    clock.advance(lease);
    assert!(at_once(limiter.commit(third)).is_err(), "its lease ran out");
}

#[test]
fn an_answer_tells_why_the_store_did_not_give_it() {
    struct Failing(StoreError);
    impl Store for Failing {
        fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
            StoreFuture::ready(Err(self.0.clone()))
        }
    }
    let errors = [
        (StoreError::Overloaded, FailCause::Overloaded),
        (StoreError::Contended(20), FailCause::Overloaded),
        (StoreError::Timeout(Duration::from_secs(1)), FailCause::Timeout),
        (StoreError::BreakerOpen, FailCause::Unavailable),
        (StoreError::Refused("OOM".into()), FailCause::Unavailable),
    ];
    let names = errors.each_ref().map(|(_, cause)| cause.name());
    assert_eq!(names, ["overloaded", "overloaded", "timeout", "unavailable", "unavailable"]);
    for (error, cause) in errors {
        let local = MemoryStore::builder().clock(ManualClock::new(START)).build();
        let clock = ManualClock::new(START);
        let policy = FailurePolicy::new(Failing(error), local, NonZeroU32::MIN, clock);
        for mode in FailMode::ALL {
            let outcome = acquire(&policy, &limit(), mode).unwrap();
            let source = Source::FailMode(mode);
            assert_eq!(outcome.degraded, Some(Degraded::new(source, cause)));
        }
    }
}

#[test]
fn in_a_batch_the_strictest_failure_mode_decides_and_nothing_is_taken_locally() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check = |name, mode| {
        Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap().with_fail_mode(mode)
    };
    let batch = Batch::new([
        check("open", FailMode::Open),
        check("k", FailMode::Local),
        check("closed", FailMode::Closed),
    ]);
    let outcomes = at_once(policy.apply(Verb::Acquire, &batch.unwrap())).unwrap();
    assert_eq!(outcomes.iter().map(|o| o.allowed).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(acquire(&policy, &limit, FailMode::Local).unwrap().remaining, 3, "the first taken");
}

#[test]
fn each_of_a_batch_gets_its_own_answer() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    while acquire(&policy, &limit, FailMode::Local).unwrap().allowed {}
    let check = |name, mode| {
        Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap().with_fail_mode(mode)
    };
    // Only the second is counted here, under the key that has nothing left.
    let batch = Batch::new([check("open", FailMode::Open), check("k", FailMode::Local)]).unwrap();
    let outcomes = at_once(policy.apply(Verb::Acquire, &batch)).unwrap();
    assert_eq!(outcomes.iter().map(|it| it.allowed).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_closed_limit_that_stops_nobody_does_not_lift_the_local_ones() {
    let (primary, policy) = policy(2);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check = |key, mode| {
        Check::new(Key::new(key).unwrap(), &limit, Cost::ONE).unwrap().with_fail_mode(mode)
    };
    let local = check("local", FailMode::Local);
    let aside = check("closed", FailMode::Closed).with_mode(CheckMode::Optional);
    let batch = Batch::new([local, aside]).unwrap();
    let mut admitted = Vec::new();
    for _ in 0..3 {
        admitted.push(at_once(policy.apply(Verb::Acquire, &batch)).unwrap()[0].allowed);
    }
    // Its half of the limit, and no more.
    assert_eq!(admitted, [true, true, false]);
}

#[test]
fn what_cannot_be_given_back_is_an_error() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    for verb in [Verb::Refund, Verb::Reset, Verb::Commit(LeaseId::from(1))] {
        assert!(at_once(policy.apply(verb, &check.into())).is_err(), "{verb:?}");
    }
}

#[test]
fn a_limiter_reserves_commits_and_cancels() {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = BatchLimiter::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
    let cooldown = Limit::cooldown(Duration::from_secs(300)).unwrap();
    let check = |name| Check::new(Key::new(name).unwrap(), &cooldown, Cost::ONE).unwrap();
    let batch = Batch::new([check("ip"), check("nick")]).unwrap();
    let lease = Duration::from_secs(10);
    let reserve = || at_once(limiter.reserve(&batch, lease)).map(|(reservation, _)| reservation);

    let first = reserve().unwrap();
    assert!(reserve().is_err(), "taken while it is pending");
    assert!(at_once(limiter.cancel(first)).unwrap());
    let second = reserve().unwrap();
    assert!(at_once(limiter.commit(second)).unwrap());
    let denied = at_once(limiter.peek(&batch)).unwrap();
    assert!(!denied.allowed);
    at_once(limiter.reset(&batch)).unwrap();

    let forgotten = reserve().unwrap();
    clock.advance(lease);
    assert!(at_once(limiter.check(&batch)).unwrap().allowed, "the lease ran out");
    assert!(!at_once(limiter.commit(forgotten)).unwrap());
    assert!(at_once(limiter.reserve(&batch, Duration::ZERO)).is_err());
}

#[test]
fn a_breaker_tells_how_long_the_store_took_and_nothing_of_what_it_answered_itself() {
    struct Slow(Arc<Fragile>, Arc<ManualClock>);
    impl Store for Slow {
        fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
            StoreFuture::pending(async move {
                self.1.advance(Duration::from_millis(7));
                self.0.apply(verb, batch).await
            })
        }
    }

    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let breaker = Breaker::new(Slow(Arc::clone(&store), Arc::clone(&clock)), Arc::clone(&clock))
        .with_thresholds(2, Duration::from_secs(60))
        .observe_latency(move |took| heard.lock().unwrap().push(took));
    let limit = limit();
    let checks =
        ["a", "b", "c"].map(|name| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap());
    at_once(breaker.apply(Verb::Acquire, &Batch::new(checks).unwrap())).unwrap();
    let once = Duration::from_millis(7);
    assert_eq!(*told.lock().unwrap(), [once], "a batch is one call");

    store.down.store(true, Relaxed);
    for _ in 0..5 {
        assert!(acquire(&breaker, &limit, FailMode::Open).is_err());
    }
    assert_eq!(*told.lock().unwrap(), [once; 3], "two that failed, and none that was not made");
}
