//! The bounds on pending and on settled reservations.

use std::time::Duration;

use headgate::{
    Algorithm, Batch, Check, Cost, Key, KeySpace, Lease, LeaseId, Limit, Outcome, Settled, Spent,
    Standing, Timestamp, Verb,
};

use crate::{Fixture, fixture::next_scenario};

const LIMIT: u64 = 1_000;
const LEASE: Duration = Duration::from_mins(10);

/// Makes as many reservations as may be pending on one key: the next one is denied although units
/// are left, reports the expiry of the first one as `retry_after`, and is admitted once one has
/// ended. It reports the same if a unit returns earlier.
pub async fn refuses_one_reservation_too_many_until_another_ends(fixture: &dyn Fixture) {
    for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
        let limit = Limit::new(algorithm, LIMIT, Duration::from_hours(24));
        let limit = limit.unwrap_or_else(|error| panic!("{error}"));
        let prefix = format!("{}crowd:{algorithm}:", fixture.key_prefix());
        let (space, name) = (KeySpace::new(&prefix, ""), next_scenario().to_string());
        let ask_for = async |verb, cost| ask(fixture, verb, cost, &name, &space, &limit).await;
        let ask = async |verb| ask_for(verb, Cost::ONE).await;
        let reserve = |id: u64| Verb::Reserve { id: LeaseId::from(id), lease: LEASE };

        let first = ask(reserve(1)).await;
        for id in 2..=Lease::MAX_PENDING as u64 {
            assert!(ask(reserve(id)).await.allowed, "{algorithm} {id}");
        }
        let refused = ask(reserve(1_000)).await;
        assert!(!refused.allowed, "{algorithm} {refused:?}");
        assert_eq!(refused.remaining, LIMIT - Lease::MAX_PENDING as u64, "{algorithm}");
        assert_eq!(refused.at + refused.retry_after, first.at + LEASE, "{algorithm}");
        assert!(
            ask(Verb::Acquire).await.allowed,
            "{algorithm}: there is room for what does not wait"
        );

        assert!(ask(Verb::Commit(LeaseId::from(7))).await.allowed, "{algorithm}");
        assert!(ask(reserve(1_000)).await.allowed, "{algorithm}");
        let left = ask(reserve(1_001)).await;
        assert!(!left.allowed, "{algorithm}");

        // No units are left either; a token returns long before a reservation ends.
        let all = Cost::new(left.remaining).unwrap_or_else(|error| panic!("{error}"));
        assert!(ask_for(Verb::Acquire, all).await.allowed, "{algorithm}");
        let refused = ask(reserve(1_001)).await;
        assert!(!refused.allowed && refused.remaining == 0, "{algorithm} {refused:?}");
        assert_eq!(refused.at + refused.retry_after, first.at + LEASE, "{algorithm}");
    }
}

/// Settles more reservations of one key than it remembers, in another order than they were made: the
/// latest can be settled again, for the same cost, and change nothing; the others have ended.
pub async fn remembers_the_latest_settlements(fixture: &dyn Fixture) {
    const RESERVED: u64 = 5;
    let last = Settled::MAX_REMEMBERED as u64 + 4;
    for algorithm in Algorithm::RATES.into_iter().filter(|it| *it != Algorithm::Calendar) {
        let limit = Limit::new(algorithm, LIMIT, Duration::from_hours(24 * 366));
        let limit = limit.unwrap_or_else(|error| panic!("{error}"));
        let prefix = format!("{}settled:{algorithm}:", fixture.key_prefix());
        let (space, name) = (KeySpace::new(&prefix, ""), next_scenario().to_string());
        let key = Key::new(&name).unwrap_or_else(|error| panic!("{error}")).within(&space);
        let cost = Cost::new(RESERVED).unwrap_or_else(|error| panic!("{error}"));
        let check = Check::new(key, &limit, cost).unwrap_or_else(|error| panic!("{error}"));
        let ask = async |verb, check| {
            let answer = fixture.store().apply(verb, &Batch::from(check)).await;
            answer.unwrap_or_else(|error| panic!("{limit:?}: {error}"))[0]
        };
        // Less than was reserved, all of it, and one more.
        let spent = |id: u64| Spent::within_the_limit(id % (RESERVED + 2));
        for id in 1..=last {
            let made = ask(Verb::Reserve { id: LeaseId::from(id), lease: LEASE }, check).await;
            assert_eq!(
                (made.allowed, made.remaining),
                (true, LIMIT - RESERVED * id),
                "{algorithm}"
            );
        }
        let order = || (1..=last).map(|n| n * 8 % (last + 1));
        let (mut left, mut pending) = (LIMIT, last);
        for id in order() {
            let settled = ask(Verb::Commit(LeaseId::from(id)), check.spent(spent(id))).await;
            (left, pending) = (left - spent(id).units(), pending - 1);
            assert_eq!(settled.remaining, left - RESERVED * pending, "{algorithm} {id}");
        }
        for (i, id) in order().enumerate() {
            let again = ask(Verb::Commit(LeaseId::from(id)), check.spent(spent(id))).await;
            let remembered = i >= order().count() - Settled::MAX_REMEMBERED;
            let returned = RESERVED.saturating_sub(spent(id).units());
            let standing = Standing::Settled { spent: spent(id).units(), returned };
            let standing = if remembered { standing } else { Standing::Ended };
            assert_eq!(again.reservation(), Some(standing), "{algorithm} {id}");
            assert_eq!((again.allowed, again.remaining), (remembered, left), "{algorithm} {id}");
        }
    }
}

/// Names reservations that exist and that do not, with another limit than theirs, as an id that was
/// made up does: units never return sooner than by the honest limit. A lower rate applies if the
/// reservation exists, because its rule may have changed.
pub async fn a_limit_that_comes_with_a_reservation_raises_no_rate(fixture: &dyn Fixture) {
    // A unit returns in more than ten minutes, and all of them in nearly all of the window.
    let (window, nearly_all) = (Duration::from_hours(240), Duration::from_hours(236));
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let limit = |units| Limit::new(algorithm, units, window).unwrap_or_else(|e| panic!("{e}"));
        let (honest, lowered) = (limit(LIMIT), limit(LIMIT / 2));
        let forged = limit(u64::from(u32::MAX));
        let prefix = format!("{}forged:{algorithm}:", fixture.key_prefix());
        let (space, name) = (KeySpace::new(&prefix, ""), next_scenario().to_string());
        let key = Key::new(&name).unwrap_or_else(|error| panic!("{error}")).within(&space);
        let ask = async |verb, limit, units: u64, spent: Option<Spent>| {
            let cost = Cost::new(units).unwrap_or_else(|error| panic!("{error}"));
            let check = Check::new(key, limit, cost).unwrap_or_else(|error| panic!("{error}"));
            let check = spent.map_or(check, |spent| check.spent(spent));
            let answer = fixture.store().apply(verb, &Batch::from(check)).await;
            answer.unwrap_or_else(|error| panic!("{limit:?}: {error}"))[0]
        };
        let [known, unknown] = [1, 2].map(LeaseId::from);
        let reserve = Verb::Reserve { id: known, lease: LEASE };
        assert!(ask(reserve, &honest, 10, None).await.allowed, "{algorithm}");
        let last = ask(Verb::Acquire, &honest, LIMIT - 10, None).await;
        assert!(last.allowed, "{algorithm}");
        let spent = Some(Spent::within_the_limit(10));
        for (verb, spent) in [
            (Verb::Use { id: unknown, lease: LEASE }, None),
            (Verb::Use { id: unknown, lease: LEASE }, spent),
            (Verb::Commit(unknown), None),
            (Verb::Commit(unknown), spent),
            (Verb::Cancel(unknown), None),
        ] {
            for limit in [&forged, &lowered] {
                assert!(!ask(verb, limit, 1, spent).await.allowed, "{algorithm} {verb:?}");
            }
            // It applies no limit, so it shows the rate at which units return.
            let seen = ask(Verb::Peek, &honest, 1, None).await;
            let is_unchanged = (nearly_all..=window).contains(&seen.reset_after);
            assert!(!seen.allowed && is_unchanged, "{algorithm} {verb:?} {seen:?}");
            assert!(!ask(Verb::Acquire, &honest, 1, None).await.allowed, "{algorithm} {verb:?}");
        }
        // It exists: what it holds is charged or returns, and no more.
        let uses = Verb::Use { id: known, lease: LEASE };
        assert!(ask(uses, &forged, 1, None).await.allowed, "{algorithm}");
        assert!(!ask(Verb::Acquire, &honest, 1, None).await.allowed, "{algorithm}");
        assert!(ask(uses, &lowered, 1, None).await.allowed, "{algorithm}");
        let seen = ask(Verb::Peek, &honest, 1, None).await;
        assert!(seen.reset_after > 2 * nearly_all, "{algorithm} {seen:?}");
        assert!(!ask(Verb::Acquire, &honest, 1, None).await.allowed, "{algorithm}");
        assert!(ask(Verb::Cancel(known), &forged, 1, None).await.allowed, "{algorithm}");
        let seen = ask(Verb::Peek, &honest, 10, None).await;
        assert_eq!((seen.allowed, seen.remaining), (false, 8), "{algorithm} {seen:?}");
        assert!(seen.reset_after > nearly_all, "{algorithm} {seen:?}");
    }
}

async fn ask(
    fixture: &dyn Fixture,
    verb: Verb,
    cost: Cost,
    name: &str,
    space: &KeySpace<'_>,
    limit: &Limit,
) -> Outcome {
    let key = Key::new(name).unwrap_or_else(|error| panic!("{error}")).within(space);
    let check = Check::new(key, limit, cost).unwrap_or_else(|error| panic!("{error}"));
    let answer = fixture.store().apply(verb, &Batch::from(check)).await;
    answer.unwrap_or_else(|error| panic!("{limit:?}: {error}"))[0]
}

/// Takes 100 nine times while a bucket refills at 100 a second, and then the whole burst. Refunds
/// return nothing, also under a smaller limit: all of it has refilled and was taken again.
///
/// The clock of the store must be settable.
pub async fn a_refund_under_a_smaller_limit_returns_no_more(fixture: &dyn Fixture) {
    let starts = [1_772_928_000_000_000, 1_772_928_100_000_000].map(Timestamp::from_micros);
    let window = Duration::from_secs(10);
    for (algorithm, start) in
        [Algorithm::TokenBucket, Algorithm::LeakyBucket].into_iter().zip(starts)
    {
        let limit = |units| Limit::new(algorithm, units, window).unwrap_or_else(|e| panic!("{e}"));
        let [pro, free] = [1_000, 100].map(limit);
        let prefix = format!("{}refunds:{algorithm}:", fixture.key_prefix());
        let (space, name) = (KeySpace::new(&prefix, ""), next_scenario().to_string());
        let key = Key::new(&name).unwrap_or_else(|error| panic!("{error}")).within(&space);
        let ask = async |verb, limit, units: u64, taken_at| {
            let cost = Cost::new(units).unwrap_or_else(|error| panic!("{error}"));
            let check = Check::new(key, limit, cost).unwrap_or_else(|error| panic!("{error}"));
            let batch = Batch::from(check.taken_at(taken_at));
            fixture.store().apply(verb, &batch).await.unwrap_or_else(|error| panic!("{error}"))[0]
        };
        let second = |n| start + Duration::from_secs(n);
        for n in 0..9 {
            assert!(fixture.set_time(second(n)), "the clock cannot be set");
            assert!(ask(Verb::Acquire, &pro, 100, start).await.allowed, "{algorithm} {n}");
        }
        fixture.set_time(second(9));
        assert!(ask(Verb::Acquire, &pro, 1_000, start).await.allowed, "{algorithm}");
        for n in 0..9 {
            ask(Verb::Refund, &free, 100, second(n)).await;
            let left = ask(Verb::Peek, &pro, 1, start).await.remaining;
            assert_eq!(left, 0, "{algorithm} {n}");
        }
        // The refunds have not applied their limit: units still return at the other rate.
        fixture.set_time(second(10));
        assert_eq!(ask(Verb::Peek, &pro, 1, start).await.remaining, 100, "{algorithm}");
    }
}
