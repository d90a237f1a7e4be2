//! Leases: renewed while a request is in flight, and what happens when that fails.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{Batch, BatchLimiter, Check, Cost, FailMode, Key, Limit, Store};
use headgate_guard::{Backend, Guard, Reason, Rejections, SharedInFlight, Surface};
use http::Response;
use http_body_util::BodyExt;

use super::{instance, per_client, send, status, store::Observed, until_admitted};

const LEASE: Duration = Duration::from_secs(30);

/// A store, two instances on it, and their observer.
struct Fixture {
    store: Arc<Observed>,
    guards: [Guard; 2],
    rejections: Arc<Rejections>,
}

impl Fixture {
    fn new(limit: u64, backend: impl Fn(Arc<dyn Store>) -> Backend) -> Self {
        let (store, rejections) = (Observed::new(), Arc::new(Rejections::default()));
        let limits = per_client(limit).lease(LEASE).unwrap();
        let guards = [(); 2].map(|()| {
            let backend = backend(Arc::clone(&store) as _).observer(Arc::clone(&rejections) as _);
            instance(limits.clone(), backend)
        });
        Self { store, guards, rejections }
    }
}

/// Ends all leases of the client.
async fn reset(store: &Arc<Observed>) {
    let limit = Limit::concurrency(1, SharedInFlight::MAX_LEASE).unwrap();
    let key = Key::new("guard:exports:open:127.0.0.1").unwrap();
    let check = Check::new(key, &limit, Cost::ONE).unwrap();
    BatchLimiter::new(Arc::clone(store)).reset(&Batch::from(check)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_short_request_costs_two_calls() {
    let Fixture { store, guards: [one, _], .. } = Fixture::new(1, Backend::on);
    send(&one).await.into_body().collect().await.unwrap();
    one.release_in_flight().await;
    assert_eq!(store.verbs(), ["acquire", "release"]);
    store.advance(LEASE * 3).await;
    assert_eq!(store.verbs(), ["acquire", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_every_third_of_it_while_the_request_is_in_flight() {
    let Fixture { store, guards: [one, other], rejections } = Fixture::new(1, Backend::on);
    let mut response = send(&one).await;
    for _ in 0..30 {
        store.advance(LEASE / 10).await;
        assert_eq!(status(&other).await, 429);
    }
    let renewals = store.verbs().iter().filter(|verb| **verb == "renew").count();
    assert!((7..=9).contains(&renewals), "{renewals}");
    while response.body_mut().frame().await.is_some() {}
    drop(until_admitted(&other).await);
    assert_eq!(rejections.places_lost_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_half_a_lease_loses_no_place() {
    let Fixture { store, guards: [one, other], rejections } = Fixture::new(1, Backend::on);
    let _response = send(&one).await;
    for _ in 0..3 {
        store.advance(LEASE / 4).await;
        store.set_down(true);
        store.advance(LEASE / 4).await;
        store.advance(LEASE / 5).await;
        store.set_down(false);
        store.advance(LEASE / 4).await;
    }
    assert_eq!(status(&other).await, 429);
    assert_eq!(rejections.places_lost_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lost_place_is_reported_once_and_taken_again_when_there_is_one() {
    let Fixture { store, guards: [one, other], rejections } = Fixture::new(1, Backend::on);
    let response = send(&one).await;
    reset(&store).await;
    let second = send(&other).await;
    assert_eq!(second.status(), 200, "the place was lost");
    for _ in 0..10 {
        store.advance(LEASE / 3).await;
    }
    assert_eq!(rejections.places_lost_count(), 1);
    let body = response.into_body();
    drop(second);
    store.advance(LEASE / 2).await;
    assert_eq!(status(&other).await, 429, "the first request has a place again");
    assert_eq!(body.collect().await.unwrap().to_bytes(), "hello", "it went on");
    drop(until_admitted(&other).await);
}

#[tokio::test(start_paused = true)]
async fn the_places_of_an_instance_that_stands_still_are_free_when_its_leases_end() {
    let Fixture { store, guards: [one, other], rejections } = Fixture::new(1, Backend::on);
    let response = send(&one).await;
    // The time of the store passes, and the instance does not run.
    store.clock.advance(LEASE.saturating_sub(Duration::from_micros(1)));
    assert_eq!(status(&other).await, 429);
    store.clock.advance(Duration::from_micros(1));
    let second = send(&other).await;
    assert_eq!(second.status(), 200);
    tokio::time::advance(LEASE).await;
    store.advance(LEASE / 3).await;
    assert_eq!(rejections.places_lost_count(), 1);
    drop(response);
    one.release_in_flight().await;
    assert_eq!(status(&one).await, 429, "a lost place is not released twice");
    drop(second);
}

#[tokio::test]
async fn a_request_that_is_gone_before_the_store_has_answered_leaves_no_place() {
    let Fixture { store, guards: [one, other], .. } = Fixture::new(1, Backend::on);
    store.hold_up(true);
    let waiting = tokio::spawn({
        let one = one.clone();
        async move { send(&one).await }
    });
    while store.verbs().is_empty() {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    store.hold_up(false);
    one.release_in_flight().await;
    assert_eq!(store.verbs(), ["acquire", "release"]);
    assert_eq!(status(&other).await, 200);
}

#[tokio::test]
async fn a_store_that_hangs_does_not_delay_the_end_of_a_response() {
    let Fixture { store, guards: [one, _], .. } = Fixture::new(100, Backend::on);
    let responses = [send(&one).await, send(&one).await];
    store.hold_up(true);
    for response in responses {
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    }
    store.hold_up(false);
    one.release_in_flight().await;
    assert_eq!(store.verbs(), ["acquire", "acquire", "release", "release"]);
}

#[tokio::test]
async fn a_shutdown_releases_what_is_held() {
    let Fixture { store, guards: [one, other], .. } = Fixture::new(2, Backend::on);
    let (first, second) = (send(&one).await, send(&one).await);
    one.release_in_flight().await;
    let all = [send(&other).await, send(&other).await];
    assert!(all.iter().all(|response| response.status() == 200));
    drop((first, second));
    one.release_in_flight().await;
    assert_eq!(status(&other).await, 429, "nothing is released twice");
    assert_eq!(store.verbs().iter().filter(|verb| **verb == "release").count(), 2);
}

#[test]
fn a_guard_outlives_the_runtime_that_its_requests_ran_in() {
    let Fixture { guards: [one, other], store, .. } = Fixture::new(2, Backend::on);
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = runtime().block_on(async { (send(&one).await, send(&one).await) });
    // Without a runtime, the place is free when its lease ends.
    drop(first);
    runtime().block_on(async {
        drop(second);
        one.release_in_flight().await;
        let _third = send(&other).await;
        assert_eq!(status(&other).await, 429, "one of two was released");
        store.clock.advance(LEASE);
        assert_eq!(status(&other).await, 200);
    });
}

#[tokio::test]
async fn without_a_failure_policy_only_fail_mode_open_admits_while_the_store_is_down() {
    for fail_mode in FailMode::ALL {
        let Fixture { store, guards: [one, _], rejections } =
            Fixture::new(1, |store| Backend::on(store).fail_mode(fail_mode));
        store.set_down(true);
        let admitted = fail_mode == FailMode::Open;
        let expected = if admitted { 200 } else { 429 };
        assert_eq!(status(&one).await, expected, "{fail_mode}");
        let denied = rejections.count(Surface::Http, Reason::Global);
        assert_eq!(denied, u64::from(!admitted), "{fail_mode}");
    }
}

#[tokio::test]
async fn while_the_store_is_down_the_failure_mode_decides() {
    const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();
    // Of a limit of 4, for each of two instances.
    for (fail_mode, admitted) in
        [(FailMode::Open, 6), (FailMode::Closed, 0), (FailMode::Capped, 4), (FailMode::Local, 2)]
    {
        let Fixture { store, guards, .. } =
            Fixture::new(4, |store| Backend::shared(store, TWO).fail_mode(fail_mode));
        store.set_down(true);
        for guard in &guards {
            let mut responses = Vec::new();
            for _ in 0..6 {
                responses.push(send(guard).await);
            }
            let is_admitted = |response: &&Response<_>| response.status() == 200;
            assert_eq!(responses.iter().filter(is_admitted).count(), admitted, "{fail_mode}");
            drop(responses);
            guard.release_in_flight().await;
            let again = if admitted > 0 { 200 } else { 429 };
            assert_eq!(status(guard).await, again, "{fail_mode}: released here");
        }
    }
}
