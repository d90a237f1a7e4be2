//! Authentication, and sign-in to the console at the issuer.

use headgate::{Clock as _, SystemClock};
use headgate_testkit::{CertificateAuthority, Issuer, Nginx, require};
use hyper::Request;
use serde_json::json;

use super::Reloadable;
use crate::{
    console::session::{arrive, travel},
    harness::RULES,
};

/// A token that is accepted in every test.
const ROOT: &str = "root-token-0123456789";

/// The section `auth` with that token and these keys.
fn auth(keys: &str) -> String {
    format!("auth: {{tokens: [{{name: root, role: sys_admin, token: {ROOT}}}]{keys}}}\n")
}

/// Replaces the file and reloads with the token.
async fn reload(server: &Reloadable, yaml: &str) {
    let reply = server.reload_with(ROOT, yaml).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
}

/// Status of a request with this token.
async fn rules(server: &Reloadable, token: &str) -> u16 {
    server.server.with_token(Some(token), "GET", RULES, "").await.status.as_u16()
}

#[tokio::test]
async fn mode() {
    let server = Reloadable::start("").await;
    assert_eq!(rules(&server, "unknown").await, 401);
    assert_eq!(server.reload("auth: {mode: 'off'}\n").await, ["auth.mode"]);
    assert_eq!(rules(&server, "unknown").await, 200);
    assert_eq!(server.reload("").await, ["auth.mode"]);
    assert_eq!(rules(&server, "unknown").await, 401);
}

#[tokio::test]
async fn leeway_and_lifetime_of_the_issuers_keys() {
    let issuer = Issuer::start();
    let jwks = issuer.url();
    let with = |keys: &str| auth(&format!(", jwks_url: '{jwks}'{keys}"));
    let server = Reloadable::start(&with(", leeway_seconds: 300")).await;
    let now = SystemClock::new().now().as_micros() / 1_000_000;
    let claims = json!({
        "email": "a@example.com", "realm_access": {"roles": ["sys_auditor"]},
        "exp": now - 5,
    });
    let (expired, valid) = (issuer.token(claims), issuer.token_for("sys_auditor"));
    server.server.until_known(&valid).await;
    assert_eq!((rules(&server, &expired).await, rules(&server, &valid).await), (200, 200));
    reload(&server, &with(", leeway_seconds: 0")).await;
    server.server.until_known(&valid).await;
    assert_eq!((rules(&server, &expired).await, rules(&server, &valid).await), (401, 200));
    // Keys are fetched again under another lifetime.
    let fetches = issuer.fetches();
    reload(&server, &with(", leeway_seconds: 0, jwks_cache_seconds: 1")).await;
    server.server.until_known(&valid).await;
    assert!(issuer.fetches() > fetches);
}

#[tokio::test(flavor = "multi_thread")]
async fn authorities_of_the_issuer_are_read_again_from_the_same_file() {
    let issuer = Issuer::start();
    let port = issuer.name().rsplit(':').next().unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [authority, other] = ["authority", "other"].map(CertificateAuthority::new);
    let files = authority.issue(&["127.0.0.1"]).write(folder.path(), "issuer");
    let nginx = require!(Nginx::start_tls(port, &files, None));
    let ca_file = other.write(folder.path());
    let yaml = auth(&format!(
        ", ca_file: {}, jwks_url: 'https://127.0.0.1:{}/certs'",
        ca_file.display(),
        nginx.port()
    ));
    let server = Reloadable::start(&yaml).await;
    let token = issuer.token_for("sys_auditor");
    assert_eq!(rules(&server, &token).await, 401, "the issuer is not trusted");
    authority.write(folder.path());
    let reply = server.reload_with(ROOT, &yaml).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["applied"]), (200, &json!([])));
    server.server.until_known(&token).await;
    assert_eq!(rules(&server, &token).await, 200);
}

#[tokio::test]
async fn urls_of_the_console_and_endpoints_of_the_issuer() {
    let issuer = Issuer::start();
    issuer.sign_in_as("sys_auditor");
    let (jwks, name) = (issuer.url(), issuer.name());
    let with = |console: &str, oidc: &str| {
        format!(
            "{}console: {{{console}oidc: {{client_id: console{oidc}}}}}\n",
            auth(&format!(", jwks_url: '{jwks}', issuer: '{name}'"))
        )
    };
    let endpoints = |authorization: &str, token: &str| {
        format!(", authorization_endpoint: '{authorization}', token_endpoint: '{token}'")
    };
    let nowhere = "http://127.0.0.1:1";
    let server = Reloadable::start(&with("", &endpoints(nowhere, nowhere))).await;
    let host = server.server.address.to_string();
    let leave = async |host: &str| {
        let request = Request::get("/console/oidc").header("host", host);
        server.server.send(request, "").await.header("location").to_owned()
    };
    assert!(leave(&host).await.starts_with(nowhere));

    let authorize = format!("{name}/authorize");
    reload(&server, &with("", &endpoints(&authorize, nowhere))).await;
    assert_eq!(travel(&server.server, &issuer, &host).await, "/console?sign_in=failed");
    reload(&server, &with("", &endpoints(&authorize, &format!("{name}/token")))).await;
    arrive(&server.server, &issuer, &host).await;

    reload(&server, &with("", ", scope: openid extra")).await;
    assert!(leave(&host).await.contains("&scope=openid+extra&"));
    reload(&server, &with("", ", client_id: another").replacen("client_id: console, ", "", 1))
        .await;
    assert!(leave(&host).await.contains("client_id=another&"));

    let redirects_to = async |host: &str, origin: &str| {
        let location = leave(host).await;
        assert!(
            location.contains(&format!("redirect_uri=https%3A%2F%2F{origin}%2F")),
            "{location}"
        );
    };
    reload(&server, &with("public_url: https://gate.example, ", "")).await;
    redirects_to("gate.internal", "gate.example").await;
    let both = "public_url: https://gate.example, other_urls: [https://gate.internal], ";
    reload(&server, &with(both, "")).await;
    redirects_to("gate.internal", "gate.internal").await;
}
