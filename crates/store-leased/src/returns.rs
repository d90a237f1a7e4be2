//! Giving back what is not used.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use headgate::{Batch, Check, CheckMode, Cost, KeySpace, Store, Timestamp, Verb};
use tokio::sync::Notify;

use crate::{
    fingerprint::Fingerprint,
    holding::{Holding, Return},
    holdings::Holdings,
    stats::{Counters, count},
};

/// The times at which grants are looked at, and given back if units are left.
///
/// They are bounded even if no one looks: grants that ended [`ABANDONED_AFTER`] ago are dropped as
/// new ones arrive.
#[derive(Debug, Default)]
pub(crate) struct Returns {
    due: Mutex<BinaryHeap<Reverse<Due>>>,
    /// Notified when there is something to look at.
    scheduled: Notify,
}

#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: u64,
    /// End of the grant.
    until: u64,
    subject: Fingerprint,
    granted_until: Timestamp,
}

/// Time after the end of a grant for which someone may still look at it, in microseconds.
const ABANDONED_AFTER: u64 = 10_000_000;

/// Keys in one call: few enough for a transaction of DynamoDB.
const MAX_KEYS: usize = 100;

impl Returns {
    /// Looks at the grant, which ends at `until`, at `at` by the steady clock.
    pub(crate) fn schedule(
        &self,
        [at, until]: [u64; 2],
        subject: Fingerprint,
        granted_until: Timestamp,
        now: u64,
    ) {
        let mut due = self.lock();
        for _ in 0..2 {
            if due.peek().is_some_and(|Reverse(next)| next.until + ABANDONED_AFTER <= now) {
                due.pop();
            }
        }
        due.push(Reverse(Due { at, until, subject, granted_until }));
        if due.len() == 1 {
            self.scheduled.notify_one();
        }
    }

    /// Waits until there is something to look at.
    pub(crate) async fn scheduled(&self) {
        while self.lock().is_empty() {
            self.scheduled.notified().await;
        }
    }

    /// Takes out what is left of the grants that are due.
    pub(crate) fn due(&self, holdings: &Holdings, now: u64) -> Vec<Return> {
        let mut returns = holdings.take_outdated();
        let mut due = self.lock();
        while let Some(Reverse(next)) = due.peek().filter(|Reverse(next)| next.at <= now) {
            let end = |holding: &mut Holding| holding.end(next.granted_until);
            returns.extend(holdings.with(next.subject, end).flatten());
            due.pop();
        }
        returns
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Reverse<Due>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut batch: Vec<Return> = Vec::with_capacity(MAX_KEYS.min(left.len()));
        let mut again = Vec::new();
        // A batch has no key twice.
        let mut keys = HashSet::new();
        while batch.len() < MAX_KEYS
            && let Some(next) = left.pop()
        {
            if keys.insert(next.key.clone()) { batch.push(next) } else { again.push(next) }
        }
        left.append(&mut again);
        give_back_batch(store, &batch, counters).await;
    }
}

async fn give_back_batch(store: &impl Store, returns: &[Return], counters: &Counters) {
    let spaces: Vec<KeySpace<'_>> = returns.iter().map(|it| it.key.space()).collect();
    let units: u64 = returns.iter().map(|it| it.hand.units).sum();
    let checks = returns.iter().zip(&spaces).filter_map(|(it, space)| {
        let cost = Cost::new(it.hand.units).ok()?;
        let check = Check::new(it.key.as_key(space), &it.limit, cost).ok()?;
        // One that comes too late does not keep the others.
        let check = check.with_mode(CheckMode::Independent);
        Some(check.from_grant_until(it.hand.granted_until))
    });
    let mut accepted = 0;
    if let Ok(batch) = Batch::new(checks) {
        count(&counters.return_calls, 1);
        // It is sent once: units that come back twice would be another instance's.
        let answer = store.apply(Verb::GiveBack, &batch).await.unwrap_or_default();
        let given = batch.checks().iter().zip(&answer).filter(|(_, outcome)| outcome.allowed);
        accepted = given.map(|(check, _)| check.cost().get()).sum();
    }
    count(&counters.given_back, accepted);
    count(&counters.lost, units - accepted);
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
