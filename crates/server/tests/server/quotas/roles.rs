//! Permissions of the roles, over REST and gRPC.

use std::fmt::Write as _;

use headgate_testkit::Issuer;
use serde_json::json;
use tonic::{Code, Status};

use super::{
    QUOTAS,
    grpc::client::{
        CancelQuotaReservationRequest, CheckQuotaRequest, Client, DeleteQuotaPolicyRequest,
        GetQuotaHistoryRequest, GetQuotaPolicyRequest, GetQuotaReservationRequest,
        GetQuotaUsageRequest, IncrementQuotaUsageRequest, ListQuotaPoliciesRequest,
        RefundQuotaUsageRequest, ReserveQuotaRequest, ResetQuotaUsageRequest,
        SettleQuotaReservationRequest, UpdateQuotaPolicyRequest, UseQuotaReservationRequest,
        connect, error_parts, new_policy,
    },
    policy,
};
use crate::{grpc::client::by, harness::Server};

const ROLES: [&str; 3] = ["sys_auditor", "sys_operator", "sys_admin"];
const TOKENS: [&str; 3] = [
    "auditor-token-0123456789abcdef0123456789",
    "operator-token-0123456789abcdef012345678",
    "admin-token-0123456789abcdef0123456789ab",
];

/// Every operation as request and call, with the least role that may do it.
const PROTECTED: [(&str, &str, &str, usize); 16] = [
    ("GET", "", "ListQuotaPolicies", 0),
    ("GET", "/{id}", "GetQuotaPolicy", 0),
    ("GET", "/{id}/usage", "GetQuotaUsage", 0),
    ("GET", "/{id}/history", "GetQuotaHistory", 0),
    ("GET", "/{id}/reservations/qres_2026-02_0", "GetQuotaReservation", 0),
    ("POST", "", "CreateQuotaPolicy", 1),
    ("PUT", "/{id}", "UpdateQuotaPolicy", 1),
    ("POST", "/{id}/check", "CheckQuota", 1),
    ("POST", "/{id}/usage/increment", "IncrementQuotaUsage", 1),
    ("POST", "/{id}/usage/refund", "RefundQuotaUsage", 1),
    ("POST", "/{id}/reservations", "ReserveQuota", 1),
    ("POST", "/{id}/reservations/qres_2026-02_0/use", "UseQuotaReservation", 1),
    ("POST", "/{id}/reservations/qres_2026-02_0/settle", "SettleQuotaReservation", 1),
    ("POST", "/{id}/reservations/qres_2026-02_0/cancel", "CancelQuotaReservation", 1),
    ("POST", "/{id}/usage/reset", "ResetQuotaUsage", 2),
    ("DELETE", "/{id}", "DeleteQuotaPolicy", 2),
];

async fn call(client: &Client, token: &str, method: &str, id: &str) -> Result<(), Status> {
    let id = id.to_owned();
    let (quota_id, reservation_id) = (id.clone(), "qres_2026-02_0".to_owned());
    macro_rules! call {
        ($name:ident, $message:expr) => {
            client.clone().$name(by(token, $message)).await.map(drop)
        };
    }
    match method {
        "ListQuotaPolicies" => call!(list_quota_policies, ListQuotaPoliciesRequest::default()),
        "GetQuotaPolicy" => call!(get_quota_policy, GetQuotaPolicyRequest { id }),
        "GetQuotaUsage" => call!(get_quota_usage, GetQuotaUsageRequest { quota_id: id }),
        "GetQuotaHistory" => {
            call!(get_quota_history, GetQuotaHistoryRequest { quota_id: id, ..Default::default() })
        }
        "CreateQuotaPolicy" => call!(create_quota_policy, new_policy("again", 0)),
        "UpdateQuotaPolicy" => {
            call!(update_quota_policy, UpdateQuotaPolicyRequest { id, ..Default::default() })
        }
        "CheckQuota" => call!(check_quota, CheckQuotaRequest { quota_id: id, amount: 1 }),
        "IncrementQuotaUsage" => {
            let message = IncrementQuotaUsageRequest { quota_id: id, amount: 1, request_id: None };
            call!(increment_quota_usage, message)
        }
        "ResetQuotaUsage" => {
            call!(reset_quota_usage, ResetQuotaUsageRequest { quota_id: id, reason: "x".into() })
        }
        "RefundQuotaUsage" => {
            call!(refund_quota_usage, RefundQuotaUsageRequest { quota_id, request_id: "x".into() })
        }
        "ReserveQuota" => {
            let message = ReserveQuotaRequest { quota_id, amount: 1, ..Default::default() };
            call!(reserve_quota, message)
        }
        "UseQuotaReservation" => {
            let (amount, request_id) = (1, None);
            let message =
                UseQuotaReservationRequest { quota_id, reservation_id, amount, request_id };
            call!(use_quota_reservation, message)
        }
        "SettleQuotaReservation" => {
            let (amount, overdraft) = (1, false);
            let message =
                SettleQuotaReservationRequest { quota_id, reservation_id, amount, overdraft };
            call!(settle_quota_reservation, message)
        }
        "CancelQuotaReservation" => {
            let message = CancelQuotaReservationRequest { quota_id, reservation_id };
            call!(cancel_quota_reservation, message)
        }
        "GetQuotaReservation" => {
            let message = GetQuotaReservationRequest { quota_id, reservation_id };
            call!(get_quota_reservation, message)
        }
        "DeleteQuotaPolicy" => call!(delete_quota_policy, DeleteQuotaPolicyRequest { id }),
        other => panic!("{other}"),
    }
}

fn body(method: &str, path: &str) -> String {
    match (method, path) {
        (_, "/{id}/usage/increment") => r#"{"amount":1}"#.to_owned(),
        (_, "/{id}/usage/refund") => r#"{"request_id":"x"}"#.to_owned(),
        ("POST", path) if path.contains("/reservations") => r#"{"amount":1}"#.to_owned(),
        (_, "/{id}/usage/reset") => r#"{"reason":"x"}"#.to_owned(),
        ("POST", "") => json!({"name": ""}).to_string(),
        ("PUT", _) => policy("roles", 100).to_string(),
        _ => String::new(),
    }
}

#[tokio::test]
async fn each_role_may_do_what_the_table_says_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = "auth:\n  tokens:\n".to_owned();
    for (role, token) in ROLES.iter().zip(TOKENS) {
        let file = folder.path().join(role);
        std::fs::write(&file, token).unwrap();
        let file = file.display();
        writeln!(config, "    - {{name: the-{role}, role: {role}, token_file: {file}}}").unwrap();
    }
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, config).unwrap();
    let mut server = Server::start_with_file(&file, &[]).await;
    server.admin_token = Some(TOKENS[2].to_owned());
    let id = server.create_quota(&policy("roles", 100)).await;
    let client = connect(server.grpc_address).await;
    for (method, path, rpc, least) in PROTECTED {
        let uri = format!("{QUOTAS}{}", path.replace("{id}", &id));
        for (rank, token) in TOKENS.iter().enumerate() {
            let reply = server.with_token(Some(token), method, &uri, &body(method, path)).await;
            let refused = reply.status == 403;
            assert_eq!(refused, rank < least, "{} {method} {path}: {}", ROLES[rank], reply.text);
            let answer = call(&client, token, rpc, &id).await;
            let refusal = answer.as_ref().err().map(|status| error_parts(status).1);
            let denied = refusal.as_deref() == Some("SYS_AUTH_PERMISSION_DENIED");
            assert_eq!(denied, rank < least, "{} {rpc}: {answer:?}", ROLES[rank]);
        }
        for token in ["", "hg_wrong"] {
            let unknown = call(&client, token, rpc, &id).await.unwrap_err();
            assert_eq!(unknown.code(), Code::Unauthenticated, "{rpc}");
            let reply = server.with_token(Some(token), method, &uri, &body(method, path)).await;
            assert_eq!(reply.status, 401, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn a_reset_records_the_name_of_the_token() {
    let issuer = Issuer::start();
    let url = issuer.url();
    let server = Server::start(&[("auth.jwks_url", url.as_str())]).await;
    let admin = |claims: serde_json::Value| {
        let mut all = json!({"realm_access": {"roles": ["sys_admin"]}});
        all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
        issuer.token(all)
    };
    let first = admin(json!({"sub": "s1"}));
    server.until_known(&first).await;
    let made = server.with_token(Some(&first), "POST", QUOTAS, &policy("who", 5).to_string()).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    for (claims, name) in [
        (
            json!({"sub": "s1", "preferred_username": "ann", "email": "admin@example.com"}),
            "admin@example.com",
        ),
        (json!({"sub": "s1", "preferred_username": "ann"}), "ann"),
        (json!({"sub": "s1"}), "s1"),
    ] {
        let path = format!("{QUOTAS}/{id}/usage/reset");
        let body = r#"{"reason":"a new plan"}"#;
        let reply = server.with_token(Some(&admin(claims)), "POST", &path, body).await;
        assert_eq!(reply.json()["reset_by"], name, "{}", reply.text);
    }
}
