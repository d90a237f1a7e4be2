//! Requests without a peer address.

use std::sync::Arc;

use axum::body::Body;
use headgate_guard::{
    Backend, Class, Guard, InFlightLimits, Policy, Reason, Rejections, Routes, Surface,
    UnknownPeers,
};
use headgate_testkit::CapturedLog;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::net::TcpListener;
use tower::{ServiceBuilder, ServiceExt};

use crate::support::{guard, hello, public};

fn without_peer() -> Request<Body> {
    Request::new(Body::empty())
}

#[tokio::test]
async fn a_request_without_a_peer_address_is_refused_and_logged_once() {
    let rejections = Arc::new(Rejections::default());
    let backend = Backend::memory().observer(Arc::clone(&rejections) as _);
    let guard = Guard::builder(public(100), Routes::all("public")).backend(backend);
    let layer = guard.build().unwrap().layer();
    let service = ServiceBuilder::new().layer(layer).service(hello());
    let log = CapturedLog::start("error");
    for _ in 0..3 {
        let refused = service.clone().oneshot(without_peer()).await.unwrap();
        assert_eq!(refused.status(), 500);
        assert!(!refused.headers().contains_key("retry-after"));
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        let expected = r#"{"code":"INTERNAL_ERROR","message":"internal error","details":null}"#;
        assert_eq!(body, expected);
    }
    let text = log.text();
    assert_eq!(text.matches("into_make_service_with_connect_info").count(), 1, "{text}");
    assert_eq!(rejections.count(Surface::Http, Reason::UnknownPeer), 3);
    assert_eq!(rejections.unidentified_count(), 3);
}

#[tokio::test]
async fn a_router_that_is_served_without_connect_info_answers_500() {
    let router = hello().layer(guard(100).layer());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(stream);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/").header("host", "guarded").body(Body::empty()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 500);
    server.abort();
}

#[tokio::test]
async fn all_layers_that_count_by_address_refuse_it() {
    let class = Class::new("public").unwrap().in_flight(InFlightLimits::new(1, 10));
    let policy = Policy::new([class]).unwrap();
    let guard = Guard::builder(policy, Routes::all("public")).build().unwrap();
    let service = ServiceBuilder::new().layer(guard.in_flight_layer()).service(hello());
    assert_eq!(service.oneshot(without_peer()).await.unwrap().status(), 500);

    let class = Class::new("public").unwrap();
    let class = class.by_address_after_auth(headgate_guard::Allowance::per_minute(9).unwrap());
    let policy = Policy::new([class]).unwrap();
    let guard = Guard::builder(policy, Routes::all("public")).build().unwrap();
    let layer = guard.layer_after_auth(|_| Some("alice"));
    let service = ServiceBuilder::new().layer(layer).service(hello());
    assert_eq!(service.oneshot(without_peer()).await.unwrap().status(), 500);
}

#[tokio::test]
async fn counting_by_subject_needs_no_address() {
    let class = Class::new("public").unwrap();
    let class = class.by_subject(headgate_guard::Allowance::per_minute(1).unwrap());
    let policy = Policy::new([class]).unwrap();
    let guard = Guard::builder(policy, Routes::all("public")).build().unwrap();
    let layer = guard.layer_after_auth(|_| Some("alice"));
    let service = ServiceBuilder::new().layer(layer).service(hello());
    assert_eq!(service.clone().oneshot(without_peer()).await.unwrap().status(), 200);
    assert_eq!(service.oneshot(without_peer()).await.unwrap().status(), 429);
}

#[tokio::test]
async fn a_custom_response_becomes_a_500() {
    let layer = guard(100).layer().respond_with(|_| {
        let mut response = Response::new(Body::from("slow down"));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response
    });
    let service = ServiceBuilder::new().layer(layer).service(hello());
    assert_eq!(service.oneshot(without_peer()).await.unwrap().status(), 500);
}

#[tokio::test]
async fn unknown_peers_can_be_counted_together() {
    let rejections = Arc::new(Rejections::default());
    let backend = Backend::memory().observer(Arc::clone(&rejections) as _);
    let guard = Guard::builder(public(1), Routes::all("public"))
        .backend(backend)
        .unknown_peers(UnknownPeers::CountTogether);
    let layer = guard.build().unwrap().layer();
    let service = ServiceBuilder::new().layer(layer).service(hello());
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(service.clone().oneshot(without_peer()).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 429]);
    assert_eq!(rejections.unidentified_count(), 2);
    assert_eq!(rejections.count(Surface::Http, Reason::Address), 1);
    assert_eq!(rejections.at(Surface::Grpc), 0);
}
