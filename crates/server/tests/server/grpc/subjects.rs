//! `GetUsage` and `ResetLimit`

use tonic::Code;

use super::client::{
    CheckRateLimitRequest, Client, CreateRuleRequest, FOREVER, GetUsageRequest, GetUsageResponse,
    ResetLimitRequest, assert_error, assert_invalid, by, connect, create, rule_of,
};
use crate::backend::{Backend, on_both_backends};

on_both_backends!(usage_is_shown_for_subjects_with_usage, a_reset_restores_the_whole_limit,);

async fn take(client: &Client, scope: &str, subject: &str) -> bool {
    let request = CheckRateLimitRequest {
        rule_id: scope.to_owned(),
        subject: subject.to_owned(),
        ..CheckRateLimitRequest::default()
    };
    client.clone().check_rate_limit(request).await.unwrap().into_inner().allowed
}

async fn usage_is_shown_for_subjects_with_usage(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.clone().unwrap();
    let exact = create(&client, &token, rule_of("user:u1")).await;
    let prefix = create(&client, &token, rule_of("user:team-*")).await;
    let usage = |rule_id: &str, identifier: &str| {
        let (rule_id, identifier) = (rule_id.to_owned(), identifier.to_owned());
        let request = by(&token, GetUsageRequest { rule_id, identifier });
        let mut client = client.clone();
        async move { client.get_usage(request).await.map(tonic::Response::into_inner) }
    };
    let unused = GetUsageResponse {
        rule_id: exact.id.clone(),
        rule_name: "user:u1".to_owned(),
        limit: 5,
        window_secs: FOREVER,
        algorithm: "token_bucket".to_owned(),
        enabled: true,
        ..GetUsageResponse::default()
    };
    assert_eq!(usage(&exact.id, "").await.unwrap(), unused);
    assert!(take(&client, "user", "u1").await && take(&client, "user", "team-1").await);
    let used = usage(&exact.id, "").await.unwrap();
    assert_eq!((used.used, used.remaining), (Some(1), Some(4)));
    assert!(used.reset_at.is_some());
    assert_eq!(usage(&prefix.id, "").await.unwrap().used, None);
    assert_eq!(usage(&prefix.id, "team-1").await.unwrap().used, Some(1));

    let other = usage(&prefix.id, "u1").await.unwrap_err();
    assert_invalid(
        &other,
        &[("identifier", "identifier does not match the rule's pattern team-*")],
    );
    let none = usage("", "").await.unwrap_err();
    assert_invalid(&none, &[("rule_id", "rule_id is required")]);
    let unknown = usage("nothing", "").await.unwrap_err();
    let message = "rule not found: nothing";
    assert_error(&unknown, Code::NotFound, "SYS_RATELIMIT_RULE_NOT_FOUND", message);
}

async fn a_reset_restores_the_whole_limit(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.clone().unwrap();
    let one = CreateRuleRequest { limit: 1, ..rule_of("user:*") };
    create(&client, &token, one).await;
    assert!(take(&client, "user", "u1").await && !take(&client, "user", "u1").await);
    let reset = ResetLimitRequest {
        scope: "user".into(),
        identifier: "u1".into(),
        reason: "a ticket".into(),
    };
    let done = client.clone().reset_limit(by(&token, reset)).await.unwrap();
    assert!(done.into_inner().success);
    assert!(take(&client, "user", "u1").await);

    let wrong = ResetLimitRequest {
        scope: "planet".into(),
        reason: "x".repeat(1001),
        ..Default::default()
    };
    let status = client.clone().reset_limit(by(&token, wrong)).await.unwrap_err();
    let fields = [
        ("scope", "scope must be one of: service, user, endpoint"),
        ("identifier", "identifier is required"),
        ("reason", "reason must be at most 1000 characters"),
    ];
    assert_invalid(&status, &fields);
}
