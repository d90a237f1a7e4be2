use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, body::Body, routing::get};
use bytes::Bytes;
use headgate_guard::{
    Backend, Busy, Class, Guard, InFlight, InFlightLimits, Policy, Reason, Rejections, Routes,
    Surface,
};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;

use crate::support::{Server, header, hello};

/// A body that never ends.
struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

fn guard(limits: InFlightLimits, backend: Backend) -> Guard {
    let policy = Policy::new([Class::new("public").unwrap().in_flight(limits)]).unwrap();
    Guard::builder(policy, Routes::all("public")).backend(backend).build().unwrap()
}

fn router(guard: &Guard) -> Router {
    Router::new()
        .route("/", get(async || "hello"))
        .route("/endless", get(async || Body::new(Endless)))
        .layer(guard.in_flight_layer())
}

#[tokio::test]
async fn a_request_is_in_flight_until_its_connection_dies() {
    let rejections = Arc::new(Rejections::default());
    let backend = Backend::memory().observer(Arc::clone(&rejections) as _);
    let server = Server::start(router(&guard(InFlightLimits::new(1, 10), backend))).await;
    let (answer, connection) = server.open_from("127.0.0.1", "/endless", &[]).await;
    assert_eq!(answer.status(), 200);

    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status(), 429);
    assert_eq!(header(&denied, "retry-after"), "1");
    assert!(denied.body().starts_with(b"{\"code\":\"RATE_LIMITED\""));
    assert_eq!(rejections.count(Surface::Http, Reason::InFlight), 1);
    assert_eq!(server.get_from("127.0.0.2", "/", &[]).await.status(), 200, "others may");

    drop((answer, connection));
    // The server takes a while to notice that the connection is closed.
    while server.status("/").await != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_custom_response_to_too_many_requests_in_flight() {
    let guard = guard(InFlightLimits::new(0, 0), Backend::memory());
    let layer = guard.in_flight_layer().respond_with(|denial| {
        let text = format!("{} is full: {}", denial.class(), denial.denied().reason);
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    let server = Server::start(hello().layer(layer)).await;
    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status(), 503);
    assert!(denied.body().starts_with(b"public is full: "), "{:?}", denied.body());
    assert_eq!(header(&denied, "retry-after"), "1");

    let server = Server::start(hello().layer(guard.in_flight_layer().grpc())).await;
    let denied = server.get("/", &[]).await;
    assert_eq!((denied.status().as_u16(), header(&denied, "grpc-status")), (200, "8"));
    assert!(denied.body().is_empty());
}

#[tokio::test]
async fn all_clients_together_have_a_limit() {
    let server = Server::start(router(&guard(InFlightLimits::new(5, 2), Backend::memory()))).await;
    let _first = server.open_from("127.0.0.1", "/endless", &[]).await;
    let second = server.open_from("127.0.0.2", "/endless", &[]).await;
    assert_eq!(server.get_from("127.0.0.3", "/", &[]).await.status(), 429);
    drop(second);
    while server.get_from("127.0.0.3", "/", &[]).await.status() != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_with_a_finished_response_is_not_in_flight() {
    let server = Server::start(router(&guard(InFlightLimits::new(1, 1), Backend::memory()))).await;
    let (answer, _connection) = server.open_from("127.0.0.1", "/", &[]).await;
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "hello");
    // The connection is still open.
    while server.status("/").await != 200 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn slots_are_released_on_drop() {
    let open = InFlight::new();
    let limits = InFlightLimits::new(2, 3);
    let mut permits = vec![open.acquire("a", limits).unwrap(), open.acquire("a", limits).unwrap()];
    assert_eq!(open.acquire("a", limits).unwrap_err(), Busy::PerKey(2));
    permits.push(open.acquire("b", limits).unwrap());
    assert_eq!(open.acquire("c", limits).unwrap_err(), Busy::Total(3));
    assert_eq!((open.total(), open.clients()), (3, 2));
    permits.clear();
    assert_eq!((open.total(), open.clients()), (0, 0));
    assert!(open.acquire("a", InFlightLimits::new(0, 1)).is_err(), "0 denies all");
    assert_eq!((open.total(), open.clients()), (0, 0));
}

#[test]
fn concurrent_acquires_never_exceed_the_limit() {
    let open = InFlight::new();
    let limits = InFlightLimits::new(3, 5);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let open = &open;
            scope.spawn(move || {
                for _ in 0..5_000 {
                    let permit = open.acquire(thread % 2, limits);
                    assert!(open.total() <= 5);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!((open.total(), open.clients()), (0, 0));
}
