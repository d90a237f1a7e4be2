//! Streams that their callers leave open.

use std::time::Duration;

use futures_util::{StreamExt as _, future, stream};
use headgate_server::Drain;
use tokio::{sync::watch, time::timeout};
use tonic::{Code, Status, Streaming};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_client::HealthClient};
use tonic_reflection::pb::{
    v1::{
        ServerReflectionResponse, server_reflection_client::ServerReflectionClient as Reflection,
    },
    v1alpha::{
        ServerReflectionResponse as AlphaResponse,
        server_reflection_client::ServerReflectionClient as AlphaReflection,
    },
};

use super::client::{UseReservationResponse, channel, connect, error_parts};
use crate::harness::Server;

/// Maximum number of reflection streams.
const REFLECTING: usize = 64;

/// Timeout on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Streams without a token, on a connection each, whose callers send nothing.
struct Silent {
    health: Streaming<HealthCheckResponse>,
    metered: Streaming<UseReservationResponse>,
    reflection: Streaming<ServerReflectionResponse>,
    alpha: Streaming<AlphaResponse>,
}

impl Silent {
    async fn open(server: &Server) -> Self {
        // Each opens right after its connection, which could be closed as idle.
        let channel = async || channel(server.grpc_address).await;
        let mut health = HealthClient::new(channel().await);
        let watched = health.watch(HealthCheckRequest::default()).await;
        let mut health = watched.unwrap().into_inner();
        health.message().await.unwrap().expect("the first status");
        let mut metering = connect(server.grpc_address).await;
        let metered = metering.meter_reservation(stream::pending()).await;
        let mut reflection = Reflection::new(channel().await);
        let reflected = reflection.server_reflection_info(stream::pending()).await;
        let mut alpha = AlphaReflection::new(channel().await);
        let alpha = alpha.server_reflection_info(stream::pending()).await;
        Self {
            health,
            metered: metered.unwrap().into_inner(),
            reflection: reflected.unwrap().into_inner(),
            alpha: alpha.unwrap().into_inner(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_streams_make_room_for_other_clients() {
    let keys = [("server.max_connections", "4"), ("server.idle_timeout_seconds", "5")];
    let server = Server::start(&keys).await;
    let streams = Silent::open(&server).await;
    for _ in 0..10 {
        let answer = timeout(LIMIT, server.check_user("u1")).await;
        assert_eq!(answer.expect("a connection").status, 200);
    }
    let crowded = r#"headgate_connections_ended_total{reason="crowded",service="headgate"} "#;
    let metrics = server.get("/metrics").await.text;
    let ended = metrics.lines().find_map(|line| line.strip_prefix(crowded));
    assert!(ended.is_some_and(|ended| ended != "0"), "{metrics}");
    drop(streams);
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_streams_do_not_delay_shutdown() {
    let server = Server::start(&[]).await;
    let mut streams = Silent::open(&server).await;
    let stopping = server.stop();
    let ended = timeout(LIMIT, streams.metered.message()).await.expect("it ends").unwrap_err();
    assert_eq!(error_parts(&ended).1, "SYS_RATELIMIT_STOPPING");
    let unavailable = |ended: Status| assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
    unavailable(ended);
    unavailable(timeout(LIMIT, streams.reflection.message()).await.expect("an end").unwrap_err());
    unavailable(timeout(LIMIT, streams.alpha.message()).await.expect("an end").unwrap_err());
    streams.health.message().await.unwrap().expect("that it does not serve");
    assert_eq!(streams.health.message().await.unwrap(), None);
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test(flavor = "multi_thread")]
async fn reflection_streams_are_bounded() {
    let server = Server::start(&[]).await;
    let mut client = Reflection::new(channel(server.grpc_address).await);
    // Callers that ask nothing until the sender is dropped.
    let (close, closed) = watch::channel(());
    let asked = || {
        let mut closed = closed.clone();
        let end = stream::once(async move { closed.changed().await.ok() });
        end.filter_map(|_| future::ready(None))
    };
    let mut open = Vec::new();
    for _ in 0..REFLECTING {
        open.push(client.server_reflection_info(asked()).await.unwrap().into_inner());
    }
    let refused = client.server_reflection_info(asked()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    assert_eq!(error_parts(&refused).1, "SYS_RATELIMIT_TOO_MANY_STREAMS");
    drop(close);
    for mut ended in open {
        assert_eq!(ended.message().await.unwrap(), None);
    }
    let admitted = async { while client.server_reflection_info(asked()).await.is_err() {} };
    timeout(LIMIT, admitted).await.expect("streams that ended make room");
}
