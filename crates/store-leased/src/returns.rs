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

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
        time::Duration,
    };

    use headgate::{Key, Limit, Outcome, StoreFuture};

    use super::*;
    use crate::{fingerprint::Fingerprints, hand::Hand};

    const NOW: u64 = 50_000_000;
    const SUBJECT: Fingerprint = Fingerprint(1, 2);

    /// A store that takes everything back, with the number of keys of each call.
    #[derive(Default)]
    struct Taking(Mutex<Vec<usize>>);

    impl Store for Taking {
        fn apply<'a>(&'a self, _: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
            self.0.lock().unwrap().push(batch.checks().len());
            let at = Timestamp::from_micros(NOW);
            let taken =
                batch.checks().iter().map(|_| Outcome::admission(10, 1, Duration::ZERO, at));
            StoreFuture::ready(Ok(taken.collect()))
        }
    }

    fn schedule(returns: &Returns, at: u64, now: u64) {
        returns.schedule([at, at + 1_000], SUBJECT, Timestamp::from_micros(at), now);
    }

    fn units_to_return(name: &str, units: u64, until: u64) -> Return {
        let limit = Limit::token_bucket(10, Duration::from_secs(1)).unwrap();
        let hand = Hand { units, until, granted_until: Timestamp::from_micros(until) };
        Return { key: Key::new(name).unwrap().to_owned(), limit, hand }
    }

    /// Gives units back; returns the keys of each call, and the units that were taken and lost.
    async fn given_back(returns: Vec<Return>) -> (Vec<usize>, u64, u64) {
        let (store, counters) = (Taking::default(), Counters::default());
        give_back(&store, returns, NOW, &counters).await;
        let stats = counters.read();
        (store.0.into_inner().unwrap(), stats.given_back, stats.lost)
    }

    #[test]
    fn whoever_waits_for_something_to_look_at_is_told_of_the_first() {
        let returns = Returns::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut scheduled = pin!(returns.scheduled());
        assert!(scheduled.as_mut().poll(&mut context).is_pending());
        schedule(&returns, NOW, NOW);
        assert!(scheduled.as_mut().poll(&mut context).is_ready());
    }

    #[test]
    fn grants_are_looked_at_in_the_order_of_their_times() {
        let (returns, holdings) = (Returns::default(), Holdings::new(64, Fingerprints::seeded(1)));
        for at in [NOW + 1, NOW + 3, NOW + 2] {
            schedule(&returns, at, NOW);
        }
        let left = [NOW, NOW + 1, NOW + 2, NOW + 3].map(|now| {
            returns.due(&holdings, now);
            returns.lock().len()
        });
        assert_eq!(left, [3, 2, 1, 0]);
    }

    #[test]
    fn a_grant_is_dropped_if_no_one_looks_at_it_for_long_after_its_end() {
        let returns = Returns::default();
        schedule(&returns, NOW, NOW);
        let end = NOW + 1_000;
        schedule(&returns, end, end + ABANDONED_AFTER - 1);
        assert_eq!(returns.lock().len(), 2);
        schedule(&returns, end + 1, end + ABANDONED_AFTER);
        assert_eq!(returns.lock().len(), 2);
    }

    #[tokio::test]
    async fn units_are_lost_at_the_end_of_their_grant_without_a_call() {
        assert_eq!(given_back(vec![units_to_return("u", 3, NOW)]).await, (vec![], 0, 3));
        assert_eq!(given_back(vec![units_to_return("u", 3, NOW + 1)]).await, (vec![1], 3, 0));
    }

    #[tokio::test]
    async fn a_call_has_as_many_keys_as_fit() {
        let returns = (0..101).map(|n| units_to_return(&n.to_string(), 2, NOW + 1)).collect();
        assert_eq!(given_back(returns).await, (vec![100, 1], 202, 0));
        // Grants that are used up take no room in it.
        let units = |n| if n % 100 == 0 { 2 } else { 0 };
        let returns = (0..=100).map(|n| units_to_return(&n.to_string(), units(n), NOW + 1));
        assert_eq!(given_back(returns.collect()).await, (vec![2], 4, 0));
    }
}
