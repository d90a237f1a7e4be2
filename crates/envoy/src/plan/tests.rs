use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use headgate::{Check, Cost, FailMode, LeasePolicy, Store, StoreFuture};
use headgate_store_memory::MemoryStore;

use super::*;
use crate::{Descriptor, Rate, Unit};

/// A store in which another client takes one unit before the second call, and before the third.
#[derive(Default)]
struct ContendedStore {
    store: MemoryStore,
    calls: AtomicUsize,
}

impl Store for ContendedStore {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if matches!(self.calls.fetch_add(1, Relaxed), 1 | 2) {
            let check = batch.checks()[0];
            let other = Check::new(check.key(), check.limit(), Cost::ONE).unwrap();
            drop(self.store.apply_now(Verb::Acquire, &other.into()));
        }
        self.store.apply(verb, batch)
    }
}

fn plan(denied_consumes: DeniedConsumes, limits: &[u32], hits: Hits) -> Plan {
    let descriptor = |_| Descriptor { entries: vec![], hits, limit_override: None };
    let descriptors = limits.iter().map(descriptor).collect();
    let request = EnvoyRequest { domain: "d", descriptors };
    let matched = |requests: &u32| {
        let rate = Rate { requests: *requests, unit: Unit::Hour, multiplier: 1 };
        let rule = Arc::new(DescriptorRule::from_override(rate).unwrap());
        Some(MatchedRule { rule, counter: "tokens".to_owned(), label: None })
    };
    let settings = Settings {
        rules: false,
        denied_consumes,
        shadow_mode: false,
        quota_mode: false,
        fail_mode: FailMode::Open,
        lease: LeasePolicy::OFF,
    };
    Plan::new(&request, limits.iter().map(matched).collect(), settings)
}

async fn statuses(plan: Plan, limiter: &BatchLimiter) -> Vec<(bool, u64)> {
    let answers = plan.ask(limiter).await.unwrap();
    plan.verdict(&answers).statuses.iter().map(|it| (it.over_limit, it.remaining)).collect()
}

#[tokio::test]
async fn a_charge_uses_up_the_remainder_despite_concurrent_requests() {
    let limiter = BatchLimiter::new(ContendedStore::default());
    let charge = plan(DeniedConsumes::All, &[1_000], Hits::Take(1_500));
    assert_eq!(statuses(charge, &limiter).await, [(true, 0)]);
    let peek = plan(DeniedConsumes::All, &[1_000], Hits::Peek);
    assert_eq!(statuses(peek, &limiter).await, [(true, 0)]);
}

#[tokio::test]
async fn the_smaller_of_two_limits_for_one_counter_decides() {
    for limits in [[100, 1], [1, 100]] {
        let limiter = BatchLimiter::new(MemoryStore::default());
        let twice = plan(DeniedConsumes::None, &limits, Hits::Take(1));
        let over_limit = statuses(twice, &limiter).await.iter().any(|(over, _)| *over);
        assert!(over_limit, "two of {limits:?}");
    }
}
