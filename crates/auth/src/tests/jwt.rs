//! Validation of an issuer's tokens.

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
fn now(guard: &TestAuth) -> u64 {
    guard.clock.now().as_micros() / 1_000_000
}

fn encoded(value: &Value) -> String {
    URL_SAFE.encode(value.to_string())
}

#[tokio::test]
async fn each_algorithm_is_accepted() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let issuer = Issuer::start();
        issuer.publish(SigningKey::generate("another", algorithm));
        let actor = TestAuth::trusting(&issuer).read(&issuer.token_for("sys_admin")).await;
        let (name, role) = ("sys_admin@example.com".into(), Some(Role::Admin));
        let expected = Actor { name, role, method: AuthMethod::Issuer };
        assert_eq!(actor, Ok(expected), "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_forged_signature_is_rejected() {
    for algorithm in [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa] {
        let issuer = Issuer::start();
        issuer.publish(SigningKey::generate("key-2", algorithm));
        let guard = TestAuth::trusting(&issuer);
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
            assert_eq!(guard.token_error(&forged).await, TokenError::Signature, "{forged}");
        }
    }
}

#[tokio::test]
async fn another_key_with_the_same_id_is_rejected() {
    let issuer = Issuer::start();
    let stranger = SigningKey::generate("key-1", Algorithm::Es256);
    let token = stranger.sign(&issuer.claims(auditor(json!({}))));
    assert_eq!(TestAuth::trusting(&issuer).token_error(&token).await, TokenError::Signature);
}

#[tokio::test]
async fn unaccepted_algorithms_are_rejected_before_any_key() {
    let issuer = Issuer::start();
    let rsa = issuer.publish(SigningKey::generate("rsa", Algorithm::Rs256));
    let guard = TestAuth::trusting(&issuer);
    let claims = issuer.claims(auditor(json!({})));

    for alg in ["none", "None", "", "RS512", "PS256", "HS256", "ES384", "rs256"] {
        let token = rsa.sign_with(&json!({"alg": alg, "kid": "rsa"}), &claims);
        assert_eq!(guard.token_error(&token).await, TokenError::Algorithm, "{alg}");
    }
    let unsigned =
        [json!({"alg": "none", "kid": "rsa"}), claims.clone()].map(|part| encoded(&part));
    assert_eq!(guard.token_error(&format!("{}.", unsigned.join("."))).await, TokenError::Algorithm);

    // The public key as an HMAC secret: an attack on verifiers that trust the header's algorithm.
    let message =
        [json!({"alg": "HS256", "kid": "rsa"}), claims].map(|part| encoded(&part)).join(".");
    let public = URL_SAFE.decode(rsa.jwk()["n"].as_str().unwrap()).unwrap();
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), message.as_bytes());
    let token = format!("{message}.{}", URL_SAFE.encode(mac));
    assert_eq!(guard.token_error(&token).await, TokenError::Algorithm);
    assert_eq!(issuer.fetches(), 0);
}

#[tokio::test]
async fn an_algorithm_of_another_key_type_is_rejected() {
    let issuer = Issuer::start();
    let rsa = SigningKey::generate("key-1", Algorithm::Rs256);
    let token = rsa.sign(&issuer.claims(auditor(json!({}))));
    assert_eq!(TestAuth::trusting(&issuer).token_error(&token).await, TokenError::Algorithm);
}

#[tokio::test]
async fn a_header_needs_a_key_id_and_no_critical_extension() {
    let issuer = Issuer::start();
    let key = issuer.publish(SigningKey::generate("k", Algorithm::EdDsa));
    let guard = TestAuth::trusting(&issuer);
    let claims = issuer.claims(auditor(json!({})));
    for (header, refusal) in [
        (json!({"alg": "EdDSA"}), TokenError::NoKeyId),
        (json!({"alg": "EdDSA", "kid": ""}), TokenError::NoKeyId),
        (json!({"alg": "EdDSA", "kid": 7}), TokenError::Malformed),
        (json!({"kid": "k"}), TokenError::Malformed),
        (json!({"alg": "EdDSA", "kid": "k", "crit": ["b64"], "b64": false}), TokenError::Malformed),
        (json!("EdDSA"), TokenError::Malformed),
        (json!(["EdDSA", "k", null]), TokenError::Malformed),
    ] {
        assert_eq!(guard.token_error(&key.sign_with(&header, &claims)).await, refusal, "{header}");
    }
    assert_eq!(issuer.fetches(), 0);
    assert!(guard.read(&key.sign(&claims)).await.is_ok());
    // The same claims, without their names.
    let roles = json!([["sys_admin"]]);
    let list = json!([claims["exp"], 0, claims["iss"], "any", null, null, "u1", roles]);
    assert_eq!(guard.token_error(&key.sign(&list)).await, TokenError::Claims);
}

#[tokio::test]
async fn a_token_is_valid_between_its_dates_within_the_leeway() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    let start = now(&guard);
    let token = issuer.token(auditor(json!({"nbf": start + 100, "exp": start + 200})));
    let cases = [
        (0, Err(TokenError::NotYetValid)),
        (69, Err(TokenError::NotYetValid)),
        (2, Ok(())),
        (158, Ok(())),
        (1, Err(TokenError::Expired)),
        (1_000_000, Err(TokenError::Expired)),
    ];
    // Whole seconds, so that the cases test the exact boundaries.
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
    let guard = TestAuth::new(&keys, None);
    let token = issuer.token(auditor(json!({"exp": now(&guard)})));
    assert_eq!(guard.token_error(&token).await, TokenError::Expired);
    assert!(TestAuth::trusting(&issuer).read(&token).await.is_ok());
}

#[tokio::test]
async fn claims_of_another_type_are_rejected() {
    let issuer = Issuer::start();
    let key = issuer.publish(SigningKey::generate("k", Algorithm::EdDsa));
    let guard = TestAuth::trusting(&issuer);
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
        assert_eq!(guard.token_error(&key.sign(&claims)).await, TokenError::Claims, "{claims}");
    }
    let eternal = issuer.token(auditor(json!({"exp": null})));
    assert_eq!(guard.token_error(&eternal).await, TokenError::Claims);
    assert_eq!(guard.token_error(&key.sign(&json!("claims"))).await, TokenError::Claims);
}

#[tokio::test]
async fn issuer_and_audience_are_checked_where_they_are_configured() {
    let issuer = Issuer::start();
    let (url, name) = (issuer.url(), issuer.name());
    let keys = [("auth.jwks_url", &*url), ("auth.issuer", &name), ("auth.audience", "headgate")];
    let (strict, lax) = (TestAuth::new(&keys, None), TestAuth::trusting(&issuer));
    for (claims, expected) in [
        (json!({"aud": "headgate"}), Ok(())),
        (json!({"aud": ["other", "headgate"]}), Ok(())),
        (json!({"aud": "other"}), Err(TokenError::Audience)),
        (json!({"aud": "headgate2"}), Err(TokenError::Audience)),
        (json!({"aud": ["other"]}), Err(TokenError::Audience)),
        (json!({"aud": []}), Err(TokenError::Audience)),
        (json!({}), Err(TokenError::Audience)),
        (json!({"aud": "headgate", "iss": "https://elsewhere.example"}), Err(TokenError::Issuer)),
        (json!({"aud": "headgate", "iss": null}), Err(TokenError::Issuer)),
    ] {
        let token = issuer.token(auditor(claims.clone()));
        let answer = strict.read(&token).await.map(|_| ());
        assert_eq!(answer, expected.map_err(AuthError::from), "{claims}");
        assert!(lax.read(&token).await.is_ok(), "{claims}");
    }
}

#[tokio::test]
async fn the_highest_role_of_the_realm_counts() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
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
    let guard = TestAuth::trusting(&issuer);
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
    assert_eq!(guard.token_error(&nobody).await, TokenError::Nameless);
}

#[tokio::test]
async fn malformed_tokens_are_rejected() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
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
        let refusal = guard.token_error(&garbage).await;
        assert_eq!(refusal, TokenError::Malformed, "{garbage}");
    }
    let not_text =
        guard.auth.authorize(bearer(b"Bearer \xff\xfe.\xff.\xff"), Action::ReadRules).await;
    assert_eq!(not_text, Err(TokenError::Malformed.into()));
    assert_eq!(guard.token_error(&"a".repeat(20_000)).await, TokenError::TooLong);
    let padded = issuer.token(auditor(json!({"padding": "x".repeat(20_000)})));
    assert_eq!(guard.token_error(&padded).await, TokenError::TooLong);
    assert_eq!(issuer.fetches(), 0);
}
