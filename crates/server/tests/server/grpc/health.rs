//! `grpc.health.v1.Health` and `grpc.reflection`

use futures_util::{StreamExt as _, stream};
use headgate_server::Drain;
use tonic::Code;
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tonic_reflection::pb::{v1, v1alpha};

use super::client::channel;
use crate::harness::Server;

const SERVICE: &str = "k1s0.system.ratelimit.v1.RateLimitService";
const QUOTAS: &str = "k1s0.system.quota.v1.QuotaService";
const ENVOY: &str = "envoy.service.ratelimit.v3.RateLimitService";

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

#[tokio::test]
async fn a_server_is_alive_without_its_store() {
    let server = Server::start(&[("redis.url", "redis://127.0.0.1:1")]).await;
    let mut health = HealthClient::new(channel(server.grpc_address).await);
    for service in ["", SERVICE, QUOTAS, ENVOY, "ratelimit"] {
        let answer = health.check(of(service)).await.unwrap().into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving);
    }
    let unknown = health.check(of("nothing")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn health_watchers_see_the_server_drain() {
    let server = Server::start(&[]).await;
    let mut health = HealthClient::new(channel(server.grpc_address).await);
    let mut known = health.watch(of(SERVICE)).await.unwrap().into_inner();
    let mut unknown = health.watch(of("nothing")).await.unwrap().into_inner();
    assert_eq!(known.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    let nothing = unknown.message().await.unwrap().unwrap().status();
    assert_eq!(nothing, ServingStatus::ServiceUnknown);

    let stopping = server.stop();
    assert_eq!(known.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert_eq!(known.message().await.unwrap(), None);
    assert_eq!(unknown.message().await.unwrap(), None);
    // Open watches do not delay shutdown.
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn concurrent_calls_per_connection_are_bounded() {
    let server = Server::start(&[]).await;
    let mut health = HealthClient::new(channel(server.grpc_address).await);
    let mut watching = Vec::new();
    for _ in 0..256 {
        watching.push(health.watch(of("")).await.unwrap().into_inner());
    }
    let mut waiting = Box::pin({
        let mut health = health.clone();
        async move { health.check(of("")).await }
    });
    let moment = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(moment, &mut waiting).await.is_err());
    // Other connections are answered.
    let mut other = HealthClient::new(channel(server.grpc_address).await);
    other.check(of("")).await.unwrap();
    watching.pop();
    waiting.await.unwrap();
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let server = Server::start(&[]).await;
    let ours = [SERVICE, "grpc.health.v1.Health"];

    let request = v1::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(v1::server_reflection_request::MessageRequest::ListServices(
            String::new(),
        )),
    };
    let channel = channel(server.grpc_address).await;
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(channel.clone());
    let mut answers =
        client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let v1::server_reflection_response::MessageResponse::ListServicesResponse(list) = answer else {
        panic!("{answer:?}");
    };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    assert!(ours.iter().all(|name| names.iter().any(|known| known == name)), "{names:?}");

    let request = v1alpha::ServerReflectionRequest {
        host: String::new(),
        message_request: Some(
            v1alpha::server_reflection_request::MessageRequest::FileContainingSymbol(
                SERVICE.to_owned(),
            ),
        ),
    };
    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(channel);
    let mut answers =
        client.server_reflection_info(stream::iter([request])).await.unwrap().into_inner();
    let answer = answers.next().await.unwrap().unwrap().message_response.unwrap();
    let v1alpha::server_reflection_response::MessageResponse::FileDescriptorResponse(files) =
        answer
    else {
        panic!("{answer:?}");
    };
    assert!(!files.file_descriptor_proto.is_empty());
}
