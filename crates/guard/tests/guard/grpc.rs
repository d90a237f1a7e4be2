use std::{convert::Infallible, net::SocketAddr};

use axum::body::Body;
use headgate_guard::{Guard, Routes};
use http::{HeaderValue, Method, Request, Response, Version};
use tokio::net::TcpListener;
use tonic::{
    Code,
    transport::{
        Channel, Server as TonicServer,
        server::{TcpConnectInfo, TcpIncoming},
    },
};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tower::{Layer as _, Service as _};

use crate::support::{Server, by_clock, guard, guard_by_clock, header, public, request};

/// A tonic server behind a guard that admits two a minute.
async fn serve() -> SocketAddr {
    let guard = Guard::builder(public(2), Routes::all("public"))
        .backend(by_clock().1)
        .peer(|known| known.get::<TcpConnectInfo>()?.remote_addr().map(|address| address.ip()))
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = TonicServer::builder().layer(guard.layer().grpc()).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    address
}

#[tokio::test]
async fn a_call_over_the_limit_is_resource_exhausted_with_retry_after() {
    let address = serve().await;
    let channel = Channel::from_shared(format!("http://{address}")).unwrap();
    let mut client = HealthClient::new(channel.connect().await.unwrap());
    for _ in 0..2 {
        client.check(HealthCheckRequest::default()).await.unwrap();
    }
    let status = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.message(), "rate limited");
    assert_eq!(status.metadata().get("retry-after").unwrap(), "30");
    assert_eq!(status.metadata().get("grpc-retry-pushback-ms").unwrap(), "30000");
}

#[tokio::test]
async fn a_grpc_content_type_over_http1_gets_an_http_response() {
    let server = Server::behind(&guard(1)).await;
    assert_eq!(server.status("/").await, 200);
    let denied = server.get("/", &[("content-type", "application/grpc+proto")]).await;
    assert_eq!(denied.status(), 429);
    assert_eq!(header(&denied, "content-type"), "application/json");
    assert_eq!(header(&denied, "cache-control"), "no-store");
}

#[tokio::test]
async fn the_standard_response_to_a_grpc_call_is_a_grpc_status() {
    let guard = guard_by_clock(1);
    let mut service = guard.layer().layer(tower::service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    let call = || {
        let mut request = request();
        *request.method_mut() = Method::POST;
        *request.version_mut() = Version::HTTP_2;
        let grpc = HeaderValue::from_static("application/grpc+proto");
        request.headers_mut().insert("content-type", grpc);
        request
    };
    assert_eq!(service.call(call()).await.unwrap().status(), 200);
    let denied = service.call(call()).await.unwrap();
    assert_eq!(denied.status(), 200);
    assert_eq!(denied.headers()["content-type"], "application/grpc");
    assert_eq!(denied.headers()["grpc-status"], "8");
    assert_eq!(denied.headers()["retry-after"], "60");
}
