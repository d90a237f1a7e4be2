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
    let memory = || MemoryStore::builder().clock(ManualClock::default()).build();
    let shared = BatchLimiter::new(Failing { store: memory(), at, with });
    Cooldown::shared(shared, BatchLimiter::new(memory())).unwrap()
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
async fn a_store_that_cannot_look_refuses_nobody() {
    let cooldown = failing(OUTAGE, |verb| verb == Verb::Peek);
    cooldown.check(&claim(1, "a")).await.unwrap();
}

#[tokio::test]
async fn a_store_that_cannot_reserve_lets_one_pass_and_no_more() {
    let cooldown = failing(OUTAGE, is_reserve);
    let turn = cooldown.reserve(claim(1, "a")).await.unwrap();
    assert!(turn.shared.is_none());
    for other in [claim(1, "b"), claim(2, "a")] {
        assert!(matches!(cooldown.reserve(other).await, Err(Refusal::Limited { .. })));
    }
    cooldown.cancel(turn).await;
    let turn = cooldown.reserve(claim(1, "a")).await.unwrap();
    cooldown.commit(turn).await;
    let refused = cooldown.reserve(claim(1, "a")).await;
    assert!(matches!(refused, Err(Refusal::Limited { retry_after: 300 })), "{refused:?}");
    assert!(cooldown.reserve(claim(2, "b")).await.is_ok());
}

#[tokio::test]
async fn a_commit_that_fails_leaves_the_post_alone() {
    let cooldown = failing(OUTAGE, |verb| matches!(verb, Verb::Commit(_)));
    let turn = cooldown.reserve(claim(1, "a")).await.unwrap();
    cooldown.commit(turn).await;
    let refused = cooldown.check(&claim(1, "b")).await;
    assert!(matches!(refused, Err(Refusal::Limited { retry_after: 300 })), "{refused:?}");
}

#[tokio::test]
async fn a_crowd_is_a_denial_and_no_outage() {
    let cooldown = failing(StoreError::Contended(20), is_reserve);
    for _ in 0..2 {
        let refused = cooldown.reserve(claim(1, "a")).await;
        assert!(matches!(refused, Err(Refusal::Limited { retry_after: 1 })), "{refused:?}");
    }
}

#[tokio::test]
async fn who_was_slower_takes_nothing() {
    let cooldown = failing(OUTAGE, |_| false);
    let first = cooldown.reserve(claim(1, "a")).await.unwrap();
    let second = cooldown.reserve(claim(2, "a")).await;
    assert!(matches!(second, Err(Refusal::Limited { .. })));
    cooldown.check(&claim(2, "b")).await.unwrap();
    cooldown.cancel(first).await;
    cooldown.check(&claim(1, "a")).await.unwrap();
}

/// What another process took is told as the store tells it, and nothing is kept of it here.
#[tokio::test]
async fn what_the_shared_store_denies_is_told_and_costs_nothing_here() {
    let memory = || MemoryStore::builder().clock(ManualClock::default()).build();
    let shared = BatchLimiter::new(memory());
    let process = || Cooldown::shared(shared.clone(), BatchLimiter::new(memory())).unwrap();
    let (here, elsewhere) = (process(), process());
    let turn = elsewhere.reserve(claim(1, "a")).await.unwrap();
    elsewhere.commit(turn).await;
    for _ in 0..2 {
        let refused = here.reserve(claim(1, "b")).await;
        assert!(matches!(refused, Err(Refusal::Limited { retry_after: 300 })), "{refused:?}");
    }
    // The nickname of those who were refused is free.
    assert!(here.reserve(claim(2, "b")).await.is_ok());
}
