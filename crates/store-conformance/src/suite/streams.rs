//! Work that spends units while it runs.

use std::time::Duration;

use futures_util::future::join_all;
use headgate::{
    Algorithm, Batch, Check, Cost, Key, KeySpace, LeaseId, Limit, Outcome, Spent, Standing, Verb,
    algorithm::Period,
};

use crate::{Fixture, fixture::next_scenario};

const LIMIT: u64 = 50;
const STREAMS: u64 = 8;
const LEASE: Duration = Duration::from_mins(10);

/// Runs several streams of one subject at once, each of which produces a chunk, charges it, and
/// stops when its reservation holds nothing more. Together they use up the limit, and exceed it by
/// less than one chunk: with chunks of one unit, by none. The same holds if they send totals, and
/// repeat all of them.
pub async fn streams_stop_at_the_limit(fixture: &dyn Fixture) {
    for algorithm in Algorithm::RATES {
        let limit = match algorithm {
            Algorithm::Calendar => Limit::calendar(LIMIT, Period::Month, "UTC"),
            algorithm => Limit::new(algorithm, LIMIT, Duration::from_hours(24 * 366)),
        };
        let limit = limit.unwrap_or_else(|error| panic!("{error}"));
        for (chunk, reports) in [
            (1, Reports::Chunks),
            (3, Reports::Chunks),
            (7, Reports::Chunks),
            (1, Reports::RepeatedTotals),
            (7, Reports::RepeatedTotals),
        ] {
            let name = format!("{}streams:{}", fixture.key_prefix(), next_scenario());
            let space = KeySpace::new(&name, "");
            let key = Key::new("tenant").unwrap_or_else(|error| panic!("{error}")).within(&space);
            let cost = Cost::new(chunk).unwrap_or_else(|error| panic!("{error}"));
            let check = Check::new(key, &limit, cost).unwrap_or_else(|error| panic!("{error}"));
            let streams = (0..STREAMS).map(|id| stream(fixture, check, LeaseId::from(id), reports));
            let used: u64 = join_all(streams).await.into_iter().sum();
            assert!((LIMIT..LIMIT + chunk).contains(&used), "{algorithm}, {chunk}: {used}");
        }
    }
}

/// How a stream reports what it has produced.
#[derive(Clone, Copy)]
enum Reports {
    Chunks,
    /// Twice at once, and with the total before.
    RepeatedTotals,
}

/// Returns the units that a stream produced.
async fn stream(fixture: &dyn Fixture, check: Check<'_>, id: LeaseId, reports: Reports) -> u64 {
    let apply = async |verb, check: Check<'_>| {
        let answer = fixture.store().apply(verb, &Batch::from(check)).await;
        answer.unwrap_or_else(|error| panic!("{error}"))[0]
    };
    if !apply(Verb::Reserve { id, lease: LEASE }, check).await.allowed {
        return 0;
    }
    let chunk = check.cost().get();
    let mut produced = 0;
    loop {
        produced += chunk;
        let verb = Verb::Use { id, lease: LEASE };
        let totals = [produced - chunk, produced, produced].map(Spent::in_total);
        let spent = match reports {
            Reports::Chunks => &[Spent::with_overdraft(chunk)][..],
            Reports::RepeatedTotals => &totals,
        };
        let uses = join_all(spent.iter().map(|spent| apply(verb, check.spent(*spent)))).await;
        let outcome = uses[uses.len() - 1];
        if let [_, once, again] = &uses[..] {
            assert_eq!(held(once), held(again), "the same total is charged once");
        }
        match outcome.reservation() {
            Some(Standing::Pending { held: 0, .. }) => break,
            Some(Standing::Pending { .. }) => {}
            other => panic!("{other:?} after {produced}"),
        }
    }
    let spent = check.spent(Spent::within_the_limit(produced));
    for _ in 0..2 {
        let settled = apply(Verb::Commit(id), spent).await;
        let as_spent = matches!(
            settled.reservation(),
            Some(Standing::Settled { spent, returned: 0 } | Standing::InDebt { spent, .. })
                if spent == produced
        );
        assert!(settled.allowed && as_spent, "{settled:?}");
    }
    produced
}

fn held(outcome: &Outcome) -> Option<u64> {
    match outcome.reservation() {
        Some(Standing::Pending { held, .. }) => Some(held),
        _ => None,
    }
}
