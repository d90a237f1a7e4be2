use std::{
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
    time::Duration,
};

use headgate::{
    Batch, Breaker, Check, Circuit, Cost, FailMode, Key, ManualClock, Store, StoreError,
    StoreFuture, Timestamp, Verb,
};

use super::{Fragile, START, acquire, at_once, limit};

#[test]
fn an_open_breaker_retries_once_per_interval() {
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
    assert_eq!(store.asked.load(Relaxed), asked, "the store is not called");

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
fn an_open_circuit_admits_one_attempt_when_told_to_retry() {
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
fn an_open_breaker_retries_after_the_clock_was_set_back() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let pause = Duration::from_millis(500);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock)).with_thresholds(1, pause);
    let limit = limit();
    let ask = || acquire(&breaker, &limit, FailMode::Open);
    store.down.store(true, Relaxed);
    assert!(ask().is_err() && breaker.is_open());
    let asked = store.asked.load(Relaxed);

    // If the clock goes back by less than a pause, the time of the next attempt stays the same. By
    // more, it is unknown how long the breaker has been open.
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
fn errors_of_one_key_do_not_open_a_breaker() {
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
fn a_breaker_around_a_store_with_breakers_never_opens() {
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
fn latency_is_observed_only_for_calls_that_reach_the_store() {
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
