//! Limits by plan, overrides and batches in gRPC.

use std::collections::HashMap;

use tonic::Code;

use super::client::{
    Attribute, CheckRateLimitRequest, CheckRateLimitsRequest, CreateRuleRequest,
    DeleteOverrideRequest, FOREVER, GetOverrideRequest, ListOverridesRequest, PlanLimits, Selector,
    SetOverrideRequest, assert_error, attribute, by, connect, create, error_parts,
};
use crate::backend::{Backend, on_both_backends};

on_both_backends!(plans_overrides_and_batches);

fn check(tenant: &str, plan: &str) -> CheckRateLimitRequest {
    let text = |text: &str| Attribute { value: Some(attribute::Value::Text(text.to_owned())) };
    let attributes = [("tenant", text(tenant)), ("plan", text(plan))];
    CheckRateLimitRequest {
        attributes: attributes.map(|(name, value)| (name.to_owned(), value)).into(),
        ..CheckRateLimitRequest::default()
    }
}

async fn plans_overrides_and_batches(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let mut client = connect(server.grpc_address).await;
    let token = server.admin_token.as_deref().unwrap();
    let limits = PlanLimits {
        by: "plan".to_owned(),
        limits: HashMap::from([("free".to_owned(), 3), ("pro".to_owned(), 30)]),
        default_limit: Some(2),
    };
    let rule = CreateRuleRequest {
        name: "api".to_owned(),
        window_secs: FOREVER,
        selector: Some(Selector {
            per: vec!["tenant".to_owned()],
            limit_by: Some(limits.clone()),
            ..Selector::default()
        }),
        ..CreateRuleRequest::default()
    };
    let rule = create(&client, token, rule).await;
    assert_eq!((rule.limit, rule.selector.unwrap().limit_by), (2, Some(limits)));
    for (plan, limit) in [("free", 3), ("pro", 30), ("gold", 2)] {
        let answer = client.check_rate_limit(check(plan, plan)).await.unwrap().into_inner();
        assert_eq!(answer.limit, limit, "{plan}");
    }

    let set = SetOverrideRequest {
        rule_id: rule.id.clone(),
        subject: HashMap::from([("tenant".to_owned(), "acme".to_owned())]),
        limit: 500,
        until: Some(prost_types::Timestamp { seconds: 32_503_680_000, nanos: 0 }),
        reason: "launch".to_owned(),
    };
    let answer = client.set_override(by(token, set.clone())).await.unwrap().into_inner();
    let created = answer.r#override.unwrap();
    assert!(answer.created && created.active && created.until == set.until, "{created:?}");
    let replaced = client.set_override(by(token, set.clone())).await.unwrap().into_inner();
    assert!(!replaced.created && replaced.r#override.unwrap().id == created.id);
    let answer = client.check_rate_limit(check("acme", "free")).await.unwrap().into_inner();
    assert_eq!((answer.limit, answer.remaining), (500, 499));

    let list =
        ListOverridesRequest { search: "ACME".to_owned(), active_only: true, ..Default::default() };
    let listed = client.list_overrides(by(token, list)).await.unwrap().into_inner();
    assert_eq!((listed.overrides.len(), listed.pagination.unwrap().total_count), (1, 1));
    let one = GetOverrideRequest { override_id: created.id.clone() };
    let shown = client.get_override(by(token, one.clone())).await.unwrap().into_inner();
    assert_eq!(shown.r#override.unwrap().limit, 500);
    let unnamed = client.set_override(by(token, SetOverrideRequest::default())).await.unwrap_err();
    let fields: Vec<String> = error_parts(&unnamed).3.into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["rule_id", "subject", "limit"]);
    let forbidden = client.set_override(set).await.unwrap_err();
    assert_eq!(forbidden.code(), Code::Unauthenticated);

    let delete = DeleteOverrideRequest { override_id: created.id.clone() };
    assert!(client.delete_override(by(token, delete)).await.unwrap().into_inner().success);
    let gone = client.get_override(by(token, one)).await.unwrap_err();
    let message = format!("override not found: {}", created.id);
    assert_error(&gone, Code::NotFound, "SYS_RATELIMIT_OVERRIDE_NOT_FOUND", &message);

    let by_user = CheckRateLimitRequest {
        rule_id: "user".to_owned(),
        subject: "u1".to_owned(),
        ..CheckRateLimitRequest::default()
    };
    let two = CheckRateLimitRequest { cost: 2, limits: true, ..check("b", "free") };
    let batch = CheckRateLimitsRequest { checks: vec![two, by_user], dry_run: false };
    let first = client.check_rate_limits(batch.clone()).await.unwrap().into_inner();
    assert!(first.allowed && first.results[0].remaining == 1 && first.results[0].limits.len() == 1);
    let second = client.check_rate_limits(batch.clone()).await.unwrap().into_inner();
    assert!(!second.allowed && !second.results[0].allowed && second.results[1].allowed);
    let wrong = CheckRateLimitsRequest {
        checks: vec![CheckRateLimitRequest { dry_run: true, ..CheckRateLimitRequest::default() }],
        dry_run: false,
    };
    let refused = client.check_rate_limits(wrong).await.unwrap_err();
    let fields: Vec<String> = error_parts(&refused).3.into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["checks", "checks[0].rule_id", "checks[0].subject"]);
}
