//! Tokens that nobody should believe.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate_testkit::{Algorithm, Issuer, SigningKey};
use ring::hmac;
use serde_json::{Value, json};
use tonic::{Code, Status};

use super::client::{Client, ListRulesRequest, by, connect, told};
use crate::harness::Server;

async fn start(issuer: &Issuer) -> (Server, Client) {
    let keys = [("auth.jwks_url", issuer.url()), ("auth.issuer", issuer.name())];
    let keys = keys.each_ref().map(|(key, value)| (*key, value.as_str()));
    let server = Server::start(&keys).await;
    let client = connect(server.grpc_address).await;
    (server, client)
}

async fn list(client: &Client, token: &str) -> Result<(), Status> {
    client.clone().list_rules(by(token, ListRulesRequest::default())).await.map(drop)
}

/// A token whose signature is an HMAC under what everybody knows of the issuer's key.
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
    let (_server, client) = start(&issuer).await;
    list(&client, &issuer.token_for("sys_auditor")).await.unwrap();

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
        let status = list(&client, &token).await.unwrap_err();
        let (code, reason, ..) = told(&status);
        assert_eq!(
            (code, reason.as_str()),
            (Code::Unauthenticated, "SYS_AUTH_TOKEN_INVALID"),
            "{what}"
        );
        assert!(!status.message().contains(&token), "{what}");
    }
    list(&client, &key.sign(&good)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_without_a_role_of_ours_may_do_nothing() {
    let issuer = Issuer::start();
    let (_server, client) = start(&issuer).await;
    for roles in [json!([]), json!(["admin"]), json!(["SYS_ADMIN"])] {
        let token = issuer.token(json!({"realm_access": {"roles": roles}}));
        let (code, reason, ..) = told(&list(&client, &token).await.unwrap_err());
        assert_eq!((code, reason.as_str()), (Code::PermissionDenied, "SYS_AUTH_PERMISSION_DENIED"));
    }
}

fn splits(token: &str) -> [String; 3] {
    let parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts.try_into().expect("three parts")
}
