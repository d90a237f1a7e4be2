use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate::{
    Batch, BatchLimiter, Check, CheckMode, Cost, Degraded, FailCause, FailMode, FailurePolicy, Key,
    LeaseId, Limit, ManualClock, Outcome, Replicas, Source, Spent, Standing, Store, StoreError,
    StoreFuture, Verb,
};
use headgate_store_memory::MemoryStore;

use super::{Fragile, START, acquire, at_once, limit};

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
fn each_failure_mode_decides_differently() {
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
    // Each of two replicas has half of the limit of four.
    let local = || acquire(&policy, &limit, FailMode::Local).unwrap();
    assert_eq!([local().remaining, local().remaining], [1, 0]);
    let denied = local();
    assert!(!denied.allowed && by(&denied) == Some(FailMode::Local));
    assert_eq!(denied.retry_after, Duration::from_secs(30), "two a minute");
}

#[test]
fn the_number_of_replicas_can_change_while_it_is_in_use() {
    let clock = Arc::new(ManualClock::new(START));
    let primary = Fragile::new(&clock);
    primary.down.store(true, Relaxed);
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let replicas = Replicas::from(NonZeroU32::MIN);
    let policy = FailurePolicy::new(primary, local, replicas.clone(), clock);
    let limit = limit();
    assert_eq!(acquire(&policy, &limit, FailMode::Local).unwrap().limit, 4);
    replicas.set(NonZeroU32::new(2).unwrap());
    assert_eq!(acquire(&policy, &limit, FailMode::Local).unwrap().limit, 2);
}

#[test]
fn capped_admits_the_whole_limit_and_no_more() {
    let (primary, policy, clock) = policy_at(2);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let ask = || acquire(&policy, &limit, FailMode::Capped).unwrap();
    for _ in 0..4 {
        // As when failing open, the units left in the store are unknown.
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
    // The store recovers and fails again: local counts are kept.
    primary.down.store(false, Relaxed);
    assert_eq!(ask().degraded, None);
    primary.down.store(true, Relaxed);
    assert!(!ask().allowed);
}

#[test]
fn a_cached_denial_holds_in_every_mode_until_it_expires() {
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
fn a_cached_denial_blocks_the_batch_as_its_mode_says() {
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
fn a_reset_clears_cached_denials_and_local_counters() {
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
fn local_reservations_are_committed_and_cancelled_locally() {
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
    // The store has recovered, and does not have the reservation.
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
fn a_reservation_is_read_where_it_was_made() {
    let (primary, policy) = policy(1);
    let limit = limit();
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::ONE).unwrap();
    let (shared, local) = (LeaseId::from(1), LeaseId::from(2));
    let reserve = |id| {
        let lease = Duration::from_secs(10);
        let batch = Batch::from(check.with_fail_mode(FailMode::Local));
        assert!(at_once(policy.apply(Verb::Reserve { id, lease }, &batch)).unwrap()[0].allowed);
    };
    let read = |id| {
        let check = check.with_fail_mode(FailMode::Local).with_mode(CheckMode::Report);
        let outcomes = at_once(policy.apply(Verb::Cancel(id), &Batch::from(check)));
        outcomes.map(|outcomes| matches!(outcomes[0].reservation(), Some(Standing::Pending { .. })))
    };
    reserve(shared);
    primary.down.store(true, Relaxed);
    reserve(local);
    assert!(read(local).unwrap());
    assert!(read(shared).is_err(), "the store does not answer: it may be pending");
    primary.down.store(false, Relaxed);
    assert!(read(local).unwrap() && read(shared).unwrap());
    assert!(!read(LeaseId::from(3)).unwrap());
}

#[test]
fn an_answer_reports_the_cause_of_the_failure() {
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
fn the_strictest_failure_mode_of_a_batch_decides() {
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
fn every_check_of_a_batch_gets_its_own_answer() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    while acquire(&policy, &limit, FailMode::Local).unwrap().allowed {}
    let check = |name, mode| {
        Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap().with_fail_mode(mode)
    };
    // Only the second check is counted locally, under a key without units left.
    let batch = Batch::new([check("open", FailMode::Open), check("k", FailMode::Local)]).unwrap();
    let outcomes = at_once(policy.apply(Verb::Acquire, &batch)).unwrap();
    assert_eq!(outcomes.iter().map(|it| it.allowed).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_optional_closed_check_does_not_disable_local_limits() {
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
    // This replica's half of the limit, and no more.
    assert_eq!(admitted, [true, true, false]);
}

#[test]
fn verbs_other_than_admissions_keep_their_error() {
    let (primary, policy) = policy(1);
    primary.down.store(true, Relaxed);
    let limit = limit();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    for verb in [Verb::Refund, Verb::Reset, Verb::Commit(LeaseId::from(1))] {
        assert!(at_once(policy.apply(verb, &check.into())).is_err(), "{verb:?}");
    }
}

#[test]
fn a_lease_is_renewed_as_the_failure_mode_says() {
    let (primary, policy, clock) = policy_at(1);
    let limiter = BatchLimiter::new(policy);
    let longest = Duration::from_secs(60);
    let (limit, lease) = (Limit::concurrency(1, longest).unwrap(), Duration::from_secs(10));
    let check = |mode: FailMode| {
        let key = Key::new(mode.name()).unwrap();
        Batch::from(Check::new(key, &limit, Cost::ONE).unwrap().with_fail_mode(mode))
    };
    let acquire = |mode| at_once(limiter.acquire(&check(mode), lease));
    let permits = FailMode::ALL.map(|mode| acquire(mode).unwrap().0);
    primary.down.store(true, Relaxed);
    clock.advance(Duration::from_secs(5));
    for (mode, permit) in FailMode::ALL.into_iter().zip(&permits) {
        let renewed = at_once(limiter.renew(permit, lease));
        assert_eq!(renewed.is_ok(), mode != FailMode::Closed, "{mode}: {renewed:?}");
        if let Ok(ends) = renewed {
            assert_eq!(ends, START.plus(15_000_000), "{mode}");
        }
        let another = acquire(mode);
        assert_eq!(another.is_ok(), mode == FailMode::Open, "{mode}: {another:?}");
    }
    // The store is back, and the leases have ended there.
    clock.advance(Duration::from_secs(6));
    primary.down.store(false, Relaxed);
    for (mode, permit) in FailMode::ALL.into_iter().zip(&permits) {
        let renewed = at_once(limiter.renew(permit, lease));
        assert_eq!(renewed.is_ok(), mode.counts(), "{mode}: {renewed:?}");
        let taken = at_once(limiter.peek(&check(mode))).unwrap().remaining == 0;
        assert_eq!(taken, mode.counts(), "{mode}: what was held locally is held in the store");
    }
}

#[test]
fn a_reservation_that_has_ended_is_not_settled_by_its_place() {
    let (primary, policy, clock) = policy_at(1);
    let places = Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    let units = limit();
    let check = |name, limit| Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    let spent = Spent::within_the_limit(1);
    let (id, lease) = (LeaseId::from(1), Duration::from_secs(10));
    let batch = Batch::new([
        check("units", &units).with_fail_mode(FailMode::Open).spent(spent),
        check("place", &places).spent(spent),
    ])
    .unwrap();
    let apply = |verb| at_once(policy.apply(verb, &batch));
    let all = |outcomes: &[Outcome]| outcomes.iter().all(|outcome| outcome.allowed);
    assert!(all(&apply(Verb::Reserve { id, lease }).unwrap()));
    clock.advance(lease);
    assert!(!all(&apply(Verb::Commit(id)).unwrap()), "it has expired");
    primary.down.store(true, Relaxed);
    assert!(apply(Verb::Commit(id)).is_err(), "it may be in the store");
    // One that was made locally is settled there.
    assert!(all(&apply(Verb::Reserve { id, lease }).unwrap()));
    primary.down.store(false, Relaxed);
    assert!(all(&apply(Verb::Commit(id)).unwrap()));
}

#[test]
fn places_are_moved_back_only_if_no_check_denies_without_the_store() {
    let (primary, policy, _) = policy_at(1);
    let limit = Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    let check = |name| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
    let (id, lease) = (LeaseId::from(1), Duration::from_secs(10));
    let both = Batch::new([check("a"), check("b")]).unwrap();
    primary.down.store(true, Relaxed);
    at_once(policy.apply(Verb::Use { id, lease }, &both)).unwrap();
    primary.down.store(false, Relaxed);
    let closed = Batch::new([check("a"), check("b").with_fail_mode(FailMode::Closed)]).unwrap();
    let renewed = at_once(policy.apply(Verb::Use { id, lease }, &closed)).unwrap();
    assert!(renewed.iter().all(|outcome| !outcome.allowed), "{renewed:?}");
    let free = at_once(policy.apply(Verb::Peek, &both)).unwrap();
    assert!(free.iter().all(|outcome| outcome.remaining == 1), "{free:?}");
    let renewed = at_once(policy.apply(Verb::Use { id, lease }, &both)).unwrap();
    assert!(renewed.iter().all(|outcome| outcome.allowed), "{renewed:?}");
}

/// A store of which the part with the key `mark` is down.
struct PartlyDown(MemoryStore<Arc<ManualClock>>);

impl Store for PartlyDown {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if batch.checks().iter().any(|check| check.key().subject() == "mark") {
            return StoreFuture::ready(Err(StoreError::BreakerOpen));
        }
        self.0.apply(verb, batch)
    }
}

#[test]
fn limits_are_decided_without_exact_checks_whose_part_of_the_store_is_down() {
    let clock = Arc::new(ManualClock::new(START));
    let store = || MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let primary = PartlyDown(store());
    let policy = FailurePolicy::new(primary, store(), NonZeroU32::MIN, Arc::clone(&clock));
    let limit = limit();
    let check = |name| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
    let marked = Batch::new([check("k"), check("mark").exact()]).unwrap();
    let ask = |batch: &Batch<'_>| at_once(policy.apply(Verb::Acquire, batch)).unwrap();
    for left in [3, 2, 1, 0] {
        let outcomes = ask(&marked);
        assert_eq!((outcomes[0].remaining, outcomes[0].degraded), (left, None));
        assert!(outcomes[1].allowed, "{outcomes:?}");
    }
    assert!(!ask(&marked)[0].allowed);
    // A limit is no mark: without it, the failure mode decides.
    let outcomes = ask(&Batch::new([check("other"), check("mark")]).unwrap());
    assert_eq!(outcomes[0].degraded.unwrap().name(), "capped");
}

/// A store that answers no call in time, although it may have decided it.
#[derive(Default)]
struct Late(AtomicU32);

impl Store for Late {
    fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
        self.0.fetch_add(1, Relaxed);
        StoreFuture::ready(Err(StoreError::Timeout(Duration::from_millis(1))))
    }
}

#[test]
fn limits_are_not_decided_again_if_the_store_may_have_decided_them() {
    let clock = Arc::new(ManualClock::new(START));
    let local = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    let late = Arc::new(Late::default());
    let policy = FailurePolicy::new(Arc::clone(&late), local, NonZeroU32::MIN, clock);
    let limit = limit();
    let check = |name| Check::new(Key::new(name).unwrap(), &limit, Cost::ONE).unwrap();
    let marked = Batch::new([check("k"), check("mark").exact()]).unwrap();
    let outcomes = at_once(policy.apply(Verb::Acquire, &marked)).unwrap();
    assert_eq!(outcomes[0].degraded.unwrap().cause, FailCause::Timeout);
    assert_eq!(late.0.load(Relaxed), 1);
}

#[test]
fn a_reservation_of_units_stays_where_it_was_made() {
    let (primary, policy) = policy(1);
    let limit = limit();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    let check = check.spent(Spent::within_the_limit(1));
    let (id, lease) = (LeaseId::from(1), Duration::from_secs(10));
    let apply = |verb| at_once(policy.apply(verb, &check.into())).map(|outcomes| outcomes[0]);
    primary.down.store(true, Relaxed);
    assert!(apply(Verb::Use { id, lease }).is_err(), "it may be in the store");
    assert!(apply(Verb::Reserve { id, lease }).unwrap().allowed);
    assert!(apply(Verb::Use { id, lease }).unwrap().allowed);
    primary.down.store(false, Relaxed);
    assert!(apply(Verb::Use { id, lease }).unwrap().allowed);
    assert_eq!(apply(Verb::Peek).unwrap().remaining, 4, "the store has taken nothing");

    // One in the store with the same name is settled there.
    assert_eq!(apply(Verb::Reserve { id, lease }).unwrap().remaining, 3);
    let settled = apply(Verb::Commit(id)).unwrap();
    assert_eq!((settled.remaining, settled.degraded), (3, None));
    primary.down.store(true, Relaxed);
    assert!(apply(Verb::Use { id, lease }).unwrap().allowed, "the local one is still pending");
}

#[test]
fn a_denied_place_is_not_remembered() {
    let (primary, policy) = policy(1);
    let limiter = BatchLimiter::new(policy);
    let limit = Limit::concurrency(1, Duration::from_secs(60)).unwrap();
    let check = Check::new(Key::new("k").unwrap(), &limit, Cost::ONE).unwrap();
    let batch = Batch::from(check.with_fail_mode(FailMode::Capped));
    let lease = Duration::from_secs(10);
    let (permit, _) = at_once(limiter.acquire(&batch, lease)).unwrap();
    assert!(at_once(limiter.acquire(&batch, lease)).is_err());
    primary.down.store(true, Relaxed);
    let admitted = at_once(limiter.acquire(&batch, lease)).unwrap().1;
    assert_eq!(admitted.degraded.unwrap().name(), "capped", "its holder may have released it");
    drop(permit);
}
