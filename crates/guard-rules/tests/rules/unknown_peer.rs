//! Requests without a peer address.

use axum::{Router, body::Body, routing::any};
use headgate_guard::UnknownPeers;
use headgate_guard_rules::{Extractors, RuleLayer, RuleSet};
use headgate_testkit::CapturedLog;
use http::Request;
use tokio::net::TcpListener;

use crate::{client::Client, send};

fn router(extractors: Extractors) -> Router {
    let rules = RuleSet::in_memory();
    rules.replace("- {name: all, per: [client], limit: 1, window_seconds: 8640000}").unwrap();
    let layer = RuleLayer::new(&rules, extractors).unwrap();
    Router::new().fallback(any(async || "hello")).layer(layer)
}

fn without_peer() -> Request<Body> {
    Request::new(Body::empty())
}

#[tokio::test]
async fn a_router_that_is_served_without_connect_info_answers_500() {
    for extractors in [Extractors::new().address("client"), Extractors::new().network("client")] {
        let log = CapturedLog::start("error");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server =
            tokio::spawn(async move { axum::serve(listener, router(extractors)).await.unwrap() });
        let talk = move || {
            let mut client = Client::connect(address);
            [(); 3].map(|()| client.upload(0).status())
        };
        let statuses = tokio::task::spawn_blocking(talk).await.unwrap();
        assert_eq!(statuses, [500; 3]);
        let text = log.text();
        assert_eq!(text.matches("into_make_service_with_connect_info").count(), 1, "{text}");
        server.abort();
    }
}

#[tokio::test]
async fn unknown_peers_can_be_counted_together() {
    let extractors = Extractors::new().network("client");
    let app = router(extractors.unknown_peers(UnknownPeers::CountTogether));
    assert_eq!(send(&app, without_peer()).await.status(), 200);
    assert_eq!(send(&app, without_peer()).await.status(), 429);
}

#[tokio::test]
async fn other_attributes_need_no_peer_address() {
    let app = router(Extractors::new().path("client"));
    assert_eq!(send(&app, without_peer()).await.status(), 200);
    assert_eq!(send(&app, without_peer()).await.status(), 429);
}

#[tokio::test]
async fn a_custom_response_becomes_a_500() {
    let rules = RuleSet::in_memory();
    let layer = RuleLayer::new(&rules, Extractors::new().address("client")).unwrap();
    let layer = layer.respond_with(|_| http::Response::new(Body::from("slow down")));
    let app: Router = Router::new().fallback(any(async || "hello")).layer(layer);
    assert_eq!(send(&app, without_peer()).await.status(), 500);
}
