//! Permissions of the roles over gRPC.

use std::fmt::Write as _;

use tonic::{Code, Status, metadata::MetadataValue};

use super::client::{
    CheckRateLimitRequest, Client, CreateRuleRequest, DeleteRuleRequest, EndLeaseRequest,
    GetRuleRequest, GetUsageRequest, ListHoldersRequest, ListRulesRequest, ResetLimitRequest,
    UpdateRuleRequest, by, connect, error_parts,
};
use crate::harness::Server;

const ROLES: [&str; 3] = ["sys_auditor", "sys_operator", "sys_admin"];

const TOKENS: [&str; 3] = [
    "auditor-token-0123456789abcdef0123456789",
    "operator-token-0123456789abcdef012345678",
    "admin-token-0123456789abcdef0123456789ab",
];

/// Every protected method, with the least role that may call it.
const PROTECTED: [(&str, usize); 9] = [
    ("GetRule", 0),
    ("GetUsage", 0),
    ("ListHolders", 0),
    ("ListRules", 0),
    ("CreateRule", 1),
    ("UpdateRule", 1),
    ("ResetLimit", 1),
    ("EndLease", 1),
    ("DeleteRule", 2),
];

/// Calls a method with an empty message and this `authorization`.
async fn call(client: &Client, method: &str, authorization: Option<&str>) -> Result<(), Status> {
    macro_rules! call {
        ($name:ident, $message:ident) => {{
            let mut request = by("", $message::default());
            request.metadata_mut().remove("authorization");
            if let Some(value) = authorization {
                request
                    .metadata_mut()
                    .insert("authorization", MetadataValue::try_from(value).unwrap());
            }
            client.clone().$name(request).await.map(drop)
        }};
    }
    match method {
        "CheckRateLimit" => call!(check_rate_limit, CheckRateLimitRequest),
        "GetRule" => call!(get_rule, GetRuleRequest),
        "GetUsage" => call!(get_usage, GetUsageRequest),
        "ListHolders" => call!(list_holders, ListHoldersRequest),
        "EndLease" => call!(end_lease, EndLeaseRequest),
        "ListRules" => call!(list_rules, ListRulesRequest),
        "CreateRule" => call!(create_rule, CreateRuleRequest),
        "UpdateRule" => call!(update_rule, UpdateRuleRequest),
        "ResetLimit" => call!(reset_limit, ResetLimitRequest),
        "DeleteRule" => call!(delete_rule, DeleteRuleRequest),
        other => panic!("{other}"),
    }
}

/// The error of a call that was rejected before its message was read.
fn refusal(outcome: &Result<(), Status>) -> Option<(Code, String)> {
    let status = outcome.as_ref().err()?;
    let (code, reason, ..) = error_parts(status);
    reason.starts_with("SYS_AUTH_").then_some((code, reason))
}

#[tokio::test]
async fn each_role_may_call_what_the_table_says_and_no_more() {
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
    let server = Server::start_with_file(&file, &[]).await;
    let client = connect(server.grpc_address).await;
    for (method, least) in PROTECTED {
        for (rank, token) in TOKENS.iter().enumerate() {
            let outcome = call(&client, method, Some(&format!("Bearer {token}"))).await;
            let denied = (Code::PermissionDenied, "SYS_AUTH_PERMISSION_DENIED".to_owned());
            let expected = (rank < least).then_some(denied);
            assert_eq!(refusal(&outcome), expected, "{} {method}: {outcome:?}", ROLES[rank]);
        }
    }
}

#[tokio::test]
async fn a_missing_or_wrong_token_is_rejected() {
    let server = Server::start(&[]).await;
    let client = connect(server.grpc_address).await;
    let missing = (Code::Unauthenticated, "SYS_AUTH_MISSING_TOKEN".to_owned());
    let invalid = (Code::Unauthenticated, "SYS_AUTH_TOKEN_INVALID".to_owned());
    for (method, _) in PROTECTED {
        for none in [None, Some(""), Some("Bearer "), Some("Basic YTpi")] {
            assert_eq!(
                refusal(&call(&client, method, none).await),
                Some(missing.clone()),
                "{method} {none:?}"
            );
        }
        let outcome = call(&client, method, Some("Bearer hg_wrong")).await;
        assert_eq!(refusal(&outcome), Some(invalid.clone()), "{method}");
        assert!(!outcome.unwrap_err().message().contains("hg_wrong"));
    }
}

#[tokio::test]
async fn two_tokens_are_as_good_as_none() {
    let server = Server::start(&[]).await;
    let mut client = connect(server.grpc_address).await;
    let valid = server.admin_token.as_ref().unwrap();
    let mut request = by(valid, ListRulesRequest::default());
    assert!(client.list_rules(by(valid, ListRulesRequest::default())).await.is_ok());
    request.metadata_mut().append("authorization", MetadataValue::from_static("Bearer hg_wrong"));
    let outcome = client.list_rules(request).await.map(drop);
    let invalid = (Code::Unauthenticated, "SYS_AUTH_TOKEN_INVALID".to_owned());
    assert_eq!(refusal(&outcome), Some(invalid));
}

#[tokio::test]
async fn checks_need_no_token() {
    let server = Server::start(&[]).await;
    let client = connect(server.grpc_address).await;
    for authorization in [None, Some("Bearer hg_wrong")] {
        let outcome = call(&client, "CheckRateLimit", authorization).await;
        assert_eq!(outcome.unwrap_err().code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn with_authentication_off_every_call_is_allowed() {
    let server = Server::start(&[("auth.mode", "off")]).await;
    let client = connect(server.grpc_address).await;
    for (method, _) in PROTECTED {
        assert_eq!(refusal(&call(&client, method, None).await), None, "{method}");
    }
}
