use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use headgate::{
    Breaker, Check, Cost, FailMode, FailurePolicy, Key, LeaseId, Limit, ManualClock, Place, Store,
    StoreError, Verb,
};
use headgate_store_memory::MemoryStore;

use super::{Fragile, START, at_once};

#[test]
fn holders_are_those_of_the_store_and_unknown_while_it_is_down() {
    let clock = Arc::new(ManualClock::new(START));
    let store = Fragile::new(&clock);
    let breaker = Breaker::new(Arc::clone(&store), Arc::clone(&clock))
        .with_thresholds(3, Duration::from_secs(60));
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let policy = FailurePolicy::new(breaker, local, NonZeroU32::MIN, Arc::clone(&clock));
    let limit = Limit::concurrency(5, Duration::from_secs(60)).unwrap();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    let take = |id: u64| {
        let place = Place { id: LeaseId::from(id), lease: Duration::from_secs(60) };
        let check = check.with_fail_mode(FailMode::Capped).holding(place);
        assert!(at_once(policy.apply(Verb::Acquire, &check.into())).unwrap()[0].allowed);
    };
    let list = || at_once(policy.holders(check, 10));
    take(1);
    assert_eq!(list().unwrap().first[0].id, LeaseId::from(1));

    store.down.store(true, Relaxed);
    // It is held in this process, which says nothing about the others.
    take(2);
    for _ in 0..2 {
        assert!(matches!(list(), Err(StoreError::Unavailable(_))));
    }
    let asked = store.asked.load(Relaxed);
    assert!(matches!(list(), Err(StoreError::BreakerOpen)), "three calls have failed");
    assert_eq!(store.asked.load(Relaxed), asked);
}
