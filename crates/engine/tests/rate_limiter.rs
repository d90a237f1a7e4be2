//! `RateLimiter` on the memory store and on a store that takes time to answer.

use std::{
    cell::RefCell,
    future::{self, Future},
    sync::Arc,
    time::Duration,
};

use headgate::{
    Batch, BatchError, Decision, FailMode, Limit, ManualClock, RateLimiter, Store, StoreError,
    StoreFuture, Timestamp, Verb,
    rate_limiter::{RateLimiterError, Request},
};
use headgate_store_memory::MemoryStore;

const MINUTE: Duration = Duration::from_secs(60);

type Memory = MemoryStore<Arc<ManualClock>>;

/// A store that answers only when it is polled again.
struct Slow(Memory);

impl Store for Slow {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        StoreFuture::pending(async move {
            tokio::task::yield_now().await;
            Ok(self.0.apply_now(verb, batch))
        })
    }
}

fn memory() -> (Arc<ManualClock>, Memory) {
    let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1_700_000_000_000_000)));
    (Arc::clone(&clock), MemoryStore::builder().clock(clock).build())
}

fn bucket(limit: u64) -> Limit {
    Limit::token_bucket(limit, MINUTE).expect("a valid limit")
}

/// Advances the clock instead of sleeping, and records the duration.
fn sleep<'a>(
    clock: &'a ManualClock,
    slept: &'a RefCell<Vec<Duration>>,
) -> impl FnMut(Duration) -> future::Ready<()> + 'a {
    move |wait| {
        slept.borrow_mut().push(wait);
        clock.advance(wait);
        future::ready(())
    }
}

#[tokio::test]
async fn now_and_await_decide_alike() {
    let limits = || [bucket(10), Limit::sliding_window(15, Duration::from_secs(3600)).unwrap()];
    let (_, store) = memory();
    let sync = RateLimiter::all(limits(), store).unwrap();
    let (_, store) = memory();
    let slow = RateLimiter::all(limits(), Slow(store)).unwrap();
    for cost in [1, 4, 6, 5, 5, 1, 10, 2] {
        let expected = sync.check("u").cost(cost).now().unwrap();
        assert_eq!(slow.check("u").cost(cost).await.unwrap(), expected, "{cost}");
        let expected = sync.peek("u").cost(cost).now().unwrap();
        assert_eq!(slow.peek("u").cost(cost).await.unwrap(), expected, "{cost}");
    }
    let at = sync.peek("u").now().unwrap().at;
    assert_eq!(slow.refund("u", at).await.unwrap(), sync.refund("u", at).now().unwrap());
    assert_eq!(slow.reset("u").await.unwrap(), sync.reset("u").now().unwrap());
}

#[test]
fn every_key_has_its_own_units() {
    let limiter = RateLimiter::new(bucket(1), memory().1);
    assert!(limiter.check("a").now().unwrap().allowed);
    assert!(!limiter.check("a").now().unwrap().allowed);
    assert!(limiter.check("b").now().unwrap().allowed);
}

#[test]
fn a_denial_takes_units_from_no_limit() {
    let limits = [bucket(10), Limit::fixed_window(2, MINUTE).unwrap()];
    let limiter = RateLimiter::all(limits, memory().1).unwrap();
    assert!(limiter.check("u").cost(2).now().unwrap().allowed);
    let denied = limiter.check("u").now().unwrap();
    assert_eq!((denied.allowed, denied.decided_by), (false, 1));
    assert_eq!(limiter.limits()[denied.decided_by].capacity(), 2);
    // The bucket has 8 units left: the denial took none.
    assert!(limiter.reset("u").now().unwrap().allowed);
    assert_eq!(limiter.check("u").now().unwrap().remaining, 1);
}

#[test]
fn prefixes_separate_limiters_that_share_a_store() {
    let store = Arc::new(memory().1);
    let posts = RateLimiter::new(bucket(1), Arc::clone(&store)).with_prefix("post:");
    let votes = RateLimiter::new(bucket(1), Arc::clone(&store)).with_prefix("vote:");
    assert!(posts.check("u").now().unwrap().allowed);
    assert!(votes.check("u").now().unwrap().allowed);
    let same = RateLimiter::new(bucket(1), store).with_prefix("post:");
    assert!(!same.check("u").now().unwrap().allowed);
}

#[tokio::test]
async fn until_ready_sleeps_until_the_units_are_back() {
    let (clock, store) = memory();
    let limiter = RateLimiter::new(bucket(2), Slow(store));
    let slept = RefCell::new(Vec::new());
    let admitted = async |request: Request<'_, Slow>| {
        request.until_ready(sleep(&clock, &slept)).await.unwrap().allowed
    };
    assert!(admitted(limiter.check("u")).await);
    assert!(admitted(limiter.check("u")).await);
    assert_eq!(*slept.borrow(), [], "there was no need to wait");
    assert!(admitted(limiter.check("u")).await);
    assert_eq!(*slept.borrow(), [MINUTE / 2]);
    assert!(admitted(limiter.check("u").cost(2)).await);
    assert_eq!(slept.borrow()[1..], [MINUTE]);
}

#[tokio::test]
async fn until_ready_sleeps_again_if_others_were_faster() {
    let (clock, store) = memory();
    let limiter = RateLimiter::new(bucket(1), store);
    assert!(limiter.check("u").now().unwrap().allowed);
    let mut naps = 0;
    let decision = limiter.check("u").until_ready(|wait| {
        clock.advance(wait);
        naps += 1;
        if naps < 3 {
            assert!(limiter.check("u").now().unwrap().allowed, "another caller takes the unit");
        }
        future::ready(())
    });
    assert!(decision.await.unwrap().allowed);
    assert_eq!(naps, 3);
}

#[test]
fn a_refund_returns_nothing_of_an_earlier_window() {
    let (clock, store) = memory();
    let limiter = RateLimiter::new(Limit::fixed_window(5, MINUTE).unwrap(), store);
    let taken = limiter.check("u").now().unwrap();
    assert_eq!(limiter.refund("u", taken.at).now().unwrap().remaining, 5);
    limiter.check("u").now().unwrap();
    clock.advance(MINUTE);
    limiter.check("u").now().unwrap();
    assert_eq!(limiter.refund("u", taken.at).now().unwrap().remaining, 4);
}

#[tokio::test]
async fn jitter_only_prolongs_the_sleep() {
    let (clock, store) = memory();
    let limiter = RateLimiter::new(bucket(1), store);
    assert!(limiter.check("u").now().unwrap().allowed);
    let (slept, max) = (RefCell::new(Vec::new()), Duration::from_secs(5));
    let request = limiter.check("u").jitter(max);
    request.until_ready(sleep(&clock, &slept)).await.unwrap();
    let slept = slept.into_inner();
    assert_eq!(slept.len(), 1);
    assert!((MINUTE..MINUTE + max).contains(&slept[0]), "{slept:?}");
    // One of two million waits is none.
    assert_ne!(slept[0], MINUTE);
}

#[tokio::test]
async fn invalid_requests_are_errors_and_name_the_cause() {
    let limiter = RateLimiter::new(bucket(5), memory().1);
    let text = |answer: Result<Decision, RateLimiterError>| answer.unwrap_err().to_string();
    assert_eq!(text(limiter.check("").now()), "key must not be empty");
    assert_eq!(text(limiter.check("u").cost(0).now()), "cost must be at least 1");
    let above = "cost 6 is above the limit of 5 and can never be admitted";
    assert_eq!(text(limiter.check("u").cost(6).now()), above);
    // Otherwise it would wait forever.
    let waits = limiter.check("u").cost(6).until_ready(|_| future::ready(()));
    assert_eq!(text(waits.await), above);
}

#[tokio::test]
async fn an_error_of_the_store_ends_the_wait() {
    struct Down;
    impl Store for Down {
        fn apply<'a>(&'a self, _: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
            assert_eq!(batch.checks()[0].fail_mode(), FailMode::Closed);
            StoreFuture::ready(Err(StoreError::BreakerOpen))
        }
    }
    let limiter = RateLimiter::new(bucket(5), Down).with_fail_mode(FailMode::Closed);
    let error = limiter.check("u").until_ready(|_| future::ready(())).await.unwrap_err();
    assert!(matches!(error, RateLimiterError::Store(StoreError::BreakerOpen)), "{error}");
}

#[test]
fn limits_that_share_a_state_are_refused() {
    let all = |limits: Vec<Limit>| RateLimiter::all(limits, memory().1).map(|_| ()).unwrap_err();
    assert_eq!(all(vec![]), BatchError::Empty);
    let same = BatchError::DuplicateKey(":token_bucket:60s".to_owned());
    assert_eq!(all(vec![bucket(5), bucket(10)]), same);
    let one = RateLimiter::all([bucket(5)], memory().1).unwrap();
    assert_eq!(one.check("u").now().unwrap().remaining, 4);
}

#[test]
fn a_limiter_has_at_most_as_many_limits_as_a_batch() {
    let limits = |count: usize| {
        let window = |i| Duration::from_secs(60 + i as u64);
        (0..count).map(move |i| Limit::token_bucket(5, window(i)).expect("a valid limit"))
    };
    let most = RateLimiter::all(limits(Batch::MAX_CHECKS), memory().1).unwrap();
    assert_eq!(most.check("u").now().unwrap().remaining, 4);
    for count in [Batch::MAX_CHECKS + 1, Batch::MAX_CHECKS + 2] {
        let refused = RateLimiter::all(limits(count), memory().1).map(|_| ()).unwrap_err();
        assert_eq!(refused, BatchError::TooMany(count));
    }
}

#[test]
fn buckets_with_different_bursts_have_their_own_state() {
    let with_burst = |limit, burst| bucket(limit).with_burst(burst).unwrap();
    let limiter = RateLimiter::all([with_burst(60, 5), bucket(10)], memory().1).unwrap();
    assert!(limiter.check("u").cost(5).now().unwrap().allowed);
    let denied = limiter.check("u").now().unwrap();
    assert_eq!((denied.allowed, denied.decided_by), (false, 0));
    let same = RateLimiter::all([with_burst(60, 5), with_burst(90, 5)], memory().1)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(same, BatchError::DuplicateKey(":token_bucket:60s:5".to_owned()));
}

#[test]
fn requests_can_be_spawned() {
    fn is_send<T: Future + Send>(_: T) {}
    let limiter = RateLimiter::new(bucket(5), Slow(memory().1));
    is_send(limiter.check("u").into_future());
    is_send(limiter.check("u").until_ready(|_| future::ready(())));
}
