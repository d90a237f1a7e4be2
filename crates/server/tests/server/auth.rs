//! Permissions of the roles over REST.

use hyper::Request;
use serde_json::json;

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, RULES, Server},
};

/// Every protected request, with the least role that may make it.
fn protected() -> Vec<(&'static str, String, String, usize)> {
    let id = "550e8400-e29b-41d4-a716-446655440000";
    let rule =
        json!({"scope": "user", "identifier_pattern": "*", "limit": 1, "window_seconds": 60})
            .to_string();
    let subject = json!({"scope": "user", "identifier": "u1"}).to_string();
    let api = |path: &str| format!("/api/v1/ratelimit/{path}");
    vec![
        ("GET", api("rules"), String::new(), 0),
        ("GET", api(&format!("rules/{id}")), String::new(), 0),
        ("GET", api(&format!("usage?rule_id={id}")), String::new(), 0),
        ("GET", api("explain?scope=user&identifier=u1"), String::new(), 0),
        ("GET", api("holders?scope=user&identifier=u1"), String::new(), 0),
        ("POST", api("holders"), json!({"attributes": {"user": "u1"}}).to_string(), 0),
        ("GET", api("audit"), String::new(), 0),
        ("POST", api("rules"), rule.clone(), 1),
        ("PUT", api("rules"), json!({"rules": []}).to_string(), 1),
        ("PUT", api(&format!("rules/{id}")), rule, 1),
        ("POST", api("holders/AAAAAAAAAA/end"), subject.clone(), 1),
        ("POST", api("reset"), subject, 1),
        ("DELETE", api(&format!("rules/{id}")), String::new(), 2),
        ("POST", "/api/v1/config/reload".to_owned(), String::new(), 2),
    ]
}

const ROLES: [&str; 3] = ["sys_auditor", "sys_operator", "sys_admin"];
const TOKENS: [&str; 3] = [
    "auditor-token-0123456789abcdef0123456789",
    "operator-token-0123456789abcdef012345678",
    "admin-token-0123456789abcdef0123456789ab",
];

on_both_backends!(
    each_role_may_do_what_the_table_says_and_no_more,
    a_missing_or_wrong_token_is_rejected,
    checks_health_and_metrics_need_no_token,
    with_authentication_off_every_request_is_allowed,
);

async fn each_role_may_do_what_the_table_says_and_no_more(backend: &Backend) {
    let folder = tempfile::tempdir().unwrap();
    let named = ROLES.iter().zip(TOKENS).map(|(role, token)| {
        let file = folder.path().join(role);
        std::fs::write(&file, token).unwrap();
        format!("{{name: the-{role}, role: {role}, token_file: {}}}", file.display())
    });
    let tokens = format!("[{}]", named.collect::<Vec<_>>().join(", "));
    let server = backend.serve(&[("auth.tokens", &tokens)]).await;
    for (method, path, body, least) in protected() {
        for (rank, token) in TOKENS.iter().enumerate() {
            let reply = server.with_token(Some(token), method, &path, &body).await;
            let refused = reply.status == 403;
            assert_eq!(refused, rank < least, "{} {method} {path}: {}", ROLES[rank], reply.text);
            if refused {
                assert_eq!(reply.json()["error"]["code"], "SYS_AUTH_PERMISSION_DENIED");
            }
        }
    }
    let body =
        server.with_token(Some(TOKENS[0]), "GET", "/api/v1/ratelimit/audit", "").await.json();
    assert_eq!(body["entries"][0]["actor"], "the-sys_admin", "{body}");
}

async fn a_missing_or_wrong_token_is_rejected(backend: &Backend) {
    let server = backend.serve(&[]).await;
    for (method, path, body, _) in protected() {
        let missing = server.with_token(None, method, &path, &body).await;
        assert_eq!(missing.status, 401, "{method} {path}");
        assert_eq!(missing.header("www-authenticate"), "Bearer");
        assert_eq!(missing.json()["error"]["code"], "SYS_AUTH_MISSING_TOKEN");
        assert_eq!(missing.json()["error"]["request_id"], missing.header("x-request-id"));
        let wrong = server.with_token(Some("hg_wrong"), method, &path, &body).await;
        assert_eq!(wrong.status, 401, "{method} {path}");
        assert_eq!(wrong.json()["error"]["code"], "SYS_AUTH_TOKEN_INVALID");
        assert!(!wrong.text.contains("hg_wrong"));
    }
}

/// A proxy in front may have verified the other one.
#[tokio::test]
async fn two_tokens_are_as_good_as_none() {
    let server = Server::start(&[]).await;
    let valid = format!("Bearer {}", server.admin_token.as_ref().unwrap());
    for (first, second) in [(&*valid, "Bearer hg_wrong"), ("Bearer hg_wrong", &*valid)] {
        let request = Request::get(RULES).header("authorization", first);
        let reply = server.send(request.header("authorization", second), "").await;
        assert_eq!(reply.status, 401, "{}", reply.text);
        assert_eq!(reply.json()["error"]["code"], "SYS_AUTH_TOKEN_INVALID");
    }
    assert_eq!(
        server.send(Request::get(RULES).header("authorization", valid), "").await.status,
        200
    );
}

async fn checks_health_and_metrics_need_no_token(backend: &Backend) {
    let server = backend.serve(&[]).await;
    assert_eq!(server.check_user("u1").await.status, 200);
    let body = json!({"checks": [{"scope": "user", "identifier": "u1"}]}).to_string();
    assert_eq!(server.post(&format!("{CHECK}/batch"), &body).await.status, 200);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

async fn with_authentication_off_every_request_is_allowed(backend: &Backend) {
    let server = backend.serve(&[("auth.mode", "off")]).await;
    assert_eq!(server.admin_token, None);
    assert_eq!(server.with_token(None, "GET", RULES, "").await.status, 200);
}
