//! Places of concurrency limits over gRPC.

use serde_json::json;
use tonic::Code;

use super::client::{
    AcquireRequest, CheckRateLimitRequest, ReleaseLeaseRequest, RenewLeaseRequest, connect,
    error_parts,
};
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_acquired_renewed_and_released() {
    let server = Server::start(&[]).await;
    server
        .create_rule(&json!({
            "scope": "service", "identifier_pattern": "export", "limit": 1,
            "window_seconds": 20, "algorithm": "concurrency",
        }))
        .await;
    let mut client = connect(server.grpc_address).await;
    let check = CheckRateLimitRequest {
        rule_id: "service".to_owned(),
        subject: "export".to_owned(),
        cost: 9,
        ..Default::default()
    };
    let request = AcquireRequest { checks: vec![check], ..Default::default() };
    let held = client.acquire(request.clone()).await.unwrap().into_inner();
    assert!(held.allowed && held.expires_at.is_some() && !held.retry_after_estimated, "{held:?}");
    assert_eq!(held.lease_ms, 20_000, "the rule's longest lease");
    let denied = client.acquire(request.clone()).await.unwrap().into_inner();
    assert!(!denied.allowed && denied.lease_id.is_empty(), "{denied:?}");
    assert!(denied.retry_after_estimated, "{denied:?}");

    let renew = RenewLeaseRequest { lease_id: held.lease_id.clone(), lease_seconds: 5 };
    let renewed = client.renew_lease(renew.clone()).await.unwrap().into_inner();
    assert_eq!((renewed.lease_ms, renewed.degraded.as_str()), (5_000, ""));
    let release = ReleaseLeaseRequest { lease_id: held.lease_id };
    assert!(client.release_lease(release.clone()).await.unwrap().into_inner().released);
    assert!(!client.release_lease(release).await.unwrap().into_inner().released);
    let ended = client.renew_lease(renew).await.unwrap_err();
    let (code, reason, ..) = error_parts(&ended);
    assert_eq!((code, &*reason), (Code::FailedPrecondition, "SYS_RATELIMIT_LEASE_ENDED"));
    let unknown = ReleaseLeaseRequest { lease_id: "lease_x".to_owned() };
    let unknown = client.release_lease(unknown).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    assert!(client.acquire(request).await.unwrap().into_inner().allowed);
}
