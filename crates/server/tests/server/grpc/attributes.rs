//! Rules over attributes in gRPC.

use super::client::{
    Attribute, CheckRateLimitRequest, CreateRuleRequest, FOREVER, Selector, UpdateRuleRequest,
    assert_invalid, attribute, by, connect, create,
};
use crate::backend::{Backend, on_both_backends};

on_both_backends!(rules_over_attributes_decide_checks_with_attributes);

fn text(text: &str) -> Attribute {
    Attribute { value: Some(attribute::Value::Text(text.to_owned())) }
}

async fn rules_over_attributes_decide_checks_with_attributes(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let token = server.admin_token.as_deref().unwrap();
    let selector = Selector {
        when_json: r#"{"path":"/v1/*","size":{"min":5}}"#.to_owned(),
        per: vec!["tenant".to_owned()],
        priority: 3,
        stops: true,
        limit_by: None,
    };
    let rule = CreateRuleRequest {
        name: "exports".to_owned(),
        limit: 2,
        window_secs: FOREVER,
        selector: Some(selector.clone()),
        ..CreateRuleRequest::default()
    };
    let created = create(&client, token, rule).await;
    assert_eq!(created.selector, Some(selector.clone()));
    assert_eq!(
        (created.scope.as_str(), created.key.as_str()),
        ("attributes", "attributes:exports")
    );

    let size = Attribute { value: Some(attribute::Value::Number(7.0)) };
    let attributes = [("tenant", text("acme")), ("path", text("/v1/x")), ("size", size)];
    let check = CheckRateLimitRequest {
        attributes: attributes.map(|(name, value)| (name.to_owned(), value)).into(),
        limits: true,
        cost: 2,
        ..CheckRateLimitRequest::default()
    };
    let first = client.clone().check_rate_limit(check.clone()).await.unwrap().into_inner();
    assert!(first.allowed && first.remaining == 0, "{first:?}");
    assert_eq!((first.rule_id.as_str(), first.rule_name.as_str()), (&*created.id, "exports"));
    assert_eq!(first.limits.len(), 1);
    let second = client.clone().check_rate_limit(check.clone()).await.unwrap().into_inner();
    assert!(!second.allowed && second.retry_after_ms > 0, "{second:?}");

    let mut other = check.clone();
    other.attributes.insert("path".to_owned(), text("/"));
    let unlimited = client.clone().check_rate_limit(other).await.unwrap().into_inner();
    assert_eq!((unlimited.allowed, unlimited.reason.as_str()), (true, "no rule matches"));

    let by_id = CheckRateLimitRequest {
        rule_id: created.id.clone(),
        subject: "acme".to_owned(),
        ..CheckRateLimitRequest::default()
    };
    let refused = client.clone().check_rate_limit(by_id).await.unwrap_err();
    let message =
        format!("rule {} is over attributes: send attributes instead of its id", created.id);
    assert_invalid(&refused, &[("rule_id", &*message)]);

    let update = UpdateRuleRequest {
        rule_id: created.id.clone(),
        limit: 9,
        window_secs: FOREVER,
        selector: Some(Selector { stops: false, ..selector }),
        ..UpdateRuleRequest::default()
    };
    let updated = client.clone().update_rule(by(token, update)).await.unwrap();
    let updated = updated.into_inner().rule.unwrap();
    assert_eq!((updated.limit, updated.selector.unwrap().stops), (9, false));
}
