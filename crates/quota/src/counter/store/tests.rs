use std::{num::NonZeroU32, time::Duration};

use headgate::{FailurePolicy, ManualClock, StoreFuture, Timestamp};
use headgate_store_memory::MemoryStore;

use super::*;
use crate::{Draft, QuotaPolicy};

type Memory = MemoryStore<Arc<ManualClock>>;

/// 2026-02-23T10:00:00Z.
const NOW: Timestamp = Timestamp::from_micros(1_771_840_800_000_000);

fn memory() -> (Arc<Memory>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(NOW));
    (Arc::new(MemoryStore::builder().clock(Arc::clone(&clock)).build()), clock)
}

fn policy(limit: i64) -> ActivePolicy {
    let draft = Draft {
        name: "n".to_owned().into(),
        subject_type: "user".to_owned().into(),
        subject_id: "u".to_owned().into(),
        limit: limit.into(),
        period: "daily".to_owned().into(),
        ..Draft::default()
    };
    let (id, spec) = ("quota_1".parse().unwrap(), draft.validate(None).unwrap());
    ActivePolicy::new(QuotaPolicy { id, spec, created_at: NOW, updated_at: NOW }).unwrap()
}

#[tokio::test]
async fn counters_are_calendar_windows_under_dated_keys() {
    let (store, clock) = memory();
    let counter = StoreCounter::new(Arc::clone(&store) as Arc<dyn Store>, "quota:", true);
    let policy = policy(10);
    let span = policy.span(NOW);
    assert_eq!(counter.read(&policy, &span).await.unwrap(), None);
    let raise = async |used, added| {
        counter.raise(&policy, &span, CommittedUsage { used, added }).await.unwrap()
    };
    assert_eq!(raise(7, 7).await, RaiseOutcome::Raised);
    assert_eq!(raise(7, 7).await, RaiseOutcome::Unchanged);

    let key = Key::new("quota:quota_1:2026-02-23").unwrap();
    let seen = store.acquire(key, &policy.limit_of(10).unwrap(), Cost::ONE).unwrap();
    assert_eq!(seen.remaining, 2);
    assert_eq!(NOW + seen.reset_after, span.end);

    counter.forget(&policy, &span).await.unwrap();
    assert_eq!(counter.read(&policy, &span).await.unwrap(), None);
    // Usage may exceed a limit that was lowered.
    raise(12, 1).await;
    assert_eq!(counter.read(&policy, &span).await.unwrap(), Some(12));

    clock.advance(Duration::from_hours(14));
    assert_eq!(counter.read(&policy, &policy.span(span.end)).await.unwrap(), None);
}

#[tokio::test]
async fn raises_in_any_order_show_the_maximum() {
    let (store, _) = memory();
    let counter = StoreCounter::new(store, "quota:", true);
    let policy = policy(100);
    let span = policy.span(NOW);
    let mut highest = 0;
    // `added` is right, too small or too large.
    for (used, added) in [(3, 3), (9, 2), (6, 3), (9, 9), (10, 10), (17, 1), (11, 0), (20, 30)] {
        counter.raise(&policy, &span, CommittedUsage { used, added }).await.unwrap();
        highest = highest.max(used);
        let shown = counter.read(&policy, &span).await.unwrap();
        assert_eq!(shown, Some(highest), "{used}, {added} of it new");
    }
    assert_eq!(
        counter.raise(&policy, &span, CommittedUsage::from_total(0)).await.unwrap(),
        RaiseOutcome::Unchanged
    );
}

/// An unavailable store.
struct Unavailable;

impl Store for Unavailable {
    fn apply<'a>(&'a self, _: Verb, _: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::ready(Err(StoreError::Timeout(Duration::ZERO)))
    }
}

#[tokio::test]
async fn degraded_outcomes_are_errors() {
    let policy = policy(10);
    let span = policy.span(NOW);
    for store in [Arc::new(Unavailable) as Arc<dyn Store>, Arc::new(failure_policy())] {
        let counter = StoreCounter::new(store, "quota:", true);
        assert!(counter.raise(&policy, &span, CommittedUsage::from_total(1)).await.is_err());
        assert!(counter.read(&policy, &span).await.is_err());
    }
}

/// A failure policy that admits while the store is unavailable.
fn failure_policy() -> FailurePolicy<Unavailable, Unavailable, ManualClock> {
    FailurePolicy::new(Unavailable, Unavailable, NonZeroU32::MIN, ManualClock::new(NOW))
}
