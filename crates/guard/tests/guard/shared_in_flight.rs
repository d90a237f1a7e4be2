//! Limits on requests in flight over all instances.

mod keeping;
mod redis;
mod store;

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::get};
use headgate::Store;
use headgate_guard::{
    Backend, Class, Guard, InFlightBody, InFlightLimits, Policy, Reason, Rejections, Routes,
    SharedInFlight, Surface, UnknownPeers,
};
use headgate_store_memory::MemoryStore;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use crate::support::{Server, header, request};

/// Longer than any wait of these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// A limit whose leases do not end during a test.
fn per_client(limit: u64) -> SharedInFlight {
    SharedInFlight::per_client(limit).unwrap().lease(SharedInFlight::MAX_LEASE).unwrap()
}

fn policy(limits: SharedInFlight) -> Policy {
    Policy::new([Class::new("exports").unwrap().shared_in_flight(limits)]).unwrap()
}

fn instance(limits: SharedInFlight, backend: Backend) -> Guard {
    Guard::builder(policy(limits), Routes::all("exports")).backend(backend).build().unwrap()
}

/// Two instances on one store in memory.
fn two(limits: &SharedInFlight) -> [Guard; 2] {
    let store = Arc::new(MemoryStore::default());
    [(); 2].map(|()| instance(limits.clone(), Backend::in_memory(Arc::clone(&store))))
}

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::from("hello")))
}

/// Sends a request of a client on this machine. It is in flight until the response is dropped.
async fn send(guard: &Guard) -> Response<InFlightBody<Body>> {
    guard.in_flight_layer().layer(service_fn(hello)).oneshot(request()).await.unwrap()
}

async fn status(guard: &Guard) -> u16 {
    send(guard).await.status().as_u16()
}

/// Sends requests until one is admitted, and returns its response.
async fn until_admitted(guard: &Guard) -> Response<InFlightBody<Body>> {
    let admitted = async {
        loop {
            let response = send(guard).await;
            if response.status() == 200 {
                return response;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(PATIENCE, admitted).await.expect("a place is free")
}

/// Sends requests to two instances from many tasks, and asserts that there are never more than
/// `limit` at once.
async fn assert_never_more_than(limit: u32, guards: &[Guard; 2]) {
    let (running, admitted) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut clients = JoinSet::new();
    for client in 0..8 {
        let (running, admitted) = (Arc::clone(&running), Arc::clone(&admitted));
        let layer = guards[client % 2].in_flight_layer();
        clients.spawn(async move {
            let service = layer.layer(service_fn(move |_: Request<Body>| {
                let (running, admitted) = (Arc::clone(&running), Arc::clone(&admitted));
                async move {
                    assert!(running.fetch_add(1, SeqCst) < limit);
                    for _ in 0..10 {
                        tokio::task::yield_now().await;
                    }
                    running.fetch_sub(1, SeqCst);
                    admitted.fetch_add(1, SeqCst);
                    Ok::<_, Infallible>(Response::new(Body::from("done")))
                }
            }));
            for _ in 0..50 {
                let response = service.clone().oneshot(request()).await.unwrap();
                assert!([200, 429].contains(&response.status().as_u16()));
                response.into_body().collect().await.unwrap();
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert!(admitted.load(SeqCst) >= limit);
    for guard in guards {
        guard.release_in_flight().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_never_have_more_requests_in_flight_than_the_limit() {
    for limits in [per_client(3), SharedInFlight::in_all(3).unwrap()] {
        let guards = two(&limits);
        assert_never_more_than(3, &guards).await;
        let all = [send(&guards[0]).await, send(&guards[1]).await, send(&guards[0]).await];
        assert!(all.iter().all(|response| response.status() == 200), "all places are free");
        assert_eq!(status(&guards[1]).await, 429);
    }
}

#[tokio::test]
async fn a_client_and_all_clients_together_are_limited_over_all_instances() {
    let rejections = Arc::new(Rejections::default());
    let store = Arc::new(MemoryStore::default());
    let limits = per_client(1).and_in_all(2).unwrap();
    let start = async || {
        let backend = Backend::in_memory(Arc::clone(&store)).observer(Arc::clone(&rejections) as _);
        let guard = instance(limits.clone(), backend);
        let pending = get(async || Body::from_stream(futures_util::stream::pending::<Item>()));
        let router = Router::new().route("/", get(async || "hello")).route("/pending", pending);
        Server::start(router.layer(guard.in_flight_layer())).await
    };
    let servers = [start().await, start().await];
    let first = servers[0].open_from("127.0.0.1", "/pending", &[]).await;
    assert_eq!(first.0.status(), 200);

    let denied = servers[1].get_from("127.0.0.1", "/", &[]).await;
    assert_eq!(denied.status(), 429);
    assert_eq!(header(&denied, "retry-after"), "1");
    assert!(denied.body().starts_with(b"{\"code\":\"RATE_LIMITED\""));
    assert_eq!(rejections.count(Surface::Http, Reason::InFlight), 1);

    let second = servers[1].open_from("127.0.0.2", "/pending", &[]).await;
    assert_eq!(second.0.status(), 200, "another client");
    assert_eq!(servers[0].get_from("127.0.0.3", "/", &[]).await.status(), 429);
    assert_eq!(rejections.count(Surface::Http, Reason::Capacity), 1);

    // The server takes a while to notice that the connection is closed.
    drop(first);
    while servers[1].get_from("127.0.0.1", "/", &[]).await.status() != 200 {
        tokio::task::yield_now().await;
    }
}

/// An item of a stream.
type Item = Result<bytes::Bytes, Infallible>;

#[tokio::test]
async fn a_place_is_free_when_the_body_has_ended_or_was_dropped() {
    let [one, other] = two(&per_client(1));
    let mut response = send(&one).await;
    assert_eq!(status(&other).await, 429);
    while response.body_mut().frame().await.is_some() {}
    // The body is kept after its end.
    let second = until_admitted(&other).await;
    assert_eq!(status(&one).await, 429);
    drop((second, response));
    drop(until_admitted(&one).await);
}

#[tokio::test]
async fn a_place_is_free_when_the_handler_failed_panicked_or_was_cancelled() {
    let [one, other] = two(&per_client(1));
    let failing = one.in_flight_layer().layer(service_fn(async |_: Request<Body>| {
        Err::<Response<Body>, _>(std::io::Error::other("broken"))
    }));
    assert!(failing.oneshot(request()).await.is_err());
    drop(until_admitted(&other).await);

    let panicking = Router::new().fallback(get(async || -> &'static str { panic!("on purpose") }));
    let server = Server::start(panicking.layer(one.in_flight_layer())).await;
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    stream.writable().await.unwrap();
    stream.try_write(b"GET / HTTP/1.1\r\nhost: guarded\r\n\r\n").unwrap();
    // The connection is closed without a response.
    stream.readable().await.unwrap();
    drop(until_admitted(&other).await);

    let (begun, has_begun) = tokio::sync::oneshot::channel::<()>();
    let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
    let stuck = one.in_flight_layer().layer(service_fn(move |_: Request<Body>| {
        drop(begun.lock().unwrap().take());
        std::future::pending::<Result<Response<Body>, Infallible>>()
    }));
    let stuck = tokio::spawn(stuck.oneshot(request()));
    assert!(has_begun.await.is_err(), "the handler runs");
    assert_eq!(status(&other).await, 429);
    stuck.abort();
    drop(until_admitted(&other).await);
}

#[tokio::test]
async fn limits_in_this_process_and_shared_ones_both_apply() {
    let limits = per_client(2);
    let class = Class::new("exports").unwrap().shared_in_flight(limits);
    let class = class.in_flight(InFlightLimits::new(1, 10));
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let [one, other] = [(); 2].map(|()| {
        let policy = Policy::new([class.clone()]).unwrap();
        let backend = Backend::on(Arc::clone(&store));
        Guard::builder(policy, Routes::all("exports")).backend(backend).build().unwrap()
    });
    let first = send(&one).await;
    assert_eq!(status(&one).await, 429, "one in each process");
    let second = send(&other).await;
    assert_eq!((first.status().as_u16(), second.status().as_u16()), (200, 200));
    drop(first);
    // A denial by the store gives the permit of this process back.
    let third = until_admitted(&one).await;
    drop(second);
    drop(until_admitted(&other).await);
    drop(third);
}

#[tokio::test]
async fn a_replaced_policy_keeps_the_places() {
    let [one, other] = two(&per_client(1));
    let _first = send(&one).await;
    one.replace(policy(per_client(1).lease(SharedInFlight::DEFAULT_LEASE).unwrap())).unwrap();
    assert_eq!(status(&one).await, 429, "with another lease");
    one.replace(policy(per_client(2))).unwrap();
    assert_eq!(status(&other).await, 429);
    let _second = send(&one).await;
    assert_eq!(status(&one).await, 429, "with another limit");
    one.replace(policy(per_client(2)).enabled(false)).unwrap();
    assert_eq!(status(&one).await, 200, "not limited");
}

#[tokio::test]
async fn a_denial_is_rendered_as_others_are() {
    let [one, _] = two(&per_client(1));
    let _first = send(&one).await;
    let layer = one.in_flight_layer().respond_with(|denial| {
        let text = format!("{} is full: {}", denial.class(), denial.denied().reason);
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    let denied = layer.layer(service_fn(hello)).oneshot(request()).await.unwrap();
    assert_eq!(
        (denied.status().as_u16(), &denied.headers()["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    let text = denied.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, "exports is full: in_flight");
    let denied =
        one.in_flight_layer().grpc().layer(service_fn(hello)).oneshot(request()).await.unwrap();
    assert_eq!(denied.headers()["grpc-status"], "8");
}

#[tokio::test]
async fn a_limit_of_all_clients_together_needs_no_peer_address() {
    let limits = SharedInFlight::in_all(1).unwrap();
    for (limits, unknown, expected) in [
        (limits.clone(), UnknownPeers::Refuse, 200),
        (per_client(1), UnknownPeers::Refuse, 500),
        (per_client(1), UnknownPeers::CountTogether, 200),
    ] {
        let guard = Guard::builder(policy(limits), Routes::all("exports")).unknown_peers(unknown);
        let layer = guard.build().unwrap().in_flight_layer();
        let response =
            layer.layer(service_fn(hello)).oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(response.status(), expected);
    }
}
