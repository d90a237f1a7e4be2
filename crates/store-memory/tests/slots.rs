//! Who has a slot, and for how long.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{sync::Arc, time::Duration};

use headgate::{Check, Cost, Key, LeaseId, Limit, ManualClock, Outcome, Spent, Timestamp, Verb};
use headgate_store_memory::MemoryStore;

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

struct Slots {
    clock: Arc<ManualClock>,
    store: MemoryStore<Arc<ManualClock>>,
    limit: Limit,
}

impl Slots {
    fn new(capacity: usize) -> Self {
        let clock = Arc::new(ManualClock::new(START));
        let store = MemoryStore::builder().capacity(capacity).clock(Arc::clone(&clock)).build();
        let limit = Limit::token_bucket(1_000, Duration::from_secs(60)).unwrap();
        Self { clock, store, limit }
    }

    fn check<'a>(&'a self, name: &'a str) -> Check<'a> {
        Check::new(Key::new(name).unwrap(), &self.limit, Cost::ONE).unwrap()
    }

    fn ask(&self, verb: Verb, name: &str) -> Outcome {
        self.store.apply_now(verb, &self.check(name).into())[0]
    }

    fn reserve(&self, name: &str, n: u64, seconds: u64) -> Outcome {
        let lease = Duration::from_secs(seconds);
        self.ask(Verb::Reserve { id: LeaseId::from(n), lease }, name)
    }

    /// Takes one unit for each of `count` new keys.
    fn flood(&self, count: u32) {
        for n in 0..count {
            assert!(self.ask(Verb::Acquire, &format!("flood:{n}")).allowed);
        }
    }
}

#[test]
fn a_full_store_keeps_a_reservation_until_it_ends() {
    let slots = Slots::new(3);
    assert!(slots.reserve("u", 1, 5).allowed && slots.reserve("u", 2, 30).allowed);
    slots.clock.advance(Duration::from_secs(10));
    slots.flood(1);
    assert_eq!(slots.store.overflowed(), 1, "there was no room");
    assert!(slots.ask(Verb::Commit(LeaseId::from(2)), "u").allowed);
}

#[test]
fn a_reservation_makes_room_the_moment_it_ends() {
    let slots = Slots::new(2);
    assert!(slots.reserve("u", 1, 5).allowed);
    assert_eq!(slots.store.len(), 2);
    slots.clock.advance(Duration::from_secs(5));
    slots.flood(1);
    assert_eq!((slots.store.overflowed(), slots.store.len()), (0, 1));
}

#[test]
fn a_holder_that_finds_room_does_not_put_off_the_next_sweep() {
    let slots = Slots::new(3);
    assert!(slots.reserve("u", 1, 5).allowed);
    slots.clock.advance(Duration::from_millis(4_999));
    let places = Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    let holder = Check::new(Key::new("holder").unwrap(), &places, Cost::ONE).unwrap();
    assert!(slots.store.apply_now(Verb::Acquire, &holder.into())[0].allowed);
    assert_eq!(slots.store.len(), 3);
    slots.clock.advance(Duration::from_millis(1));
    slots.flood(1);
    assert_eq!((slots.store.overflowed(), slots.store.len()), (0, 2));
}

#[test]
fn a_settled_reservation_takes_a_slot_while_it_is_remembered() {
    let slots = Slots::new(10);
    assert!(slots.reserve("u", 1, 5).allowed);
    let settles = slots.check("u").spent(Spent::within_the_limit(1));
    let commit = || slots.store.apply_now(Verb::Commit(LeaseId::from(1)), &settles.into())[0];
    assert!(commit().allowed && commit().allowed, "the same once more");
    assert_eq!(slots.store.len(), 2);
    slots.clock.advance(Duration::from_secs(5));
    assert!(!commit().allowed);
    assert!(slots.store.is_empty());
}

#[test]
fn new_keys_get_no_slot_while_reservations_take_more_than_there_are() {
    let slots = Slots::new(5);
    for n in 0..10 {
        assert!(slots.reserve("u", n, 5).allowed);
    }
    assert_eq!(slots.store.len(), 11);
    slots.flood(100);
    assert_eq!((slots.store.overflowed(), slots.store.len()), (100, 11));
}

#[test]
fn a_large_store_keeps_more_reservations_of_keys_without_a_slot() {
    let slots = Slots::new(20 * 64);
    slots.flood(20 * 64);
    let reserved = (0..100).filter(|n| slots.reserve(&format!("late:{n}"), *n, 5).allowed);
    assert_eq!(reserved.count(), 20);
}

#[test]
fn the_slots_of_all_shards_are_used() {
    let slots = Slots::new(8_192);
    slots.flood(4_096);
    assert_eq!((slots.store.overflowed(), slots.store.len()), (0, 4_096));
}
