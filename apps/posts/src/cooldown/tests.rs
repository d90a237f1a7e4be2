use headgate::{Batch, ManualClock, Store, StoreFuture};
use headgate_store_memory::MemoryStore;

use super::*;
use crate::{identifier::Identifiers, post::Draft};

/// A store that fails at one verb, with one error.
struct Failing {
    store: MemoryStore<ManualClock>,
    at: fn(Verb) -> bool,
    with: StoreError,
}

impl Store for Failing {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        if (self.at)(verb) {
            return StoreFuture::ready(Err(self.with.clone()));
        }
        self.store.apply(verb, batch)
    }
}

const OUTAGE: StoreError = StoreError::Timeout(Duration::from_secs(1));

fn failing(with: StoreError, at: fn(Verb) -> bool) -> Cooldown {
    let store = MemoryStore::builder().clock(ManualClock::default()).build();
    Cooldown::new(Limiter::new(Failing { store, at, with })).unwrap()
}

fn claim(address: u8, nickname: &str) -> Claim {
    let body = format!("{nickname} from {address}");
    let draft = Draft { nickname: Some(nickname.to_owned()), body: Some(body) };
    Claim::new(&Identifiers::default(), [192, 0, 2, address].into(), &draft)
}

fn is_reserve(verb: Verb) -> bool {
    matches!(verb, Verb::Reserve { .. })
}

#[tokio::test]
async fn a_store_that_cannot_look_lets_pass_and_is_not_asked_again() {
    let cooldown = failing(OUTAGE, |verb| verb == Verb::Peek);
    for _ in 0..2 {
        let standing = cooldown.check(&claim(1, "a")).await.unwrap();
        assert_eq!(standing, Standing::Unknown);
        let turn = cooldown.reserve(claim(1, "a"), standing).await.unwrap();
        assert!(turn.reservation.is_none());
        cooldown.commit(turn).await;
    }
}

#[tokio::test]
async fn a_store_that_cannot_reserve_lets_pass() {
    let cooldown = failing(OUTAGE, is_reserve);
    let turn = cooldown.reserve(claim(1, "a"), Standing::Free).await.unwrap();
    assert!(turn.reservation.is_none());
    cooldown.cancel(turn).await;
}

#[tokio::test]
async fn a_commit_that_fails_leaves_the_post_alone() {
    let cooldown = failing(OUTAGE, |verb| matches!(verb, Verb::Commit(_)));
    let turn = cooldown.reserve(claim(1, "a"), Standing::Free).await.unwrap();
    cooldown.commit(turn).await;
    // Until the lease ends, it counts.
    assert!(matches!(cooldown.check(&claim(1, "b")).await, Err(Refusal::Limited { .. })));
}

#[tokio::test]
async fn a_crowd_is_a_denial_and_no_outage() {
    let cooldown = failing(StoreError::Contended(20), is_reserve);
    let refused = cooldown.reserve(claim(1, "a"), Standing::Free).await;
    assert!(matches!(refused, Err(Refusal::Limited { retry_after: 1 })));
}

#[tokio::test]
async fn who_was_slower_takes_nothing() {
    let cooldown = failing(OUTAGE, |_| false);
    let first = cooldown.reserve(claim(1, "a"), Standing::Free).await.unwrap();
    // The look was before the first reserved.
    let second = cooldown.reserve(claim(2, "a"), Standing::Free).await;
    assert!(matches!(second, Err(Refusal::Limited { .. })));
    assert_eq!(cooldown.check(&claim(2, "b")).await.unwrap(), Standing::Free);
    cooldown.cancel(first).await;
    assert_eq!(cooldown.check(&claim(1, "a")).await.unwrap(), Standing::Free);
}
