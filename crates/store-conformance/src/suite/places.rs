//! Places of concurrency limits.

use std::{
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use futures_util::future::join_all;
use headgate::{
    Batch, Check, Cost, Holders, Key, KeySpace, LeaseId, Limit, Outcome, Place, Standing, Store,
    Timestamp, Verb, algorithm::Concurrency,
};

use crate::{Fixture, Model, fixture::next_scenario};

const PLACES: u64 = 7;
const WORKERS: u64 = 40;
const LEASE: Duration = Duration::from_hours(1);

/// A subject of its own, with a concurrency limit.
struct Subject<'f> {
    store: &'f dyn Store,
    name: String,
    limit: Limit,
}

impl<'f> Subject<'f> {
    fn new(fixture: &'f dyn Fixture, places: u64, longest: Duration) -> Self {
        let name = format!("{}places:{}:", fixture.key_prefix(), next_scenario());
        let limit = Limit::concurrency(places, longest).unwrap_or_else(|error| panic!("{error}"));
        Self { store: fixture.store(), name, limit }
    }

    async fn apply(&self, verb: Verb, place: Option<Place>) -> Outcome {
        self.apply_at_cost(verb, place, 1).await
    }

    async fn apply_at_cost(&self, verb: Verb, place: Option<Place>, places: u64) -> Outcome {
        let space = KeySpace::new(&self.name, "");
        let check = self.check(&space, places);
        let check = place.map_or(check, |place| check.holding(place));
        let answer = self.store.apply(verb, &Batch::from(check)).await;
        answer.unwrap_or_else(|error| panic!("{error}"))[0]
    }

    fn check<'a>(&'a self, space: &'a KeySpace<'a>, places: u64) -> Check<'a> {
        let key = Key::new("jobs").unwrap_or_else(|error| panic!("{error}")).within(space);
        let cost = Cost::new(places).unwrap_or_else(|error| panic!("{error}"));
        Check::new(key, &self.limit, cost).unwrap_or_else(|error| panic!("{error}"))
    }

    async fn holders(&self, max: usize) -> Holders {
        let space = KeySpace::new(&self.name, "");
        let listed = self.store.holders(self.check(&space, 1), max).await;
        listed.unwrap_or_else(|error| panic!("{error}"))
    }

    /// The answer of the store, which is that of the model.
    async fn agrees(
        &self,
        model: &mut Model,
        verb: Verb,
        place: Option<Place>,
        places: u64,
    ) -> Outcome {
        let answer = self.apply_at_cost(verb, place, places).await;
        let space = KeySpace::new(&self.name, "");
        let check = self.check(&space, places);
        let check = place.map_or(check, |place| check.holding(place));
        assert_eq!(answer, model.apply(verb, &[check], &[answer.at])[0], "{verb:?}");
        answer
    }

    async fn acquire(&self, id: u64, lease: Duration) -> Outcome {
        self.apply(Verb::Acquire, Some(Place { id: LeaseId::from(id), lease })).await
    }

    async fn release(&self, id: u64) -> bool {
        self.apply(Verb::Cancel(LeaseId::from(id)), None).await.allowed
    }
}

/// Forty workers take one of seven places, work, and release it, again and again: never more than
/// seven of them work at a time, and all of them get their turn.
pub async fn never_more_holders_than_places(fixture: &dyn Fixture) {
    let subject = Subject::new(fixture, PLACES, LEASE);
    let working = AtomicU64::new(0);
    let worker = async |worker: u64| {
        let mut done = 0;
        while done < 5 {
            let id = worker * 1_000_000 + done;
            if !subject.acquire(id, LEASE).await.allowed {
                continue;
            }
            let holders = 1 + working.fetch_add(1, SeqCst);
            assert!(holders <= PLACES, "{holders} holders");
            let renewed =
                subject.apply(Verb::Use { id: LeaseId::from(id), lease: LEASE }, None).await;
            assert!(renewed.allowed, "{renewed:?}");
            working.fetch_sub(1, SeqCst);
            assert!(subject.release(id).await);
            done += 1;
        }
    };
    join_all((1..=WORKERS).map(worker)).await;
    let left = subject.apply(Verb::Peek, None).await;
    assert_eq!((left.remaining, left.reset_after), (PLACES, Duration::ZERO));
}

/// A holder that neither renews nor releases its lease: its place is free when the lease ends, as
/// the denial before said, and a late renewal or release is denied.
pub async fn a_place_is_free_when_its_lease_ends(fixture: &dyn Fixture) {
    let subject = Subject::new(fixture, 1, LEASE);
    let lease = Duration::from_millis(200);
    let first = subject.acquire(1, lease).await;
    assert!(first.allowed && first.remaining == 0, "{first:?}");
    let mut told = None;
    loop {
        let next = subject.acquire(2, LEASE).await;
        if next.allowed {
            assert!(next.at >= first.at + lease, "{next:?} before the lease of {first:?} ended");
            break;
        }
        assert_eq!(next.at + next.retry_after, first.at + lease);
        told = Some(next.retry_after);
        fixture.set_time(next.at + next.retry_after);
    }
    assert!(told.is_some(), "the second holder had to wait");
    assert!(!subject.release(1).await, "it is the place of another by now");
    let renew = Verb::Use { id: LeaseId::from(1), lease };
    let late = subject.apply(renew, None).await;
    assert_eq!((late.allowed, late.reservation()), (false, Some(Standing::Ended)));
    assert!(subject.release(2).await);
}

/// The list has the places and the end of every lease, the first to end first, and no lease that
/// has ended. It changes nothing.
pub async fn lists_the_holders_of_a_subject(fixture: &dyn Fixture) {
    let subject = Subject::new(fixture, PLACES, LEASE);
    let none = subject.holders(10).await;
    assert_eq!((none.taken, none.total, none.first.len()), (0, 0, 0));

    let mut expected = Vec::new();
    for (id, places, lease) in [(1, 1, LEASE), (2, 3, LEASE / 2), (3, 1, LEASE / 3)] {
        let place = Place { id: LeaseId::from(id), lease };
        let taken = subject.apply_at_cost(Verb::Acquire, Some(place), places).await;
        assert!(taken.allowed, "{taken:?}");
        expected.insert(0, (id, places, taken.at + lease));
    }
    let listed = subject.holders(10).await;
    assert_eq!((listed.taken, listed.total, rows(&listed)), (5, 3, expected.clone()));
    let part = subject.holders(2).await;
    assert_eq!((part.taken, part.total, rows(&part)), (5, 3, expected[..2].to_vec()));
    assert_eq!(subject.apply(Verb::Peek, None).await.remaining, PLACES - 5);

    let soon = Duration::from_millis(200);
    let renewed = Verb::Use { id: LeaseId::from(1), lease: soon };
    let ends = subject.apply(renewed, None).await.at + soon;
    assert!(subject.release(2).await);
    loop {
        let listed = subject.holders(10).await;
        if listed.at >= ends {
            assert_eq!((listed.taken, listed.total), (1, 1), "one has ended");
            assert_eq!(rows(&listed), expected[..1]);
            break;
        }
        assert_eq!((listed.taken, listed.total, rows(&listed)[0]), (2, 2, (1, 1, ends)));
        fixture.set_time(ends);
    }
    assert!(subject.release(3).await);
    assert_eq!(subject.holders(10).await.total, 0);
}

fn rows(listed: &Holders) -> Vec<(u64, u64, Timestamp)> {
    let holders = listed.first.iter();
    holders.map(|it| (it.id.get(), it.places.into(), Timestamp::from_micros(it.end))).collect()
}

/// Takes thousands of places, by a holder each, which can be renewed and released by itself.
pub async fn thousands_of_holders_have_a_place_each(fixture: &dyn Fixture, holders: u64) {
    let subject = Subject::new(fixture, holders, LEASE);
    for id in 1..=holders {
        let outcome = subject.acquire(id, LEASE).await;
        assert_eq!((outcome.allowed, outcome.remaining), (true, holders - id), "{id}");
    }
    let denied = subject.acquire(holders + 1, LEASE).await;
    assert!(!denied.allowed && denied.retry_after > Duration::ZERO, "{denied:?}");
    for id in [1, holders / 2, holders] {
        let renewed = subject.apply(Verb::Use { id: LeaseId::from(id), lease: LEASE }, None).await;
        let expected = Standing::Pending { held: 1, expires_at: renewed.at + LEASE };
        assert_eq!((renewed.allowed, renewed.reservation()), (true, Some(expected)));
        assert!(subject.release(id).await, "{id}");
        assert!(subject.acquire(id, LEASE).await.allowed, "{id}");
    }
    for id in 1..=holders {
        assert!(subject.release(id).await, "{id}");
    }
    assert_eq!(subject.apply(Verb::Peek, None).await.remaining, holders);
}

/// Compares answers with the model while about as many holders are in the way as an answer looks
/// at, because the limit was lowered.
pub async fn agrees_with_the_model_about_many_holders(fixture: &dyn Fixture) {
    let holders = Concurrency::MAX_FORESEEN as u64 + 8;
    // With one place each, and with two for every third.
    for step in [u64::MAX, 3] {
        let mut subject = Subject::new(fixture, 2 * holders, LEASE);
        let mut model = Model::default();
        let mut taken = 0;
        for id in 1..=holders {
            let places = 1 + u64::from(id % step == 0);
            let place = Place {
                id: LeaseId::from(id),
                lease: LEASE.saturating_sub(Duration::from_secs(id)),
            };
            let verb = Verb::Acquire;
            assert!(subject.agrees(&mut model, verb, Some(place), places).await.allowed, "{id}");
            taken += places;
        }
        let unknown = LeaseId::from(holders + 1);
        for left in (0..3).chain(taken - 14..taken) {
            subject.limit =
                Limit::concurrency(taken - left, LEASE).unwrap_or_else(|e| panic!("{e}"));
            for verb in [Verb::Peek, Verb::Acquire, Verb::Cancel(unknown)] {
                let answer = subject.agrees(&mut model, verb, None, 1).await;
                assert!(!answer.allowed, "{verb:?} {left}");
            }
        }
    }
}
