//! `BatchLimiter` on the memory store.

use std::{sync::Arc, time::Duration};

use headgate::{
    Batch, BatchLimiter, Check, CheckMode, Cost, Key, Limit, ManualClock, ReserveError,
    SettleError, Spent, Timestamp,
};
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
    for lease in [Duration::ZERO, Duration::from_hours(2)] {
        let refused = limiter.reserve(&batch, lease).await.unwrap_err();
        assert!(matches!(refused, ReserveError::Lease(_)), "{refused}");
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(30);

fn limiter() -> (Arc<ManualClock>, BatchLimiter) {
    let clock = Arc::new(ManualClock::new(START));
    let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
    (clock, BatchLimiter::new(store))
}

#[tokio::test]
async fn a_settlement_returns_the_rest_or_takes_what_is_missing() {
    let (clock, limiter) = limiter();
    let (requests, tokens) =
        (Limit::token_bucket(60, MINUTE).unwrap(), Limit::token_bucket(10_000, MINUTE).unwrap());
    let check = |name, limit, cost| {
        Check::new(Key::new(name).unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
    };
    let batch =
        Batch::new([check("requests", &requests, 1), check("tokens", &tokens, 4_000)]).unwrap();
    let tokens_left =
        async || limiter.peek(&Batch::from(check("tokens", &tokens, 1))).await.unwrap().remaining;

    let (less, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    assert_eq!(less.expires_at(), START + LEASE);
    let spent = [1, 1_500].map(Spent::within_the_limit);
    let settled = limiter.settle_each(&less, &spent).await.unwrap();
    assert_eq!((settled[0].settled, settled[0].returned), (1, 0));
    assert_eq!((settled[1].settled, settled[1].returned), (1_500, 2_500));
    assert_eq!(tokens_left().await, 8_500);

    let (more, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    let spent = [1, 20_000].map(Spent::within_the_limit);
    let settled = limiter.settle_each(&more, &spent).await.unwrap()[1];
    assert_eq!((settled.settled, settled.owed, settled.debt), (8_500, 11_500, 0));
    assert_eq!(tokens_left().await, 0);

    // 1,000 of a minute's 10,000 take 6 seconds.
    clock.advance(Duration::from_secs(24));
    let (over, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    let spent = [1, 5_000].map(Spent::with_overdraft);
    let settled = limiter.settle_each(&over, &spent).await.unwrap()[1];
    assert_eq!((settled.settled, settled.owed, settled.debt), (5_000, 0, 1_000));
    let denied = limiter.check(&batch).await.unwrap();
    assert_eq!((denied.allowed, denied.remaining), (false, 0));
    assert_eq!(denied.retry_after, Duration::from_secs(30), "the debt and the cost");
}

#[tokio::test]
async fn a_settlement_is_repeatable_for_the_same_cost_only() {
    let (clock, limiter) = limiter();
    let limit = Limit::fixed_window(10, MINUTE).unwrap();
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::new(5).unwrap()).unwrap();
    let batch = Batch::from(check);
    let (reservation, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    let three = Spent::within_the_limit(3);
    let first = limiter.settle(&reservation, three).await.unwrap();
    assert_eq!(limiter.settle(&reservation, three).await.unwrap(), first);
    assert_eq!(limiter.peek(&batch).await.unwrap().remaining, 7, "charged once");
    let other = limiter.settle(&reservation, Spent::within_the_limit(4)).await.unwrap_err();
    assert_eq!(other.to_string(), "the reservation was settled for 3 already");
    let used = limiter.charge(&reservation, 1, LEASE).await.unwrap_err();
    assert!(matches!(used, SettleError::SettledFor(3)), "{used}");
    let costs = limiter.settle_each(&reservation, &[three, three]).await.unwrap_err();
    assert_eq!(costs.to_string(), "expected a cost for each of 1 checks, got 2");
    let lease = limiter.charge(&reservation, 1, Duration::from_hours(2)).await.unwrap_err();
    assert!(matches!(lease, SettleError::Lease(_)), "{lease}");

    clock.advance(LEASE);
    let late = limiter.settle(&reservation, three).await.unwrap_err();
    assert!(matches!(late, SettleError::Ended), "{late}");
    assert_eq!(limiter.peek(&batch).await.unwrap().remaining, 7);
}

#[tokio::test]
async fn a_charge_renews_a_reservation_and_what_was_used_stays_used() {
    let (clock, limiter) = limiter();
    let limit = Limit::fixed_window(10, MINUTE * 60).unwrap();
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::new(2).unwrap()).unwrap();
    let batch = Batch::from(check);
    let (reservation, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    for used in [2, 4, 6] {
        clock.advance(Duration::from_secs(29));
        let usage = limiter.charge(&reservation, 2, LEASE).await.unwrap();
        assert_eq!(
            (usage.held, usage.expires_at),
            (2, START + Duration::from_secs(29 * used / 2) + LEASE)
        );
    }
    clock.advance(LEASE);
    assert_eq!(limiter.peek(&batch).await.unwrap().remaining, 4, "what it held has returned");
    let late = limiter.charge(&reservation, 2, LEASE).await.unwrap_err();
    assert!(matches!(late, SettleError::Ended), "{late}");
}

#[tokio::test]
async fn a_refund_counts_while_the_units_do() {
    let (clock, limiter) = limiter();
    let limit = Limit::fixed_window(10, MINUTE).unwrap();
    let check = Check::new(Key::new("u").unwrap(), &limit, Cost::new(5).unwrap()).unwrap();
    let taken = limiter.check(&Batch::from(check)).await.unwrap();
    let refund = Batch::from(check.taken_at(taken.at));
    assert_eq!(limiter.refund(&refund).await.unwrap().remaining, 10);
    limiter.check(&Batch::from(check)).await.unwrap();
    clock.advance(MINUTE);
    limiter.check(&Batch::from(check)).await.unwrap();
    assert_eq!(limiter.refund(&refund).await.unwrap().remaining, 5, "another window");
}

#[tokio::test]
async fn a_charge_reports_the_units_that_are_left_and_not_the_places() {
    let limiter = BatchLimiter::new(MemoryStore::default());
    let units = Limit::token_bucket(100, MINUTE).unwrap();
    let places = Limit::concurrency(3, MINUTE).unwrap();
    let check = |name, limit, cost| {
        Check::new(Key::new(name).unwrap(), limit, Cost::new(cost).unwrap()).unwrap()
    };
    let batch = Batch::new([check("units", &units, 40), check("places", &places, 1)]).unwrap();
    let (reservation, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    let usage = limiter.charge(&reservation, 10, LEASE).await.unwrap();
    assert_eq!(usage.held, 30);
}

#[tokio::test]
async fn a_charge_reports_the_fewest_units_of_the_limits_that_it_charged() {
    let limiter = BatchLimiter::new(MemoryStore::default());
    let limit = Limit::token_bucket(100, MINUTE).unwrap();
    let check =
        |name, cost| Check::new(Key::new(name).unwrap(), &limit, Cost::new(cost).unwrap()).unwrap();
    let batch = Batch::new([check("a", 1), check("b", 40), check("c", 50)]).unwrap();
    let (reservation, _) = limiter.reserve(&batch, LEASE).await.unwrap();
    let usage = limiter.charge_each(&reservation, &[0, 10, 10], LEASE).await.unwrap();
    assert_eq!(usage.held, 30);
}

#[tokio::test]
async fn a_permit_holds_its_places_until_it_is_released_or_ends() {
    let (clock, limiter) = limiter();
    let units = Limit::token_bucket(100, MINUTE).unwrap();
    let places = Limit::concurrency(2, MINUTE).unwrap();
    let brief = Limit::concurrency(2, LEASE / 2).unwrap();
    let check = |name, limit| Check::new(Key::new(name).unwrap(), limit, Cost::ONE).unwrap();
    // What is only shown is not held, and its longest lease does not count.
    let shown = check("shown", &brief).with_mode(CheckMode::Report);
    let batch = Batch::new([check("units", &units), check("places", &places), shown]).unwrap();
    let held = async || limiter.holders(check("places", &places), 10).await.unwrap().taken;

    let (permit, _) = limiter.acquire(&batch, LEASE).await.unwrap();
    assert_eq!((permit.expires_at(), held().await), (START + LEASE, 1));
    clock.advance(LEASE / 2);
    let renewed = limiter.renew(&permit, LEASE).await.unwrap();
    assert_eq!((renewed, held().await), (START + LEASE / 2 + LEASE, 1));
    assert!(limiter.release(permit).await.unwrap());
    assert_eq!(held().await, 0);

    let (late, _) = limiter.acquire(&batch, LEASE).await.unwrap();
    clock.advance(LEASE);
    assert!(!limiter.release(late).await.unwrap(), "its lease had ended");
    let holders = limiter.holders(check("units", &units), 10).await;
    assert!(holders.is_err(), "units have no holders: {holders:?}");
}
