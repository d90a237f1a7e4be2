//! Rate limits.

use hyper::Request;
use serde_json::json;

use super::harness::{START, Server, keys};

const HINT: &str = "/v1/bootstrap/hints/latest";
const HERE: &str = "198.51.100.1";
const THERE: &str = "198.51.100.2";

#[tokio::test]
async fn beyond_the_public_limit_an_address_is_denied() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 1}})).await;
    let first = server.get_from(HERE, HINT).await;
    first.is(204);
    let second = server.get_from(HERE, HINT).await;
    second.is_limited();
    assert!(second.header("ratelimit-policy").is_some(), "{:?}", second.headers);
    assert!(second.header("x-request-id").is_some());
    server.get_from(THERE, HINT).await.is(204);
    // Policies have a budget of their own, as large as that of bootstrap.
    server.get_from(HERE, "/v1/policies/current").await.is(200);
    server.get_from(HERE, "/v1/policies/current").await.is_limited();
    // Unknown paths are limited, too.
    server.get_from(HERE, "/nowhere").await.is_limited();
}

#[tokio::test]
async fn challenges_and_their_answers_share_one_strict_limit() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"auth_per_minute": 2}})).await;
    let keys = keys(1);
    let challenge = server.challenge(&keys, HERE).await;
    server.verify(&server.answer(&keys, &challenge, START), HERE).await.is(200);
    server.post(HERE, "/v1/auth/challenge", &json!({})).await.is_limited();
    server.post(HERE, "/v1/auth/verify", &json!({})).await.is_limited();
    server.challenge(&keys, THERE).await;
    // Other entrances are not limited.
    server.get_from(HERE, HINT).await.is(204);
}

#[tokio::test]
async fn a_key_has_one_limit_across_addresses_and_tokens() {
    let server = Server::start().await;
    let rates = json!({"http": {"by_pubkey": 2, "by_ip": 100}});
    server.configure("user-api", json!({"rate_limit": rates})).await;
    let ada = server.client(1, HERE).await;
    ada.get("/v1/trending").await.is(200);
    ada.get_from(THERE, "/v1/trending").await.is(200);
    ada.get_from("198.51.100.3", "/v1/trending").await.is_limited();
    let again = server.client(1, "198.51.100.4").await;
    assert_eq!(again.pubkey(), ada.pubkey());
    again.get("/v1/trending").await.is_limited();
    // Another key at the same address has its own limit.
    server.client(2, HERE).await.get("/v1/trending").await.is(200);
}

#[tokio::test]
async fn an_address_has_one_limit_across_keys() {
    let server = Server::start().await;
    let rates = json!({"http": {"by_pubkey": 100, "by_ip": 3}});
    server.configure("user-api", json!({"rate_limit": rates})).await;
    let [ada, bob] = [server.client(1, HERE).await, server.client(2, HERE).await];
    for client in [&ada, &bob, &ada] {
        client.get("/v1/trending").await.is(200);
    }
    bob.get("/v1/trending").await.is_limited();
    bob.get_from(THERE, "/v1/trending").await.is(200);
}

#[tokio::test]
async fn a_request_denied_by_key_is_not_charged_to_the_address() {
    let server = Server::start().await;
    let rates = json!({"http": {"by_pubkey": 1, "by_ip": 3}});
    server.configure("user-api", json!({"rate_limit": rates})).await;
    let ada = server.client(1, HERE).await;
    ada.get("/v1/trending").await.is(200);
    for _ in 0..2 {
        ada.get("/v1/trending").await.is_limited();
    }
    for whose in [2, 3] {
        server.client(whose, HERE).await.get("/v1/trending").await.is(200);
    }
}

#[tokio::test]
async fn a_flood_without_tokens_is_denied_before_tokens_are_verified() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"http": {"by_ip": 2}}})).await;
    for _ in 0..4 {
        server.get_from(HERE, "/v1/trending").await.is_refused(401, "AUTH_REQUIRED");
    }
    server.get_from(HERE, "/v1/trending").await.is_limited();
    // Requests are not parsed, valid or not.
    let nonsense = Request::post("/v1/reports").header("x-forwarded-for", HERE);
    server.send(nonsense, "{").await.is_limited();
}

#[tokio::test]
async fn requests_with_a_token_have_the_public_limit_by_default() {
    let server = Server::start().await;
    server.configure("user-api", json!({})).await;
    let ada = server.client(1, HERE).await;
    let replies = [
        (server.get_from(HERE, HINT).await, 204, r#""bootstrap";q=120;w=60"#),
        (server.get_from(HERE, "/v1/policies/current").await, 200, r#""public";q=120;w=60"#),
        (ada.get("/v1/trending").await, 200, r#""protected";q=120;w=60"#),
        // Without a token an address gets 401 twice as often before it is limited.
        (server.get_from(HERE, "/v1/trending").await, 401, r#""protected";q=240;w=60"#),
    ];
    for (reply, status, policy) in replies {
        reply.is(status);
        assert_eq!(reply.header("ratelimit-policy"), Some(policy));
    }
}

#[tokio::test]
async fn bootstrap_and_admin_logins_are_limited_even_if_limits_are_switched_off() {
    let server = Server::start().await;
    let rates = json!({"enabled": false, "public_per_minute": 1, "admin_login_per_minute": 3});
    server.configure("user-api", json!({"rate_limit": rates})).await;
    server.configure("bootstrap", json!({"auth": {"mode": "off"}})).await;
    for _ in 0..3 {
        server.get_from(HERE, "/v1/policies/current").await.is(200);
    }
    server.get_from(HERE, HINT).await.is(204);
    server.get_from(HERE, HINT).await.is_limited();
    // Bootstrap can have a limit of its own.
    server.configure("bootstrap", json!({"rate_limit": {"by_ip": 2}})).await;
    server.get_from(THERE, HINT).await.is(204);
    server.get_from(THERE, HINT).await.is(204);
    server.get_from(THERE, HINT).await.is_limited();

    // The test has signed in once already.
    for _ in 0..2 {
        server.login("wrong").await.is_refused(401, "AUTH_FAILED");
    }
    server.login("wrong").await.is_limited();
}

#[tokio::test]
async fn limits_change_while_the_node_runs_and_usage_stays_counted() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 1}})).await;
    server.get_from(HERE, HINT).await.is(204);
    server.get_from(HERE, HINT).await.is_limited();
    server.configure("user-api", json!({"rate_limit": {"public_per_minute": 3}})).await;
    server.get_from(HERE, HINT).await.is(204);
    server.get_from(HERE, HINT).await.is(204);
    server.get_from(HERE, HINT).await.is_limited();
}

#[tokio::test]
async fn bootstrap_can_require_authentication() {
    let server = Server::start().await;
    let descriptor = json!({"name": "a node"});
    let config = json!({
        "auth": {"mode": "required"},
        "descriptor": descriptor,
        "nodes": [{"name": "another"}],
        "hint": {"look": "there"},
        "topics": {"rust": [{"service": "index"}]},
    });
    server.configure("bootstrap", config.clone()).await;
    let paths = ["/v1/bootstrap/nodes", HINT, "/v1/bootstrap/topics/rust/services"];
    for path in paths {
        server.get_from(HERE, path).await.is_refused(401, "AUTH_REQUIRED");
    }
    let ada = server.client(1, HERE).await;
    let nodes = ada.get(paths[0]).await.json();
    assert_eq!(nodes["items"], json!([{"name": "a node"}, {"name": "another"}]));
    assert_eq!(ada.get(paths[1]).await.json(), json!({"look": "there"}));
    assert_eq!(ada.get(paths[2]).await.json()["items"], json!([{"service": "index"}]));
    ada.get("/v1/bootstrap/topics/go/services").await.is(200);
    ada.get("/v1/bootstrap/topics/a%20b/services").await.is_refused(400, "INVALID_TOPIC");

    let open = json!({"auth": {"mode": "required", "enforce_at": 4_102_444_800_u64}});
    server.configure("bootstrap", open).await;
    server.get_from(HERE, paths[0]).await.is(200);
}
