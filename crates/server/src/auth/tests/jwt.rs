//! Which of an issuer's tokens are believed.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate_testkit::{Algorithm, SigningKey};
use ring::hmac;
use serde_json::{Value, json};

use super::*;

/// An auditor's claims and these.
fn auditor(mut more: Value) -> Value {
    more["realm_access"] = json!({"roles": ["sys_auditor"]});
    more
}

/// Seconds since the epoch, on the guard's clock.
fn now(guard: &Guard) -> u64 {
    guard.clock.now().as_micros() / 1_000_000
}

fn encoded(value: &Value) -> String {
    URL_SAFE.encode(value.to_string())
}

#[tokio::test]
async fn each_algorithm_is_believed() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let issuer = Issuer::start();
        issuer.publish(SigningKey::generate("another", algorithm));
        let actor = Guard::trusting(&issuer).read(&issuer.token_for("sys_admin")).await;
        let expected = Actor { name: "sys_admin@example.com".into(), role: Some(Role::Admin) };
        assert_eq!(actor, Ok(expected), "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_forged_signature_is_not() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let issuer = Issuer::start();
        issuer.publish(SigningKey::generate("key-2", algorithm));
        let guard = Guard::trusting(&issuer);
        let token = issuer.token_for("sys_auditor");
        let (message, signature) = token.rsplit_once('.').unwrap();
        let header = message.split('.').next().unwrap();

        let promoted = issuer.claims(json!({"realm_access": {"roles": ["sys_admin"]}}));
        let mut flipped = URL_SAFE.decode(signature).unwrap();
        flipped[7] ^= 1;
        for forged in [
            format!("{header}.{}.{signature}", encoded(&promoted)),
            format!("{message}.{}", URL_SAFE.encode(&flipped)),
            format!("{message}.{}", URL_SAFE.encode([0; 64])),
            format!("{message}."),
        ] {
            assert_eq!(guard.refusal(&forged).await, Refusal::Signature, "{forged}");
        }
    }
}

#[tokio::test]
async fn a_strangers_key_with_the_same_name_is_not() {
    let issuer = Issuer::start();
    let stranger = SigningKey::generate("key-1", Algorithm::Es256);
    let token = stranger.sign(&issuer.claims(auditor(json!({}))));
    assert_eq!(Guard::trusting(&issuer).refusal(&token).await, Refusal::Signature);
}

#[tokio::test]
async fn an_algorithm_that_is_not_accepted_never_reaches_a_key() {
    let issuer = Issuer::start();
    let rsa = issuer.publish(SigningKey::generate("rsa", Algorithm::Rs256));
    let guard = Guard::trusting(&issuer);
    let claims = issuer.claims(auditor(json!({})));

    for alg in ["none", "None", "", "RS512", "PS256", "HS256", "ES384", "rs256"] {
        let token = rsa.sign_with(&json!({"alg": alg, "kid": "rsa"}), &claims);
        assert_eq!(guard.refusal(&token).await, Refusal::Algorithm, "{alg}");
    }
    let unsigned =
        [json!({"alg": "none", "kid": "rsa"}), claims.clone()].map(|part| encoded(&part));
    assert_eq!(guard.refusal(&format!("{}.", unsigned.join("."))).await, Refusal::Algorithm);

    // The public key as an HMAC secret: who trusts the header's algorithm falls for it.
    let message =
        [json!({"alg": "HS256", "kid": "rsa"}), claims].map(|part| encoded(&part)).join(".");
    let public = URL_SAFE.decode(rsa.jwk()["n"].as_str().unwrap()).unwrap();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), message.as_bytes());
    let token = format!("{message}.{}", URL_SAFE.encode(mac));
    assert_eq!(guard.refusal(&token).await, Refusal::Algorithm);
    assert_eq!(issuer.fetches(), 0);
}

#[tokio::test]
async fn an_algorithm_that_does_not_fit_the_key_is_refused() {
    let issuer = Issuer::start();
    let rsa = SigningKey::generate("key-1", Algorithm::Rs256);
    let token = rsa.sign(&issuer.claims(auditor(json!({}))));
    assert_eq!(Guard::trusting(&issuer).refusal(&token).await, Refusal::Algorithm);
}

#[tokio::test]
async fn a_header_must_name_a_key_and_nothing_unknown() {
    let issuer = Issuer::start();
    let key = issuer.publish(SigningKey::generate("k", Algorithm::EdDsa));
    let guard = Guard::trusting(&issuer);
    let claims = issuer.claims(auditor(json!({})));
    for (header, refusal) in [
        (json!({"alg": "EdDSA"}), Refusal::NoKeyId),
        (json!({"alg": "EdDSA", "kid": ""}), Refusal::NoKeyId),
        (json!({"alg": "EdDSA", "kid": 7}), Refusal::Malformed),
        (json!({"kid": "k"}), Refusal::Malformed),
        (json!({"alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": false}), Refusal::Malformed),
        (json!("EdDSA"), Refusal::Malformed),
    ] {
        assert_eq!(guard.refusal(&key.sign_with(&header, &claims)).await, refusal, "{header}");
    }
    assert_eq!(issuer.fetches(), 0);
    assert!(guard.read(&key.sign(&claims)).await.is_ok());
}

#[tokio::test]
async fn a_token_holds_between_its_dates_give_or_take_the_leeway() {
    let issuer = Issuer::start();
    let guard = Guard::trusting(&issuer);
    let start = now(&guard);
    let token = issuer.token(auditor(json!({"nbf": start + 100, "exp": start + 200})));
    let cases = [
        (0, Err(Refusal::NotYetValid)),
        (69, Err(Refusal::NotYetValid)),
        (2, Ok(())),
        (158, Ok(())),
        (1, Err(Refusal::Expired)),
        (1_000_000, Err(Refusal::Expired)),
    ];
    // Whole seconds, so that the cases stand on the borders.
    guard.clock.set(headgate::Timestamp::from_micros(start * 1_000_000));
    for (advance, expected) in cases {
        guard.clock.advance(Duration::from_secs(advance));
        let answer = guard.read(&token).await;
        assert_eq!(answer.map(|_| ()), expected.map_err(AuthError::from), "at {advance}");
    }
}

#[tokio::test]
async fn the_leeway_is_configurable() {
    let issuer = Issuer::start();
    let keys = [("auth.jwks_url", &*issuer.url()), ("auth.leeway_seconds", "0")];
    let guard = Guard::new(&keys, None);
    let token = issuer.token(auditor(json!({"exp": now(&guard)})));
    assert_eq!(guard.refusal(&token).await, Refusal::Expired);
    assert!(Guard::trusting(&issuer).read(&token).await.is_ok());
}

#[tokio::test]
async fn claims_of_another_type_are_not_absent_claims() {
    let issuer = Issuer::start();
    let key = issuer.publish(SigningKey::generate("k", Algorithm::EdDsa));
    let guard = Guard::trusting(&issuer);
    for (claim, value) in [
        ("exp", json!("9999999999")),
        ("exp", json!(null)),
        ("exp", json!([9_999_999_999_u64])),
        ("nbf", json!("9999999999")),
        ("nbf", json!(null)),
        ("iss", json!(1)),
        ("iss", json!(null)),
        ("aud", json!({"a": 1})),
        ("aud", json!([1])),
        ("realm_access", json!({"roles": "sys_admin"})),
        ("realm_access", json!("sys_admin")),
        ("email", json!(["a"])),
    ] {
        let mut claims = issuer.claims(auditor(json!({})));
        claims[claim] = value;
        assert_eq!(guard.refusal(&key.sign(&claims)).await, Refusal::Claims, "{claims}");
    }
    let eternal = issuer.token(auditor(json!({"exp": null})));
    assert_eq!(guard.refusal(&eternal).await, Refusal::Claims);
    assert_eq!(guard.refusal(&key.sign(&json!("claims"))).await, Refusal::Claims);
}

#[tokio::test]
async fn issuer_and_audience_are_checked_where_they_are_configured() {
    let issuer = Issuer::start();
    let (url, name) = (issuer.url(), issuer.name());
    let keys = [("auth.jwks_url", &*url), ("auth.issuer", &name), ("auth.audience", "headgate")];
    let (strict, lax) = (Guard::new(&keys, None), Guard::trusting(&issuer));
    for (claims, expected) in [
        (json!({"aud": "headgate"}), Ok(())),
        (json!({"aud": ["other", "headgate"]}), Ok(())),
        (json!({"aud": "other"}), Err(Refusal::Audience)),
        (json!({"aud": "headgate2"}), Err(Refusal::Audience)),
        (json!({"aud": ["other"]}), Err(Refusal::Audience)),
        (json!({"aud": []}), Err(Refusal::Audience)),
        (json!({}), Err(Refusal::Audience)),
        (json!({"aud": "headgate", "iss": "https://elsewhere.example"}), Err(Refusal::Issuer)),
        (json!({"aud": "headgate", "iss": null}), Err(Refusal::Issuer)),
    ] {
        let token = issuer.token(auditor(claims.clone()));
        let answer = strict.read(&token).await.map(|_| ());
        assert_eq!(answer, expected.map_err(AuthError::from), "{claims}");
        assert!(lax.read(&token).await.is_ok(), "{claims}");
    }
}

#[tokio::test]
async fn roles_are_the_highest_of_the_realms() {
    let issuer = Issuer::start();
    let guard = Guard::trusting(&issuer);
    let denied = AuthError::PermissionDenied { needs: Role::Auditor };
    for (access, expected) in [
        (json!({"roles": ["sys_auditor", "sys_operator", "offline_access"]}), Ok(Role::Operator)),
        (json!({"roles": ["sys_auditor", "sys_auditor", "sys_auditor"]}), Ok(Role::Auditor)),
        (json!({"roles": ["sys_admin", "admin"]}), Ok(Role::Admin)),
        (json!({"roles": ["admin", "Sys_Admin", "sys_admin ", "operator", ""]}), Err(denied)),
        (json!({"roles": []}), Err(denied)),
        (json!({}), Err(denied)),
        (json!(null), Err(denied)),
    ] {
        let token = issuer.token(json!({"realm_access": access, "roles": ["sys_admin"]}));
        let role = guard.read(&token).await.map(|actor| actor.role.unwrap());
        assert_eq!(role, expected, "{access}");
    }
}

#[tokio::test]
async fn the_actor_is_named_by_the_first_claim_that_names_one() {
    let issuer = Issuer::start();
    let guard = Guard::trusting(&issuer);
    for (claims, name) in [
        (json!({"email": "a@b.example", "preferred_username": "a", "sub": "1"}), "a@b.example"),
        (json!({"preferred_username": "a", "sub": "1"}), "a"),
        (json!({"email": "", "preferred_username": "\n", "sub": "1"}), "1"),
        (json!({"email": "a\r\nb"}), "ab"),
    ] {
        let actor = guard.read(&issuer.token(auditor(claims))).await.unwrap();
        assert_eq!(actor.name, name);
    }
    let long = issuer.token(auditor(json!({"email": "x".repeat(1000)})));
    assert_eq!(guard.read(&long).await.unwrap().name.len(), 256);
    let nobody = issuer.token(auditor(json!({"sub": null})));
    assert_eq!(guard.refusal(&nobody).await, Refusal::Nameless);
}

#[tokio::test]
async fn garbage_is_told_from_a_token() {
    let issuer = Issuer::start();
    let guard = Guard::trusting(&issuer);
    let token = issuer.token_for("sys_admin");
    for garbage in [
        "x".to_owned(),
        "..".to_owned(),
        "a.b.c".to_owned(),
        format!("{token}.x"),
        format!("{token}="),
        format!("{token}!"),
        token.replace('.', " "),
        token[..token.len() / 4].to_owned(),
        "e30.e30.".to_owned(),
        "\u{0}\u{7f}".to_owned(),
        ".".repeat(16_000),
    ] {
        let refusal = guard.refusal(&garbage).await;
        assert_eq!(refusal, Refusal::Malformed, "{garbage}");
    }
    let not_text =
        guard.auth.authorize(Some(b"Bearer \xff\xfe.\xff.\xff"), Action::ReadRules).await;
    assert_eq!(not_text, Err(Refusal::Malformed.into()));
    assert_eq!(guard.refusal(&"a".repeat(20_000)).await, Refusal::TooLong);
    let padded = issuer.token(auditor(json!({"padding": "x".repeat(20_000)})));
    assert_eq!(guard.refusal(&padded).await, Refusal::TooLong);
    assert_eq!(issuer.fetches(), 0);
}
