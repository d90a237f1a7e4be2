//! `BatchLimiter` on the memory store.

use std::{sync::Arc, time::Duration};

use headgate::{Batch, BatchLimiter, Check, Cost, Key, Limit, ManualClock, Timestamp};
use headgate_store_memory::MemoryStore;

const START: Timestamp = Timestamp::from_micros(1_772_928_000_000_000);

#[tokio::test]
async fn reservations_are_committed_cancelled_or_expire() {
    let clock = Arc::new(ManualClock::new(START));
    let limiter = BatchLimiter::new(MemoryStore::builder().clock(Arc::clone(&clock)).build());
    let cooldown = Limit::cooldown(Duration::from_secs(300)).unwrap();
    let check = |name| Check::new(Key::new(name).unwrap(), &cooldown, Cost::ONE).unwrap();
    let batch = Batch::new([check("ip"), check("nick")]).unwrap();
    let lease = Duration::from_secs(10);
    let reserve = async || limiter.reserve(&batch, lease).await.map(|(reservation, _)| reservation);

    let first = reserve().await.unwrap();
    assert!(reserve().await.is_err(), "taken while the reservation is pending");
    assert!(limiter.cancel(first).await.unwrap());
    let second = reserve().await.unwrap();
    assert!(limiter.commit(second).await.unwrap());
    let denied = limiter.peek(&batch).await.unwrap();
    assert!(!denied.allowed);
    limiter.reset(&batch).await.unwrap();

    let expired = reserve().await.unwrap();
    clock.advance(lease);
    assert!(limiter.check(&batch).await.unwrap().allowed, "the reservation expired");
    assert!(!limiter.commit(expired).await.unwrap());
    assert!(limiter.reserve(&batch, Duration::ZERO).await.is_err());
}
