//! Concurrent calls.

use std::time::Duration;

use futures_util::future::join_all;
use headgate::{
    Algorithm, Batch, Check, Cost, Key, KeySpace, Limit, Store, Verb, algorithm::Period,
};

use crate::fixture::next_scenario;

const LIMIT: u64 = 50;
const CALLS: usize = 400;

/// Makes 400 concurrent calls under a limit of 50, spread over several clients of one store, for
/// every algorithm: exactly 50 are admitted.
///
/// `fire` makes every client fire its shot at the same time, and returns the number of admitted
/// calls.
pub fn never_admits_more_than_the_limit(clients: usize, fire: impl Fn(Shot) -> u64) {
    for algorithm in Algorithm::ALL {
        let shot = Shot { algorithm, scenario: next_scenario(), calls: CALLS / clients };
        assert_eq!(fire(shot), LIMIT, "{algorithm}");
    }
}

/// One client's share of the calls.
#[derive(Clone, Copy, Debug)]
pub struct Shot {
    algorithm: Algorithm,
    scenario: u64,
    calls: usize,
}

impl Shot {
    /// Makes all calls to `store` at once; returns how many were admitted.
    pub async fn fire(self, store: &dyn Store, prefix: &str) -> u64 {
        let limit = self.limit();
        let name = format!("{prefix}concurrency:{}", self.scenario);
        let key = Key::new("everybody").unwrap_or_else(|error| panic!("{error}"));
        let space = KeySpace::new(&name, "");
        let check = Check::new(key.within(&space), &limit, Cost::ONE);
        let batch = Batch::from(check.unwrap_or_else(|error| panic!("{error}")));
        let calls = (0..self.calls).map(|_| store.apply(Verb::Acquire, &batch));
        let answers = join_all(calls).await;
        let admitted = answers.into_iter().filter(|answer| match answer {
            Ok(outcomes) => outcomes[0].allowed,
            Err(error) => panic!("{}: {error}", self.algorithm),
        });
        admitted.count() as u64
    }

    /// So slow that no unit returns while the test runs.
    fn limit(self) -> Limit {
        match self.algorithm {
            Algorithm::Calendar => Limit::calendar(LIMIT, Period::Month, "UTC"),
            algorithm => Limit::new(algorithm, LIMIT, Duration::from_hours(24 * 366)),
        }
        .unwrap_or_else(|error| panic!("{error}"))
    }
}
