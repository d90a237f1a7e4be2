//! Errors of the quota API.

use headgate_testkit::{Postgres, require};
use serde_json::json;

use super::{QUOTAS, error, policy};
use crate::harness::Server;

fn pairs<const N: usize>(expected: [(&str, &str); N]) -> Vec<(String, String)> {
    expected.map(|(field, message)| (field.to_owned(), message.to_owned())).to_vec()
}

#[tokio::test]
async fn all_invalid_fields_are_named_at_once() {
    let server = Server::start(&[]).await;
    let body = json!({
        "name": "", "subject_type": "planet", "subject_id": "x", "limit": 0, "period": "weekly",
        "alert_threshold_percent": 101, "time_zone": "Mars/Olympus", "enabled": "yes",
    });
    let refused = server.admin("POST", QUOTAS, &body.to_string()).await;
    let reported = (400, "SYS_QUOTA_VALIDATION_ERROR".to_owned(), "validation failed".to_owned());
    assert_eq!(error(&refused), reported);
    let fields: Vec<_> = refused.details().into_iter().map(|(field, _)| field).collect();
    let expected = [
        "name",
        "subject_type",
        "limit",
        "period",
        "time_zone",
        "enabled",
        "alert_threshold_percent",
    ];
    assert_eq!(fields, expected, "{}", refused.text);
    let reported = refused.details();
    assert_eq!(reported[1].1, "must be one of: tenant, user, api_key");
    assert_eq!(reported[2].1, "limit must be greater than 0");
    assert_eq!(reported[3].1, "must be one of: daily, monthly");
    let nothing = server.admin("POST", QUOTAS, "{}").await;
    let fields: Vec<_> = nothing.details().into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["name", "subject_type", "subject_id", "limit", "period"]);
}

#[tokio::test]
async fn invalid_amounts_are_rejected() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("amounts", 10)).await;
    let path = format!("{QUOTAS}/{id}/usage/increment");
    let refused = async |body: &str| {
        let reply = server.admin("POST", &path, body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        reply.details()
    };
    let positive = pairs([("amount", "amount must be greater than 0")]);
    assert_eq!(refused(r#"{"amount":0}"#).await, positive);
    assert_eq!(refused(r#"{"amount":-5}"#).await, positive);
    assert_eq!(refused("{}").await, pairs([("amount", "amount is required")]));
    let most = pairs([("amount", "amount must be at most the limit of 10")]);
    assert_eq!(refused(r#"{"amount":11}"#).await, most);
    assert_eq!(
        refused(r#"{"amount":"1","request_id":5}"#).await,
        pairs([
            ("amount", "amount must be a whole number, got a string"),
            ("request_id", "request_id must be a string, got a number"),
        ])
    );
    let long = json!({"amount": 0, "request_id": "x".repeat(129)}).to_string();
    assert_eq!(refused(&long).await.len(), 2);
    assert_eq!(server.used(&id).await, 0);
}

#[tokio::test]
async fn a_misspelt_field_charges_nothing() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("misspelt", 10)).await;
    for (path, body, fields) in [
        (
            format!("{QUOTAS}/{id}/usage/increment"),
            r#"{"amount":1,"requestId":"a"}"#,
            &["requestId"][..],
        ),
        (format!("{QUOTAS}/{id}/check"), r#"{"amuont":1}"#, &["amuont"]),
        (format!("{QUOTAS}/{id}/usage/reset"), r#"{"reason":"a","amount":1}"#, &["amount"]),
        (
            QUOTAS.to_owned(),
            r#"{"name":"a","alert_treshold_percent":80}"#,
            &["alert_treshold_percent", "subject_type", "subject_id", "limit", "period"],
        ),
    ] {
        let refused = server.admin("POST", &path, body).await;
        let (status, code, message) = error(&refused);
        assert_eq!((status, code.as_str()), (400, "SYS_QUOTA_VALIDATION_ERROR"), "{path}");
        assert_eq!(message, "validation failed");
        let details = refused.details();
        let listed: Vec<&str> = details.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(listed, fields);
        assert!(details[0].1.starts_with("unknown field"), "{details:?}");
    }
    assert_eq!(server.used(&id).await, 0);
}

#[tokio::test]
async fn common_errors_have_the_codes_of_quotas() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("words", 10)).await;
    let token = server.admin_token.as_deref();
    let code = |reply: &crate::harness::Reply| (error(reply).0, error(reply).1);
    let unknown = server.admin("GET", "/api/v1/quotas/a/b", "").await;
    assert_eq!(code(&unknown), (404, "SYS_QUOTA_NOT_FOUND".to_owned()));
    let method = server.admin("PATCH", QUOTAS, "").await;
    assert_eq!(code(&method), (405, "SYS_QUOTA_METHOD_NOT_ALLOWED".to_owned()));
    let path = format!("{QUOTAS}/{id}/usage/increment");
    let request =
        hyper::Request::post(&path).header("authorization", format!("Bearer {}", token.unwrap()));
    let unnamed = server.send(request, r#"{"amount":1}"#).await;
    assert_eq!(code(&unnamed), (415, "SYS_QUOTA_UNSUPPORTED_MEDIA_TYPE".to_owned()));
    let large = server.admin("POST", &path, &" ".repeat(65 * 1024)).await;
    assert_eq!(code(&large), (413, "SYS_QUOTA_BODY_TOO_LARGE".to_owned()));
    for id in ["quota_unknown", "a%20b", "%FF", &"x".repeat(65)] {
        let reply = server.admin("GET", &format!("{QUOTAS}/{id}/usage"), "").await;
        assert_eq!(code(&reply), (404, "SYS_QUOTA_NOT_FOUND".to_owned()), "{id}");
    }
    for query in ["page=0", "page_size=101", "subject_type=planet", "enabled_only=maybe"] {
        let reply = server.admin("GET", &format!("{QUOTAS}?{query}"), "").await;
        assert_eq!(code(&reply), (400, "SYS_QUOTA_VALIDATION_ERROR".to_owned()), "{query}");
    }
    let missing = server.with_token(None, "GET", QUOTAS, "").await;
    assert_eq!(code(&missing), (401, "SYS_AUTH_MISSING_TOKEN".to_owned()));
    assert_eq!(missing.details(), []);
}

#[tokio::test]
async fn a_corrupt_policy_is_an_internal_error_without_details() {
    let postgres = require!(Postgres::shared());
    let server = Server::start(&[("database.url", postgres.url())]).await;
    let id = server.create_quota(&policy("corrupt", 10)).await;
    postgres.psql("UPDATE quota.quota_policies SET name = ''");
    let reply = server.admin("GET", &format!("{QUOTAS}/{id}"), "").await;
    let expected = (500, "SYS_QUOTA_INTERNAL_ERROR".to_owned(), "internal error".to_owned());
    assert_eq!(error(&reply), expected);
    assert_eq!(reply.details(), []);
}
