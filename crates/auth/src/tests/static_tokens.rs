//! Tokens that need no issuer.

use headgate_testkit::Issuer;

use super::*;

const TOKENS: &str = "[{name: ci, role: sys_operator, token: ci-secret-0123456789}, \
                      {name: eyes, role: sys_auditor, token: eyes-secret-0123456789}]";

#[tokio::test]
async fn each_token_has_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let admin = AdminToken::open_or_create(folder.path()).unwrap();
    let guard = TestAuth::new(&[("auth.tokens", TOKENS)], Some(&admin));
    for (token, name, role) in [
        ("ci-secret-0123456789", "ci", Role::Operator),
        ("eyes-secret-0123456789", "eyes", Role::Auditor),
        (admin.expose(), "admin", Role::Admin),
    ] {
        let (name, role) = (name.to_owned().into(), Some(role));
        let actor = Actor { name, role, method: AuthMethod::Token };
        assert_eq!(guard.read(token).await, Ok(actor));
    }
    let denied = AuthError::PermissionDenied { needs: Role::Operator };
    let answer = guard.ask("eyes-secret-0123456789", Action::WriteRules).await;
    assert_eq!(answer, Err(denied));
}

#[tokio::test]
async fn similar_tokens_are_unknown() {
    let guard = TestAuth::new(&[("auth.tokens", TOKENS)], None);
    for token in [
        "ci-secret-012345678",
        "ci-secret-01234567890",
        "CI-SECRET-0123456789",
        "ci-secret-0123456789eyes-secret-0123456789",
        "ci-secret-0123456789 eyes-secret-0123456789",
        "\u{1f511}",
        "x",
    ] {
        assert_eq!(guard.token_error(token).await, TokenError::Unknown, "{token}");
    }
}

#[tokio::test]
async fn static_tokens_need_no_issuer() {
    let issuer = Issuer::start();
    let guard = TestAuth::new(&[("auth.jwks_url", &issuer.url()), ("auth.tokens", TOKENS)], None);
    assert_eq!(guard.read("ci-secret-0123456789").await.unwrap().name, "ci");
    assert_eq!(guard.token_error("no-such-secret-0123456789").await, TokenError::Malformed);
    assert_eq!(issuer.fetches(), 0);
    assert!(guard.read(&issuer.token_for("sys_admin")).await.is_ok());
}

#[tokio::test]
async fn without_tokens_every_token_is_unknown() {
    let guard = TestAuth::new(&[], None);
    let empty = TestAuth::new(&[("auth.tokens", "[]")], None);
    for guard in [guard, empty] {
        assert_eq!(guard.token_error("ci-secret-0123456789").await, TokenError::Unknown);
    }
}

#[tokio::test]
async fn a_reconfigured_auth_refuses_removed_tokens_and_keeps_the_keys_of_the_issuer() {
    let issuer = Issuer::start();
    let url = issuer.url();
    let before = TestAuth::new(&[("auth.jwks_url", &url), ("auth.tokens", TOKENS)], None);
    let jwt = issuer.token_for("sys_admin");
    assert!(before.read(&jwt).await.is_ok());
    let ci = before.read("ci-secret-0123456789").await.unwrap();
    let eyes = before.read("eyes-secret-0123456789").await.unwrap();
    let person = before.read(&jwt).await.unwrap();
    let fetches = issuer.fetches();

    let fewer = "[{name: ci, role: sys_operator, token: ci-secret-0123456789}]";
    let after = before.reconfigured(&[("auth.jwks_url", &url), ("auth.tokens", fewer)]);
    assert!(after.read("ci-secret-0123456789").await.is_ok());
    assert_eq!(after.token_error("eyes-secret-0123456789").await, TokenError::Malformed);
    assert!(after.read(&jwt).await.is_ok());
    assert_eq!(issuer.fetches(), fetches, "the keys were kept");
    for (actor, accepted) in [(&ci, true), (&eyes, false), (&person, true)] {
        assert_eq!(after.auth.still_accepts(actor, &before.auth), accepted, "{actor:?}");
    }

    let demoted = "[{name: ci, role: sys_auditor, token: ci-secret-0123456789}]";
    let rotated = "[{name: ci, role: sys_operator, token: other-secret-0123456789}]";
    for tokens in [demoted, rotated] {
        let after = before.reconfigured(&[("auth.tokens", tokens)]);
        assert!(!after.auth.still_accepts(&ci, &before.auth), "{tokens}");
        assert!(!after.auth.still_accepts(&person, &before.auth), "the issuer is gone");
    }
    let elsewhere = [("auth.jwks_url", &*url), ("auth.audience", "other")];
    assert!(!before.reconfigured(&elsewhere).auth.still_accepts(&person, &before.auth));
}

#[tokio::test]
async fn a_token_with_the_name_of_a_person_does_not_keep_the_person_signed_in() {
    let issuer = Issuer::start();
    let (url, jwt) = (issuer.url(), issuer.token_for("sys_admin"));
    let namesake =
        "[{name: sys_admin@example.com, role: sys_auditor, token: ci-secret-0123456789}]";
    let before = TestAuth::new(&[("auth.jwks_url", &url), ("auth.tokens", namesake)], None);
    let person = before.read(&jwt).await.unwrap();
    let program = before.read("ci-secret-0123456789").await.unwrap();
    assert_eq!(person.name, program.name);

    let after = before.reconfigured(&[("auth.tokens", namesake)]);
    assert!(!after.auth.still_accepts(&person, &before.auth), "the issuer is gone");
    assert!(after.auth.still_accepts(&program, &before.auth));
    let after = before.reconfigured(&[("auth.jwks_url", &url)]);
    assert!(after.auth.still_accepts(&person, &before.auth));
    assert!(!after.auth.still_accepts(&program, &before.auth), "the token is gone");
}
