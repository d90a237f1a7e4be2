//! Signing in and out, and protection of the cookie against other sites.

use std::time::Duration;

use headgate_testkit::{IdToken, Issuer};
use hyper::Request;
use serde_json::json;
use tokio::time::{sleep, timeout};

use super::{SESSION, TOKENS, ask, sign_in};
use crate::harness::{RULES, Server, exchange};

#[tokio::test]
async fn the_pages_have_no_inline_scripts_and_load_nothing_from_elsewhere() {
    let server = Server::start(&[]).await;
    for path in ["/console", "/console/"] {
        let page = server.get(path).await;
        assert_eq!(
            (page.status.as_u16(), page.header("content-type")),
            (200, "text/html; charset=utf-8")
        );
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"));
        for name in page.text.split("/console/assets/").skip(1) {
            let name = name.split('"').next().unwrap();
            let path = format!("/console/assets/{name}");
            let asset = server.get(&path).await;
            assert_eq!(asset.status, 200, "{name}");
            let known = Request::get(path).header("if-none-match", asset.header("etag"));
            let again = server.send(known, "").await;
            assert_eq!((again.status.as_u16(), again.text.len()), (304, 0), "{name}");
        }
    }
    assert_eq!(server.get("/console/assets/../session").await.status, 404);
    assert_eq!(server.get("/console/assets/nothing.js").await.status, 404);
}

#[tokio::test]
async fn the_console_can_be_disabled() {
    let server = Server::start(&[("console.enabled", "false")]).await;
    for path in ["/console", SESSION, "/console/overview"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn every_kind_of_token_opens_a_session_of_its_role() {
    let issuer = Issuer::start();
    let server = Server::start(&[("auth.tokens", TOKENS), ("auth.jwks_url", &issuer.url())]).await;
    let jwt = issuer.token_for("sys_operator");
    server.until_known(&jwt).await;
    for (token, actor, role, may_delete) in [
        ("admin-token-0123456789", "root", "sys_admin", true),
        ("auditor-token-0123456789", "eyes", "sys_auditor", false),
        (&*jwt, "sys_operator@example.com", "sys_operator", false),
    ] {
        let cookie = sign_in(&server, token).await;
        let session = ask(&server, "GET", SESSION, &cookie, "").await.json();
        assert_eq!((&session["actor"], &session["role"]), (&json!(actor), &json!(role)));
        let can = session["can"].as_array().unwrap();
        assert_eq!(can.contains(&json!("delete_rules")), may_delete, "{session}");
        assert!(can.contains(&json!("read_rules")));
        assert_eq!(ask(&server, "GET", RULES, &cookie, "").await.status, 200);
        let unknown = format!("{RULES}/00000000-0000-0000-0000-000000000000");
        let deleted = ask(&server, "DELETE", &unknown, &cookie, "").await.status;
        assert_eq!(deleted, if may_delete { 404 } else { 403 });
    }
    let own = Server::start(&[]).await;
    let cookie = sign_in(&own, own.admin_token.as_deref().unwrap()).await;
    assert_eq!(ask(&own, "GET", SESSION, &cookie, "").await.json()["actor"], "admin");
}

#[tokio::test]
async fn invalid_credentials_open_no_session() {
    let issuer = Issuer::start();
    let server = Server::start(&[("auth.jwks_url", &issuer.url())]).await;
    server.until_known(&issuer.token_for("sys_admin")).await;
    let visitor_token = issuer.token(json!({"realm_access": {"roles": ["visitor"]}}));
    let expired = issuer.token(json!({"exp": 1, "realm_access": {"roles": ["sys_admin"]}}));
    let long = "x".repeat(20_000);
    for (token, status) in
        [("", 400), ("wrong", 401), (&*visitor_token, 403), (&*expired, 401), (&*long, 401)]
    {
        let body = json!({ "token": token }).to_string();
        let reply = ask(&server, "POST", SESSION, "", &body).await;
        assert_eq!(reply.status, status, "{}", reply.text);
        assert_eq!(reply.header("set-cookie"), "");
    }
    let session = ask(&server, "GET", SESSION, "headgate_session=guessed", "").await.json();
    assert_eq!((&session["signed_in"], &session["can"]), (&json!(false), &json!([])));
}

#[tokio::test]
async fn a_cookie_works_only_from_the_consoles_own_pages() {
    let server = Server::start(&[("auth.tokens", TOKENS)]).await;
    let body = r#"{"token":"admin-token-0123456789"}"#;
    let request = || Request::post(SESSION).header("content-type", "application/json");
    let unmarked = server.send(request(), body).await;
    assert_eq!((unmarked.status.as_u16(), unmarked.header("set-cookie")), (403, ""));
    let foreign =
        request().header("x-headgate-console", "1").header("origin", "http://evil.example");
    assert_eq!(server.send(foreign, body).await.status, 403);

    let secure =
        request().header("x-headgate-console", "1").header("sec-fetch-site", "same-origin");
    let secure = server.send(secure.header("origin", "https://gate.example"), body).await;
    let cookie = secure.header("set-cookie");
    let (_, attributes) = cookie.split_once("; Path=/; Max-Age=").expect(cookie);
    let (age, attributes) = attributes.split_once("; ").expect(cookie);
    // Eight hours, less the time since.
    assert!((28_700..=28_800).contains(&age.parse::<u32>().unwrap()), "{cookie}");
    assert_eq!(attributes, "HttpOnly; SameSite=Strict; Secure");

    let cookie = cookie.split(';').next().unwrap();
    let with = |name, value| Request::get(RULES).header("cookie", cookie).header(name, value);
    for request in [with("accept", "*/*"), with("sec-fetch-site", "same-origin")] {
        let reply = server.send(request, "").await;
        assert_eq!(
            (reply.status.as_u16(), reply.json()["error"]["code"].clone()),
            (403, json!("SYS_AUTH_CROSS_SITE"))
        );
    }
    let elsewhere = with("x-headgate-console", "1").header("sec-fetch-site", "cross-site");
    assert_eq!(server.send(elsewhere, "").await.status, 403);
    // A token works as usual.
    let token = with("authorization", "Bearer auditor-token-0123456789");
    assert_eq!(server.send(token, "").await.status, 200);
}

#[tokio::test]
async fn a_session_ends_at_sign_out() {
    let server = Server::start(&[("auth.tokens", TOKENS)]).await;
    let cookie = sign_in(&server, "operator-token-0123456789").await;
    let gone = ask(&server, "DELETE", SESSION, &cookie, "").await;
    assert_eq!(gone.status, 204);
    assert!(gone.header("set-cookie").contains("Max-Age=0"));
    let reply = ask(&server, "GET", RULES, &cookie, "").await;
    assert_eq!(
        (reply.status.as_u16(), reply.json()["error"]["code"].clone()),
        (401, json!("SYS_AUTH_SESSION_ENDED"))
    );
}

#[tokio::test]
async fn the_audit_log_names_who_is_signed_in() {
    let server = Server::start(&[("auth.tokens", TOKENS)]).await;
    let cookie = sign_in(&server, "operator-token-0123456789").await;
    let rule = r#"{"scope":"user","identifier_pattern":"u1","limit":5,"window_seconds":60}"#;
    let made = ask(&server, "POST", RULES, &cookie, rule).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let audit = ask(&server, "GET", "/api/v1/ratelimit/audit", &cookie, "").await.json();
    let entry = &audit["entries"][0];
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("ops"), &json!("rule.create")));
    assert_eq!(entry["request_id"], made.header("x-request-id"));
}

#[tokio::test]
async fn a_callback_without_a_started_sign_in_is_rejected() {
    let issuer = Issuer::start();
    issuer.sign_in_as("sys_auditor");
    let keys = [
        ("auth.jwks_url", &*issuer.url()),
        ("console.oidc.client_id", "console"),
        ("console.oidc.authorization_endpoint", &*format!("{}/authorize", issuer.name())),
        ("console.oidc.token_endpoint", &*format!("{}/token", issuer.name())),
        ("console.public_url", "https://gate.example/"),
    ];
    let server = Server::start(&keys).await;
    assert_eq!(ask(&server, "GET", SESSION, "", "").await.json()["oidc"], true);
    let left = server.get("/console/oidc").await;
    assert_eq!(left.status, 303);
    let location = left.header("location");
    assert!(
        location.contains("redirect_uri=https%3A%2F%2Fgate.example%2Fconsole%2Foidc%2Fcallback")
    );
    assert!(location.contains("code_challenge_method=S256"), "{location}");
    let cookie = left.header("set-cookie").split(';').next().unwrap();
    let state = cookie.split('=').nth(1).unwrap();
    let back = format!("/console/oidc/callback?code=guessed&state={state}");
    for cookie in ["", "headgate_sign_in=another", cookie, cookie] {
        let reply = server.send(Request::get(&back).header("cookie", cookie), "").await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("location")),
            (303, "/console?sign_in=failed")
        );
        assert!(!reply.header("set-cookie").contains("headgate_session"));
    }
    let without = Server::start(&[]).await;
    assert_eq!(without.get("/console/oidc").await.status, 404);
    assert_eq!(without.get("/console/oidc/callback").await.status, 404);
}

/// Signs in at the issuer like a browser that reached `server` as `host`; returns the final
/// location.
pub(crate) async fn travel(server: &Server, issuer: &Issuer, host: &str) -> String {
    let left = server.send(Request::get("/console/oidc").header("host", host), "").await;
    let cookie = left.header("set-cookie").split(';').next().unwrap().to_owned();
    let location = left.header("location").to_owned();
    let Some(path) = location.strip_prefix(&issuer.name()) else { return location };
    let address = issuer.name().trim_start_matches("http://").parse().unwrap();
    let sent_back = exchange(address, Request::get(path), "").await;
    let back = sent_back.header("location").split_once(host).unwrap().1.to_owned();
    let back = Request::get(back).header("host", host).header("cookie", cookie);
    let home = server.send(back, "").await;
    let cookies: Vec<_> = home.headers.get_all("set-cookie").iter().collect();
    let signed_in = cookies.iter().any(|it| it.to_str().unwrap().starts_with("headgate_session="));
    assert_eq!(signed_in, home.header("location") == "/console");
    home.header("location").to_owned()
}

/// Signs in like `travel`, again if the issuer answers too late, as on a busy machine.
pub(crate) async fn arrive(server: &Server, issuer: &Issuer, host: &str) {
    let arrived = async {
        while travel(server, issuer, host).await != "/console" {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(Duration::from_secs(120), arrived).await.expect("a sign-in");
}

/// Anyone may begin a sign-in.
#[tokio::test]
async fn a_flood_of_sign_ins_does_not_end_others() {
    let issuer = Issuer::start();
    issuer.sign_in_as("sys_auditor");
    let keys = [
        ("auth.jwks_url", &*issuer.url()),
        ("auth.issuer", &*issuer.name()),
        ("console.oidc.client_id", "console"),
    ];
    let server = Server::start(&keys).await;
    let host = server.address.to_string();
    let leave = || server.send(Request::get("/console/oidc").header("host", &host), "");
    let left = leave().await;
    let cookie = left.header("set-cookie").split(';').next().unwrap().to_owned();
    for _ in 0..1_100 {
        assert!(leave().await.header("location").starts_with(&issuer.name()));
    }
    let path = left.header("location").strip_prefix(&issuer.name()).unwrap();
    let address = issuer.name().trim_start_matches("http://").parse().unwrap();
    let sent_back = exchange(address, Request::get(path), "").await;
    let back = sent_back.header("location").split_once(&host).unwrap().1.to_owned();
    let back = Request::get(back).header("host", &host).header("cookie", cookie);
    let home = server.send(back, "").await;
    assert_eq!(home.header("location"), "/console");
}

#[tokio::test]
async fn an_id_token_of_another_sign_in_opens_nothing() {
    let issuer = Issuer::start();
    issuer.sign_in_as("sys_auditor");
    let keys = [
        ("auth.jwks_url", &*issuer.url()),
        ("auth.issuer", &*issuer.name()),
        ("console.oidc.client_id", "console"),
    ];
    let server = Server::start(&keys).await;
    let host = server.address.to_string();
    arrive(&server, &issuer, &host).await;
    for other in [IdToken::Nonce("another".to_owned()), IdToken::Missing] {
        issuer.give_id_token(other);
        assert_eq!(travel(&server, &issuer, &host).await, "/console?sign_in=failed");
    }
    issuer.give_id_token(IdToken::Requested);
    arrive(&server, &issuer, &host).await;
    // Without the scope `openid`, no id token is required.
    let keys = [&keys[..], &[("console.oidc.scope", "profile")]].concat();
    let server = Server::start(&keys).await;
    issuer.give_id_token(IdToken::Missing);
    arrive(&server, &issuer, &server.address.to_string()).await;
}

#[tokio::test]
async fn redirects_to_unlisted_hosts_are_refused() {
    let issuer = Issuer::start();
    let (jwks, name) = (issuer.url(), issuer.name());
    let mut keys = vec![
        ("auth.jwks_url", &*jwks),
        ("auth.issuer", &*name),
        ("console.oidc.client_id", "console"),
    ];
    let leave = async |server: &Server, host: &str| {
        let request = Request::get("/console/oidc").header("host", host);
        let request = request.header("x-forwarded-proto", "https");
        server.send(request, "").await.header("location").to_owned()
    };
    let server = Server::start(&keys).await;
    for host in ["evil.example", "127.0.0.1.evil.example", "evil@localhost"] {
        assert_eq!(leave(&server, host).await, "/console?sign_in=failed", "{host}");
    }
    keys.push(("console.public_url", "https://gate.example"));
    keys.push(("console.other_urls", "https://gate.internal:8443"));
    let server = Server::start(&keys).await;
    for (host, origin) in [
        ("gate.internal:8443", "https%3A%2F%2Fgate.internal%3A8443"),
        ("gate.example", "https%3A%2F%2Fgate.example"),
        ("evil.example", "https%3A%2F%2Fgate.example"),
    ] {
        let location = leave(&server, host).await;
        let expected = format!("redirect_uri={origin}%2Fconsole%2Foidc%2Fcallback");
        assert!(location.contains(&expected), "{host}: {location}");
        assert!(location.contains("&nonce="), "{location}");
    }
}

#[tokio::test]
async fn with_auth_off_no_sign_in_is_needed() {
    let server = Server::start(&[("auth.mode", "off")]).await;
    let session = ask(&server, "GET", SESSION, "", "").await.json();
    assert_eq!((&session["signed_in"], &session["can_sign_out"]), (&json!(true), &json!(false)));
    assert_eq!(ask(&server, "GET", "/console/overview", "", "").await.status, 200);
    assert_eq!(ask(&server, "GET", RULES, "headgate_session=old", "").await.status, 200);
}
