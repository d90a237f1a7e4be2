//! A request admitted in memory, by address or by the number in flight, does not allocate.
//!
//! A test binary of its own, because it counts allocations of the whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    alloc::System,
    convert::Infallible,
    future::{Future, Ready, ready},
    net::SocketAddr,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use headgate_guard::{
    Allowance, Cidr, Class, Guard, InFlightLimits, PeerAddress, Policy, Routes, TrustedProxies,
};
use http::{Request, Response};
use http_body_util::Empty;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tower::{Layer, Service};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(Clone)]
struct Hello;

impl Service<Request<Empty<Bytes>>> for Hello {
    type Response = Response<Bytes>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Bytes>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Empty<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(Bytes::new())))
    }
}

fn request(peer: &str) -> Request<Empty<Bytes>> {
    let mut request = Request::new(Empty::new());
    *request.uri_mut() = "/v1/auth/challenge".parse().unwrap();
    request.headers_mut().insert("x-forwarded-for", "2001:db8:1:2::3".parse().unwrap());
    request.extensions_mut().insert(PeerAddress(SocketAddr::new(peer.parse().unwrap(), 80)));
    request
}

#[test]
fn admitted_requests_do_not_allocate() {
    // One test, because the others of a process would be counted, too.
    by_address();
    by_number_in_flight();
}

fn by_address() {
    let class = |name| {
        let enough = Allowance::per_minute(1_000_000).unwrap();
        Class::new(name).unwrap().by_address(enough)
    };
    let routes = Routes::all("public").prefix("/v1/auth", "auth");
    let policy = || Policy::new([class("public"), class("auth")]).unwrap();
    let proxies = TrustedProxies::from_iter(["10.0.0.0/8".parse::<Cidr>().unwrap()]);
    let guard = Guard::builder(policy(), routes).trusted_proxies(proxies).build().unwrap();
    let service = guard.layer().layer(Hello);
    let mut context = Context::from_waker(Waker::noop());

    let mut call = |peer| {
        let request = request(peer);
        let region = Region::new(ALLOCATOR);
        // As axum does for each request.
        let mut service = service.clone();
        let answer = pin!(service.call(request)).poll(&mut context);
        let allocations = region.change().allocations;
        assert!(matches!(answer, Poll::Ready(Ok(response)) if response.status() == 200));
        allocations
    };
    // The test harness may allocate during some of the calls, but not during all.
    for peer in ["192.0.2.1", "10.0.0.1", "2001:db8::1"] {
        assert_eq!((0..100).map(|_| call(peer)).min(), Some(0), "{peer}");
    }
    // Nor after the policy was replaced.
    guard.replace(policy()).unwrap();
    assert_eq!((0..100).map(|_| call("192.0.2.1")).min(), Some(0));
}

fn by_number_in_flight() {
    let class = Class::new("public").unwrap().in_flight(InFlightLimits::new(2, 10));
    let policy = Policy::new([class]).unwrap();
    let guard = Guard::builder(policy, Routes::all("public")).build().unwrap();
    let service = guard.in_flight_layer().layer(Hello);
    let mut context = Context::from_waker(Waker::noop());
    let mut call = || {
        let request = request("192.0.2.1");
        let region = Region::new(ALLOCATOR);
        let mut service = service.clone();
        let answer = pin!(service.call(request)).poll(&mut context);
        let is_admitted = matches!(&answer, Poll::Ready(Ok(response)) if response.status() == 200);
        drop(answer);
        let allocations = region.change().allocations;
        assert!(is_admitted);
        allocations
    };
    assert_eq!((0..100).map(|_| call()).min(), Some(0));
}
