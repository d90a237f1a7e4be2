//! The layer that reserves before the handler and settles afterwards.

use std::{
    convert::Infallible,
    future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::body::Body;
use headgate::{Batch, BatchLimiter, Check, Cost, Key, KeySpace, Limit, Spent};
use headgate_guard::{
    Backend, Estimate, OnDrop, RequestHead, ReserveLayer, ReservedUnits, SpentEach,
};
use headgate_store_memory::MemoryStore;
use http::{Request, Response};
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

const LIMIT: u64 = 100;

fn limit() -> Limit {
    Limit::fixed_window(LIMIT, Duration::from_secs(8_640_000)).unwrap()
}

/// A backend, and a way to look at what is left of a tenant.
struct Fixture {
    store: Arc<MemoryStore>,
    backend: Backend,
}

type Estimator = fn(&RequestHead<'_>) -> Option<Estimate>;

impl Fixture {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::default());
        Self { backend: Backend::in_memory(Arc::clone(&store)), store }
    }

    /// Expects `x-estimate` tokens of the tenant, and one request.
    fn layer(&self, on_drop: OnDrop) -> ReserveLayer<Estimator> {
        let estimate: Estimator = |request| {
            let tokens = request.headers.get("x-estimate")?.to_str().ok()?.parse().ok()?;
            Some(Estimate::new("tokens", &limit(), tokens).and("requests", &limit(), 1))
        };
        ReserveLayer::new("llm", &self.backend, on_drop, estimate).unwrap()
    }

    async fn left(&self, key: &str) -> u64 {
        let (limit, space) = (limit(), KeySpace::new("guard:llm:reserved:", ""));
        let key = Key::new(key).unwrap().within(&space);
        let batch = Batch::from(Check::new(key, &limit, Cost::ONE).unwrap());
        BatchLimiter::new(Arc::clone(&self.store)).peek(&batch).await.unwrap().remaining
    }

    /// Waits until this much is left: reservations end in tasks of their own.
    async fn until_left(&self, key: &str, expected: u64) {
        let reached = async {
            while self.left(key).await != expected {
                tokio::task::yield_now().await;
            }
        };
        let reached = tokio::time::timeout(Duration::from_secs(30), reached).await;
        assert!(reached.is_ok(), "{} of {key} are left, not {expected}", self.left(key).await);
    }
}

fn request(estimate: u64) -> Request<Body> {
    Request::builder().header("x-estimate", estimate).body(Body::empty()).unwrap()
}

/// A response that reports this.
fn reporting<T: Clone + Send + Sync + 'static>(spent: T) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(spent);
    response
}

#[tokio::test]
async fn a_request_is_settled_for_what_its_handler_reports() {
    let fixture = Fixture::new();
    let layer = fixture.layer(OnDrop::Cancel);
    let one = layer.layer(service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(reporting(Spent::with_overdraft(20)))
    }));
    assert_eq!(one.oneshot(request(50)).await.unwrap().status(), 200);
    assert_eq!((fixture.left("tokens").await, fixture.left("requests").await), (80, 80));
    let each = layer.layer(service_fn(async |_: Request<Body>| {
        let spent = vec![Spent::within_the_limit(10), Spent::within_the_limit(1)];
        Ok::<_, Infallible>(reporting(SpentEach(spent)))
    }));
    assert_eq!(each.oneshot(request(50)).await.unwrap().status(), 200);
    assert_eq!((fixture.left("tokens").await, fixture.left("requests").await), (70, 79));
    // Without a report, the estimate counts.
    let silent = layer.layer(service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    assert_eq!(silent.clone().oneshot(request(50)).await.unwrap().status(), 200);
    assert_eq!((fixture.left("tokens").await, fixture.left("requests").await), (20, 78));
    let denied = silent.clone().oneshot(request(50)).await.unwrap();
    assert_eq!(denied.status(), 429);
    assert!(denied.headers().contains_key("retry-after"));
    assert_eq!((fixture.left("tokens").await, fixture.left("requests").await), (20, 78));
    // A request that is not estimated is not limited.
    let other = Request::new(Body::empty());
    assert_eq!(silent.oneshot(other).await.unwrap().status(), 200);
    assert_eq!(fixture.left("requests").await, 78);
}

#[tokio::test]
async fn a_request_that_ends_without_an_answer_is_subject_to_the_policy() {
    for (on_drop, left) in [(OnDrop::Cancel, LIMIT), (OnDrop::Keep, LIMIT - 50)] {
        let fixture = Fixture::new();
        let layer = fixture.layer(on_drop);
        let stuck = layer.layer(service_fn(async |_: Request<Body>| {
            future::pending::<()>().await;
            Ok::<_, Infallible>(Response::new(Body::empty()))
        }));
        let waiting = tokio::spawn(stuck.oneshot(request(50)));
        fixture.until_left("tokens", LIMIT - 50).await;
        waiting.abort();
        fixture.until_left("tokens", left).await;

        let fixture = Fixture::new();
        let failing = fixture.layer(on_drop).layer(service_fn(async |_: Request<Body>| {
            Err::<Response<Body>, _>(std::io::Error::other("broken"))
        }));
        assert!(failing.oneshot(request(50)).await.is_err());
        fixture.until_left("tokens", left).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_streams_are_metered_and_never_pass_the_limit() {
    let fixture = Fixture::new();
    let estimate = |_: &RequestHead<'_>| Some(Estimate::new("tokens", &limit(), 1));
    let layer = ReserveLayer::new("llm", &fixture.backend, OnDrop::Cancel, estimate).unwrap();
    let produced = Arc::new(AtomicU64::new(0));
    let mut streams = JoinSet::new();
    for _ in 0..8 {
        let (layer, produced) = (layer.clone(), Arc::clone(&produced));
        streams.spawn(async move {
            let service = layer.layer(service_fn(async |request: Request<Body>| {
                let units = request.extensions().get::<ReservedUnits>().cloned();
                Ok::<_, Infallible>(reporting(units.unwrap()))
            }));
            let response = service.oneshot(Request::new(Body::empty())).await.unwrap();
            // The body of the response, which goes on after the handler has returned.
            let Some(units) = response.extensions().get::<ReservedUnits>() else { return };
            loop {
                produced.fetch_add(1, SeqCst);
                if units.charge(1).await.unwrap().held == 0 {
                    return;
                }
            }
        });
    }
    streams.join_all().await;
    assert_eq!(produced.load(SeqCst), LIMIT);
    assert_eq!(fixture.left("tokens").await, 0);
}

#[tokio::test]
async fn estimates_above_the_limit_and_invalid_keys_are_reserved_all_the_same() {
    let fixture = Fixture::new();
    let estimate = |_: &RequestHead<'_>| {
        Some(Estimate::new("{x}", &limit(), 1).and("tokens", &limit(), 1_000))
    };
    let layer = ReserveLayer::new("llm", &fixture.backend, OnDrop::Cancel, estimate).unwrap();
    let service = layer.layer(service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(reporting(Spent::within_the_limit(7)))
    }));
    let response = service.clone().oneshot(Request::new(Body::empty())).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(fixture.left("tokens").await, LIMIT - 7);
}
