//! Policies that are disabled, or change while they are used.

use headgate_testkit::require;
use hyper::{Request, http::request::Builder};
use serde_json::json;
use tonic::Code;

use super::{
    QUOTAS,
    backend::Backend,
    grpc::client::{connect, new_policy},
    policy,
};
use crate::{grpc::client::by, harness::Server};

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_default() {
    changes(&Server::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_redis() {
    let backend = require!(Backend::start());
    changes(&backend.server().await).await;
}

#[tokio::test]
async fn one_policy_too_many_is_refused_on_every_surface() {
    let server = Server::start(&[("quota.max_policies", "1")]).await;
    let id = server.create_quota(&policy("t1", 10)).await;
    let too_many = "there may be at most 1 quota policies; delete those that are not needed, or \
                    raise quota.max_policies";
    let refused = server.admin("POST", QUOTAS, &policy("t2", 10).to_string()).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let error = refused.json()["error"].clone();
    assert_eq!(error["code"], "SYS_QUOTA_TOO_MANY_POLICIES");
    assert_eq!(error["message"], too_many);

    let token = server.admin_token.clone().unwrap();
    let mut client = connect(server.grpc_address).await;
    let refused = client.create_quota_policy(by(&token, new_policy("t2", 10))).await.unwrap_err();
    assert_eq!((refused.code(), refused.message()), (Code::ResourceExhausted, too_many));
    server.admin("DELETE", &format!("{QUOTAS}/{id}"), "").await;
    server.create_quota(&policy("t2", 10)).await;
}

#[tokio::test]
async fn a_policy_is_changed_and_deleted_only_if_its_etag_matches() {
    let server = Server::start(&[]).await;
    let path = format!("{QUOTAS}/{}", server.create_quota(&policy("t1", 10)).await);
    let seen = server.admin("GET", &path, "").await;
    let tag = seen.header("etag").to_owned();
    assert_eq!(tag, seen.json()["updated_at"].to_string());
    let token = format!("Bearer {}", server.admin_token.as_deref().unwrap());
    let send = async |request: Builder, tag: &str, body: &str| {
        let request = request.header("if-match", tag).header("authorization", &token);
        server.send(request.header("content-type", "application/json"), body).await
    };
    let change = async |tag: &str, limit: u64| {
        send(Request::put(&path), tag, &policy("t1", limit).to_string()).await
    };
    let first = change(&tag, 11).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_ne!(first.header("etag"), tag);
    for late in [change(&tag, 12).await, send(Request::delete(&path), &tag, "").await] {
        assert_eq!(late.status, 412, "{}", late.text);
        assert_eq!(late.json()["error"]["code"], "SYS_QUOTA_CHANGED");
    }
    assert_eq!(server.admin("GET", &path, "").await.json()["limit"], 11);

    assert_eq!(change("*", 12).await.status, 200);
    assert_eq!(change("yesterday", 13).await.status, 400);
    // Without `If-Match` the change is unconditional.
    let last = server.admin("PUT", &path, &policy("t1", 14).to_string()).await;
    assert_eq!(last.status, 200);
    let deleted = send(Request::delete(&path), last.header("etag"), "").await;
    assert_eq!(deleted.status, 204, "{}", deleted.text);
}

async fn changes(server: &Server) {
    a_changed_limit_applies_at_once(server).await;
    a_disabled_policy_admits_everything_and_counts_nothing(server).await;
    an_update_keeps_what_it_leaves_out(server).await;
}

async fn a_changed_limit_applies_at_once(server: &Server) {
    let id = server.create_quota(&policy("limits", 10)).await;
    let path = format!("{QUOTAS}/{id}");
    let set = async |limit: u64| {
        let body = policy("limits", limit).to_string();
        let reply = server.admin("PUT", &path, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
    };
    assert_eq!(server.increment(&id, 10, None).await.status, 200);
    assert_eq!(server.increment(&id, 1, None).await.status, 429);
    set(15).await;
    assert_eq!(server.increment(&id, 5, None).await.json()["used"], 15);
    assert_eq!(server.increment(&id, 1, None).await.status, 429);
    set(4).await;
    let usage = server.quota_usage(&id).await.json();
    assert_eq!(
        (&usage["used"], &usage["remaining"], &usage["exceeded"]),
        (&json!(15), &json!(0), &json!(true)),
        "what was used stays used"
    );
    assert_eq!(usage["usage_percent"], 375.0);
    assert_eq!(server.increment(&id, 1, None).await.status, 429);
    set(16).await;
    assert_eq!(server.increment(&id, 1, None).await.status, 200);
}

async fn a_disabled_policy_admits_everything_and_counts_nothing(server: &Server) {
    let mut off = policy("disabled", 5);
    off["enabled"] = json!(false);
    let id = server.create_quota(&off).await;
    for _ in 0..3 {
        let reply = server.increment(&id, 5, None).await;
        assert_eq!(reply.json()["allowed"], true, "{}", reply.text);
    }
    assert_eq!(server.used(&id).await, 0);
    let path = format!("{QUOTAS}?subject_id=disabled&enabled_only=true");
    let listed = server.admin("GET", &path, "").await;
    assert_eq!(listed.json()["pagination"]["total_count"], 0);
    off["enabled"] = json!(true);
    server.admin("PUT", &format!("{QUOTAS}/{id}"), &off.to_string()).await;
    assert_eq!(server.increment(&id, 5, None).await.status, 200);
    assert_eq!(server.increment(&id, 1, None).await.status, 429);
}

async fn an_update_keeps_what_it_leaves_out(server: &Server) {
    let mut full = policy("kept", 10);
    full["alert_threshold_percent"] = json!(80);
    full["time_zone"] = json!("Asia/Tokyo");
    let id = server.create_quota(&full).await;
    let path = format!("{QUOTAS}/{id}");
    let kept = server.admin("PUT", &path, &policy("kept", 20).to_string()).await.json();
    assert_eq!((&kept["limit"], &kept["alert_threshold_percent"]), (&json!(20), &json!(80)));
    assert_eq!((&kept["time_zone"], &kept["enabled"]), (&json!("Asia/Tokyo"), &json!(true)));
    let usage = server.quota_usage(&id).await.json();
    assert!(usage["period_start"].as_str().unwrap().ends_with("T15:00:00.000+00:00"), "{usage}");
    let mut dropped = policy("kept", 20);
    dropped["alert_threshold_percent"] = json!(null);
    let dropped = server.admin("PUT", &path, &dropped.to_string()).await.json();
    assert_eq!(dropped.get("alert_threshold_percent"), None, "{dropped}");
    let partial = server.admin("PUT", &path, r#"{"limit":5}"#).await;
    assert_eq!(partial.status, 400, "PUT is the whole policy: {}", partial.text);
    let twin = server.create_quota(&policy("twin", 1)).await;
    let (path, body) = (format!("{QUOTAS}/{twin}"), policy("kept", 1).to_string());
    let clash = server.admin("PUT", &path, &body).await;
    assert_eq!(clash.json()["error"]["code"], "SYS_QUOTA_ALREADY_EXISTS");
}
