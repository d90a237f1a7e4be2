//! Forged tokens, on both surfaces.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate_testkit::{Algorithm, Issuer, SigningKey};
use ring::hmac;
use serde_json::{Value, json};
use tonic::Code;

use crate::{
    grpc::client::{Client, ListRulesRequest, by, connect, error_parts},
    harness::{RULES, Server},
};

/// An error: status of REST and gRPC, and their messages.
type Refusal = (u16, Code, String, String);

async fn start(issuer: &Issuer) -> (Server, Client) {
    let keys = [("auth.jwks_url", issuer.url()), ("auth.issuer", issuer.name())];
    let keys = keys.each_ref().map(|(key, value)| (*key, value.as_str()));
    let server = Server::start(&keys).await;
    server.until_known(&issuer.token_for("sys_auditor")).await;
    let client = connect(server.grpc_address).await;
    (server, client)
}

/// Lists the rules on both surfaces, which must agree.
async fn list(server: &Server, client: &Client, token: &str) -> Result<(), Refusal> {
    let reply = server.with_token(Some(token), "GET", RULES, "").await;
    let call = client.clone().list_rules(by(token, ListRulesRequest::default())).await;
    let Err(status) = call else {
        assert_eq!(reply.status, 200, "{}", reply.text);
        return Ok(());
    };
    let (code, reason, ..) = error_parts(&status);
    let error = reply.json()["error"].take();
    assert_eq!(error["code"], reason);
    assert_eq!(error["message"], status.message());
    Err((reply.status.as_u16(), code, reason, status.message().to_owned()))
}

/// A token whose signature is an HMAC with the issuer's public key.
fn hmac_with_public_key(public: &Value, claims: &Value) -> String {
    let header = json!({"alg": "HS256", "kid": public["kid"]});
    let message = [&header, claims].map(|part| URL_SAFE.encode(part.to_string())).join(".");
    let point = [&public["x"], &public["y"]]
        .map(|coordinate| URL_SAFE.decode(coordinate.as_str().unwrap()).unwrap())
        .concat();
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &point), message.as_bytes());
    format!("{message}.{}", URL_SAFE.encode(signature))
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_are_refused() {
    let issuer = Issuer::start();
    let key = issuer.publish(SigningKey::generate("key-2", Algorithm::Es256));
    let (server, client) = start(&issuer).await;
    list(&server, &client, &issuer.token_for("sys_auditor")).await.unwrap();

    let with = |mut claims: Value| {
        claims["realm_access"] = json!({"roles": ["sys_admin"]});
        issuer.claims(claims)
    };
    let good = with(json!({}));
    let stranger = |kid| SigningKey::generate(kid, Algorithm::Es256);
    let [header, claims, _] = splits(&key.sign(&good));
    let cases = [
        ("another's signature", stranger("key-2").sign(&good)),
        ("an unknown kid", stranger("key-3").sign(&good)),
        ("no signature", format!("{header}.{claims}.")),
        ("alg none", key.sign_with(&json!({"alg": "none", "kid": "key-2"}), &good)),
        ("HS256 with the public key", hmac_with_public_key(&key.jwk(), &good)),
        ("expired", key.sign(&with(json!({"exp": 1_700_000_000})))),
        ("not valid yet", key.sign(&with(json!({"nbf": 4_000_000_000_u64})))),
        ("another issuer", key.sign(&with(json!({"iss": "https://evil.example"})))),
        ("no token at all", "nothing".to_owned()),
    ];
    for (what, token) in cases {
        let (status, code, reason, message) = list(&server, &client, &token).await.unwrap_err();
        let expected = (401, Code::Unauthenticated, "SYS_AUTH_TOKEN_INVALID");
        assert_eq!((status, code, reason.as_str()), expected, "{what}");
        assert!(!message.contains(&token), "{what}");
    }
    list(&server, &client, &key.sign(&good)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_a_known_role_is_forbidden_everything() {
    let issuer = Issuer::start();
    let (server, client) = start(&issuer).await;
    for roles in [json!([]), json!(["admin"]), json!(["SYS_ADMIN"])] {
        let token = issuer.token(json!({"realm_access": {"roles": roles}}));
        let (status, code, reason, _) = list(&server, &client, &token).await.unwrap_err();
        let expected = (403, Code::PermissionDenied, "SYS_AUTH_PERMISSION_DENIED");
        assert_eq!((status, code, reason.as_str()), expected);
    }
}

fn splits(token: &str) -> [String; 3] {
    let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts.try_into().expect("three parts")
}
