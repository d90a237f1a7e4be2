use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use headgate::{Check, Cost, FailMode, Store, StoreFuture};
use headgate_store_memory::MemoryStore;

use super::*;
use crate::envoy::{question::Descriptor, rule::Rate, unit::Unit};

/// A store in which somebody else takes one unit before the second call, and before the third.
#[derive(Default)]
struct Contended {
    store: MemoryStore,
    calls: AtomicUsize,
}

impl Store for Contended {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if matches!(self.calls.fetch_add(1, Relaxed), 1 | 2) {
            let check = batch.checks()[0];
            let other = Check::new(check.key(), check.limit(), Cost::ONE).unwrap();
            drop(self.store.apply_now(Verb::Acquire, &other.into()));
        }
        self.store.apply(verb, batch)
    }
}

fn plan(denied: DeniedConsumes, limits: &[u32], hits: Hits) -> Plan {
    let descriptors = limits.iter().map(|_| Descriptor { entries: vec![], hits, instead: None });
    let question = Question { domain: "d", descriptors: descriptors.collect() };
    let matched = |requests: &u32| {
        let rate = Rate { requests: *requests, unit: Unit::Hour, times: 1 };
        let rule = Arc::new(Rule::overriding(rate).unwrap());
        Some(Matched { rule, subject: "tokens".to_owned(), label: None })
    };
    let terms = Terms { denied, fail_mode: FailMode::Open, quota: false };
    Plan::new(&question, limits.iter().map(matched).collect(), terms)
}

async fn statuses(plan: Plan, limiter: &Limiter) -> Vec<(bool, u64)> {
    let answers = plan.ask(limiter).await.unwrap();
    plan.verdict(&answers).statuses.iter().map(|it| (it.over, it.remaining)).collect()
}

#[tokio::test]
async fn a_charge_uses_up_what_is_left_although_others_take_some_of_it() {
    let limiter = Limiter::new(Contended::default());
    let charge = plan(DeniedConsumes::All, &[1_000], Hits::Take(1_500));
    assert_eq!(statuses(charge, &limiter).await, [(true, 0)]);
    let look = plan(DeniedConsumes::All, &[1_000], Hits::Look);
    assert_eq!(statuses(look, &limiter).await, [(true, 0)]);
}

#[tokio::test]
async fn of_two_limits_for_one_counter_the_smaller_decides() {
    for limits in [[100, 1], [1, 100]] {
        let limiter = Limiter::new(MemoryStore::default());
        let twice = plan(DeniedConsumes::None, &limits, Hits::Take(1));
        let over = statuses(twice, &limiter).await.iter().any(|(over, _)| *over);
        assert!(over, "two of {limits:?}");
    }
}
