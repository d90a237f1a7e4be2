//! The administrator's session.

use hyper::Request;
use serde_json::json;

use super::harness::{PASSWORD, Server};

const SERVICES: &str = "/v1/admin/services";

#[tokio::test]
async fn the_password_opens_a_session_that_scripts_and_other_sites_cannot_use() {
    let server = Server::start().await;
    for path in [SERVICES, "/v1/admin/services/relay/config", "/v1/admin/audit-logs"] {
        server.get(path).await.is_refused(401, "AUTH_REQUIRED");
    }
    server.login("wrong").await.is_refused(401, "AUTH_FAILED");
    let reply = server.login(PASSWORD).await;
    reply.is(200);
    assert_eq!(reply.json()["admin_user_id"], "admin");
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    let (session, attributes) = cookie.split_once(';').unwrap();
    assert!(session.starts_with("cn_admin_session="), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Strict", "Max-Age=86400", "Path=/v1/admin"] {
        assert!(attributes.contains(attribute), "{cookie}");
    }
    let with = |cookie: &str| Request::get(SERVICES).header("cookie", cookie);
    server.send(with(&format!("a=b; {session}; c=d")), "").await.is(200);
    server.send(with("cn_admin_session=guess"), "").await.is_refused(401, "AUTH_REQUIRED");

    let logout = Request::post("/v1/admin/logout").header("cookie", session);
    server.send(logout, "").await.is(200);
    server.send(with(session), "").await.is_refused(401, "AUTH_REQUIRED");
    server.send(Request::post("/v1/admin/logout"), "").await.is(200);
    server.send(Request::post("/v1/admin/login"), "{").await.is_refused(400, "INVALID_JSON");
}

#[tokio::test]
async fn over_tls_the_cookie_is_secure() {
    let server = Server::with(&[("CN_PUBLIC_URL", "wss://node.example/relay")]).await;
    let reply = server.login(PASSWORD).await;
    assert!(reply.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[tokio::test]
async fn without_a_password_the_admin_api_is_closed() {
    let server = Server::with(&[("CN_ADMIN_PASSWORD", "")]).await;
    let reply = server.post("192.0.2.1", "/v1/admin/login", &json!({"password": ""})).await;
    reply.is_refused(403, "ADMIN_CLOSED");
    server.get(SERVICES).await.is_refused(401, "AUTH_REQUIRED");
}
