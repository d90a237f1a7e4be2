//! The bound on pending reservations.

use std::time::Duration;

use headgate::{
    Algorithm, Batch, Check, Cost, Key, KeySpace, Lease, LeaseId, Limit, Outcome, Verb,
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
