//! Places of concurrency limits over gRPC.

use serde_json::json;
use tonic::Code;

use super::client::{
    AcquireRequest, CheckRateLimitRequest, EndLeaseRequest, ListHoldersRequest,
    ReleaseLeaseRequest, RenewLeaseRequest, assert_invalid, by, connect, error_parts,
};
use crate::harness::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_acquired_renewed_and_released() {
    let server = Server::start(&[]).await;
    server
        .create_rule(&json!({
            "scope": "service", "identifier_pattern": "export", "limit": 1,
            "window_seconds": 1200, "algorithm": "concurrency",
        }))
        .await;
    let mut client = connect(server.grpc_address).await;
    let check = CheckRateLimitRequest {
        rule_id: "service".to_owned(),
        subject: "export".to_owned(),
        cost: 9,
        ..Default::default()
    };
    let request = AcquireRequest { checks: vec![check], lease_seconds: 3600, ..Default::default() };
    let held = client.acquire(request.clone()).await.unwrap().into_inner();
    assert!(held.allowed && held.expires_at.is_some() && !held.retry_after_estimated, "{held:?}");
    assert_eq!(held.lease_ms, 1_200_000, "the rule's longest lease");
    let denied = client.acquire(request.clone()).await.unwrap().into_inner();
    assert!(!denied.allowed && denied.lease_id.is_empty(), "{denied:?}");
    assert!(denied.retry_after_estimated, "{denied:?}");

    let renew = RenewLeaseRequest { lease_id: held.lease_id.clone(), lease_seconds: 600 };
    let renewed = client.renew_lease(renew.clone()).await.unwrap().into_inner();
    assert_eq!((renewed.lease_ms, renewed.degraded.as_str()), (600_000, ""));
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

#[tokio::test(flavor = "multi_thread")]
async fn holders_are_listed_and_their_leases_ended() {
    let server = Server::start(&[]).await;
    let rule = server
        .create_rule(&json!({
            "scope": "service", "identifier_pattern": "export", "limit": 2,
            "window_seconds": 3600, "algorithm": "concurrency",
        }))
        .await;
    let token = server.admin_token.clone().unwrap();
    let mut client = connect(server.grpc_address).await;
    let check = CheckRateLimitRequest {
        rule_id: "service".to_owned(),
        subject: "export".to_owned(),
        cost: 1,
        ..Default::default()
    };
    let request =
        AcquireRequest { checks: vec![check.clone()], lease_seconds: 3600, ..Default::default() };
    let held = client.acquire(request).await.unwrap().into_inner();
    let handle = held.lease_id["lease_".len()..][..10].to_owned();

    let list = ListHoldersRequest { check: Some(check.clone()), max: 0 };
    let listed = client.list_holders(by(&token, list.clone())).await.unwrap().into_inner();
    let [only] = &listed.rules[..] else { panic!("{listed:?}") };
    assert_eq!((&only.rule_id, &*only.subject, only.limit), (&rule, "export", 2));
    assert_eq!((only.taken, only.total, only.holders.len()), (1, 1, 1), "{only:?}");
    assert_eq!((&only.holders[0].holder, only.holders[0].places), (&handle, 1));
    assert_eq!(only.holders[0].expires_at, held.expires_at);
    let many = ListHoldersRequest { max: 1001, ..list.clone() };
    let refused = client.list_holders(by(&token, many)).await.unwrap_err();
    assert_invalid(&refused, &[("max", "max must be at most 1000")]);
    let nothing = ListHoldersRequest::default();
    let refused = client.list_holders(by(&token, nothing)).await.unwrap_err();
    assert_invalid(&refused, &[("check", "check is required")]);

    let end = EndLeaseRequest { check: Some(check), holder: handle, reason: "stuck".to_owned() };
    assert!(client.end_lease(by(&token, end.clone())).await.unwrap().into_inner().ended);
    let gone = client.end_lease(by(&token, end)).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let listed = client.list_holders(by(&token, list)).await.unwrap().into_inner();
    assert_eq!(listed.rules[0].total, 0);
}
