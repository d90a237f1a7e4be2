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
async fn a_failed_peek_admits() {
    let cooldown = failing(OUTAGE, |verb| verb == Verb::Peek);
    cooldown.check(&claim(1, "a")).await.unwrap();
}

#[tokio::test]
async fn a_failed_reserve_admits_one_post_per_process() {
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
async fn a_failed_commit_does_not_fail_the_post() {
    let cooldown = failing(OUTAGE, |verb| matches!(verb, Verb::Commit(_)));
    let turn = cooldown.reserve(claim(1, "a")).await.unwrap();
    cooldown.commit(turn).await;
    let refused = cooldown.check(&claim(1, "b")).await;
    assert!(matches!(refused, Err(Refusal::Limited { retry_after: 300 })), "{refused:?}");
}

#[tokio::test]
async fn contention_is_a_denial_not_an_outage() {
    let cooldown = failing(StoreError::Contended(20), is_reserve);
    for _ in 0..2 {
        let refused = cooldown.reserve(claim(1, "a")).await;
        assert!(matches!(refused, Err(Refusal::Limited { retry_after: 1 })), "{refused:?}");
    }
}

#[tokio::test]
async fn a_lost_race_reserves_nothing() {
    let cooldown = failing(OUTAGE, |_| false);
    let first = cooldown.reserve(claim(1, "a")).await.unwrap();
    let second = cooldown.reserve(claim(2, "a")).await;
    assert!(matches!(second, Err(Refusal::Limited { .. })));
    cooldown.check(&claim(2, "b")).await.unwrap();
    cooldown.cancel(first).await;
    cooldown.check(&claim(1, "a")).await.unwrap();
}

/// A denial by another process's reservation is reported as the store has it, and leaves nothing in
/// memory.
#[tokio::test]
async fn a_denial_of_the_shared_store_reserves_nothing_in_memory() {
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
    // The nickname of the denied post is free.
    assert!(here.reserve(claim(2, "b")).await.is_ok());
}
