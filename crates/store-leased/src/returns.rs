//! Giving back what is not used.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    sync::{Mutex, PoisonError},
};

use headgate::{Batch, Check, CheckMode, Cost, KeySpace, Store, Timestamp, Verb};

use crate::{
    holding::{Holding, Return},
    holdings::{Fingerprint, Holdings},
    stats::{Counters, count},
};

/// The times at which grants are looked at, and given back if units are left.
#[derive(Debug, Default)]
pub(crate) struct Returns(Mutex<BinaryHeap<Reverse<Due>>>);

#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: u64,
    subject: Fingerprint,
    granted_until: Timestamp,
}

/// Keys in one call: few enough for a transaction of DynamoDB.
const MAX_KEYS: usize = 100;

impl Returns {
    /// Looks at the grant at `at`, by the steady clock.
    pub(crate) fn schedule(&self, at: u64, subject: Fingerprint, granted_until: Timestamp) {
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        due.push(Reverse(Due { at, subject, granted_until }));
    }

    /// Takes out what is left of the grants that are due.
    pub(crate) fn due(&self, holdings: &Holdings, now: u64) -> Vec<Return> {
        let mut due = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut returns = Vec::new();
        while let Some(Reverse(next)) = due.peek().filter(|Reverse(next)| next.at <= now) {
            let end = |holding: &mut Holding| holding.end(next.granted_until);
            returns.extend(holdings.with(next.subject, end).flatten());
            due.pop();
        }
        returns
    }
}

/// Gives units back to the store. Those of grants that have ended are lost.
pub(crate) async fn give_back(
    store: &impl Store,
    returns: Vec<Return>,
    now: u64,
    counters: &Counters,
) {
    let (mut left, late): (Vec<Return>, Vec<Return>) =
        returns.into_iter().partition(|it| it.hand.until > now);
    count(&counters.lost, late.iter().map(|it| it.hand.units).sum());
    left.retain(|it| it.hand.units > 0);
    while !left.is_empty() {
        // A batch has no key twice.
        let mut keys = HashSet::new();
        let (batch, rest): (Vec<Return>, Vec<Return>) =
            left.into_iter().partition(|it| keys.len() < MAX_KEYS && keys.insert(it.key.clone()));
        give_back_batch(store, &batch, counters).await;
        left = rest;
    }
}

async fn give_back_batch(store: &impl Store, returns: &[Return], counters: &Counters) {
    let spaces: Vec<KeySpace<'_>> = returns.iter().map(|it| it.key.space()).collect();
    let checks = returns.iter().zip(&spaces).filter_map(|(it, space)| {
        let cost = Cost::new(it.hand.units).ok()?;
        let check = Check::new(it.key.as_key(space), &it.limit, cost).ok()?;
        // One that comes too late does not keep the others.
        let check = check.with_mode(CheckMode::Independent);
        Some(check.from_grant_until(it.hand.granted_until))
    });
    let Ok(batch) = Batch::new(checks) else { return };
    let answer = store.apply(Verb::GiveBack, &batch).await;
    for (i, check) in batch.checks().iter().enumerate() {
        let accepted = answer.as_ref().is_ok_and(|outcomes| outcomes[i].allowed);
        let counter = if accepted { &counters.given_back } else { &counters.lost };
        count(counter, check.cost().get());
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.granted_until).cmp(&(other.at, other.granted_until))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
