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
    Batch, Breaker, Check, Cost, FailMode, FailurePolicy, Key, LeaseId, Limit, Limiter,
    ManualClock, Outcome, Stake, Store, StoreError, StoreFuture, Timestamp, Verb,
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
    let check = Check::new(Key::new("k").unwrap(), limit, Cost::ONE).unwrap().or_else(mode);
    at_once(store.apply(Verb::Acquire, &check.into())).map(|outcomes| outcomes[0])
}

#[test]
fn a_breaker_leaves_a_failing_store_alone_and_tries_again_after_a_pause() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let pause = Duration::from_millis(500);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with(3, pause);
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
fn a_breaker_tries_again_when_the_clock_was_set_back() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let pause = Duration::from_millis(500);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with(1, pause);
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
    let breaker = Breaker::new(Corrupt, ManualClock::new(START)).with(3, Duration::from_secs(1));
    for _ in 0..10 {
        assert!(matches!(acquire(&breaker, &limit(), FailMode::Open), Err(StoreError::Corrupt(_))));
    }
    assert!(!breaker.is_open());
}

fn policy(replicas: u32) -> (Arc<Fragile>, impl Store) {
    let clock = Arc::new(ManualClock::new(START));
    let primary = Fragile::new(&clock);
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let replicas = NonZeroU32::new(replicas).unwrap();
    (Arc::clone(&primary), FailurePolicy::new(primary, local, replicas, clock))
}

#[test]
fn each_failure_mode_decides_in_its_own_way() {
    let (primary, policy) = policy(2);
    let limit = limit();
    assert_eq!(acquire(&policy, &limit, FailMode::Closed).unwrap().degraded, None);
    primary.down.store(true, Relaxed);

    let open = acquire(&policy, &limit, FailMode::Open).unwrap();
    assert!(open.allowed && open.remaining == 4 && open.degraded == Some(FailMode::Open));
    let closed = acquire(&policy, &limit, FailMode::Closed).unwrap();
    assert!(!closed.allowed && closed.remaining == 0 && closed.degraded == Some(FailMode::Closed));
    assert!(closed.retry_after >= Duration::from_secs(1));
    // Half of four for each of two replicas.
    let local = || acquire(&policy, &limit, FailMode::Local).unwrap();
    assert_eq!([local().remaining, local().remaining], [1, 0]);
    let denied = local();
    assert!(!denied.allowed && denied.degraded == Some(FailMode::Local));
    assert_eq!(denied.retry_after, Duration::from_secs(30), "two a minute");
}

#[test]
fn in_a_batch_the_strictest_failure_mode_decides_and_nothing_is_taken_locally() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check =
        |name, mode| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap().or_else(mode);
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
fn a_closed_limit_that_stops_nobody_does_not_lift_the_local_ones() {
    let (primary, policy) = policy(2);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check =
        |key, mode| Check::new(Key::new(key).unwrap(), &limit, Cost::ONE).unwrap().or_else(mode);
    let local = check("local", FailMode::Local);
    let aside = check("closed", FailMode::Closed).with_stake(Stake::Aside);
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
    let limiter = Limiter::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
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
        .with(2, Duration::from_secs(60))
        .observed(move |took| heard.lock().unwrap().push(took));
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
