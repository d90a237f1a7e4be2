//! The cache of an issuer's keys: rotation, outages, and bounds on fetches.

use std::time::Duration;

use futures_util::{FutureExt, future};
use headgate_testkit::{Algorithm, Answer, CertificateAuthority, Nginx, SigningKey, require};
use serde_json::json;

use super::*;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A token with the key id `kid` that was not signed by the issuer.
fn stranger(issuer: &Issuer, kid: &str) -> String {
    SigningKey::generate(kid, Algorithm::EdDsa).sign(&issuer.claims(json!({})))
}

/// Waits for a refresh in the background.
async fn fetched(issuer: &Issuer, times: usize) {
    let waiting = async {
        while issuer.fetches() < times {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(seconds(60), waiting).await.expect("a fetch in the background");
}

#[tokio::test]
async fn keys_are_fetched_once_for_many_tokens() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    assert_eq!(issuer.fetches(), 0);
    let token = issuer.token_for("sys_auditor");
    let answers = future::join_all((0..50).map(|_| guard.read(&token))).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn unknown_keys_cause_one_fetch_in_ten_seconds() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    guard.read(&issuer.token_for("sys_auditor")).await.unwrap();
    guard.clock.advance(seconds(10));
    for attempt in 0..20 {
        let token = stranger(&issuer, &format!("unknown-{attempt}"));
        assert_eq!(guard.token_error(&token).await, TokenError::UnknownKey);
    }
    assert_eq!(issuer.fetches(), 2);
    guard.clock.advance(seconds(9));
    assert_eq!(guard.token_error(&stranger(&issuer, "u")).await, TokenError::UnknownKey);
    assert_eq!(issuer.fetches(), 2);
    guard.clock.advance(seconds(1));
    assert_eq!(guard.token_error(&stranger(&issuer, "u")).await, TokenError::UnknownKey);
    assert_eq!(issuer.fetches(), 3);
    // Tokens with a valid key are not affected.
    assert!(guard.read(&issuer.token_for("sys_auditor")).await.is_ok());
}

#[tokio::test]
async fn a_new_key_is_accepted_once_it_is_published() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    let before = issuer.token_for("sys_auditor");
    guard.read(&before).await.unwrap();

    guard.clock.advance(seconds(10));
    issuer.publish(SigningKey::generate("key-2", Algorithm::EdDsa));
    let after = issuer.token_for("sys_auditor");
    assert!(guard.read(&after).await.is_ok());
    assert!(guard.read(&before).await.is_ok());
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn old_keys_are_refreshed_in_the_background() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    let token = issuer.token_for("sys_auditor");
    guard.read(&token).await.unwrap();
    guard.clock.advance(seconds(599));
    guard.read(&token).await.unwrap();
    assert_eq!(issuer.fetches(), 1);

    issuer.withdraw("key-1");
    issuer.publish(SigningKey::generate("key-2", Algorithm::EdDsa));
    guard.clock.advance(seconds(1));
    assert!(guard.read(&token).await.is_ok(), "the old keys answer meanwhile");
    fetched(&issuer, 2).await;
    let withdrawn = async {
        while guard.read(&token).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(seconds(60), withdrawn).await.expect("a key that is withdrawn");
    assert_eq!(issuer.fetches(), 2);
}

#[tokio::test]
async fn keys_unused_for_long_are_fetched_before_use() {
    let issuer = Issuer::start();
    let keys = [("auth.jwks_url", &*issuer.url()), ("auth.jwks_cache_seconds", "60")];
    let guard = TestAuth::new(&keys, None);
    let token = issuer.token_for("sys_auditor");
    guard.read(&token).await.unwrap();
    issuer.withdraw("key-1");
    issuer.publish(SigningKey::generate("key-2", Algorithm::EdDsa));
    guard.clock.advance(seconds(120));
    assert_eq!(guard.token_error(&token).await, TokenError::UnknownKey);
}

#[tokio::test]
async fn cached_keys_survive_an_issuer_outage() {
    let mut issuer = Issuer::start();
    let keys = [("auth.jwks_url", &*issuer.url()), ("auth.jwks_cache_seconds", "60")];
    let guard = TestAuth::new(&keys, None);
    let token = issuer.token_for("sys_auditor");
    guard.read(&token).await.unwrap();

    issuer.stop();
    for _ in 0..10 {
        guard.clock.advance(seconds(61));
        assert!(guard.read(&token).await.is_ok());
    }
    assert_eq!(guard.token_error(&stranger(&issuer, "u")).await, TokenError::UnknownKey);

    issuer.publish(SigningKey::generate("key-2", Algorithm::EdDsa));
    issuer.resume();
    guard.clock.advance(seconds(10));
    assert!(guard.read(&issuer.token_for("sys_auditor")).await.is_ok());
}

#[tokio::test]
async fn unusable_responses_keep_the_cached_keys() {
    let issuer = Issuer::start();
    let keys = [("auth.jwks_url", &*issuer.url()), ("auth.jwks_cache_seconds", "30")];
    let guard = TestAuth::new(&keys, None);
    let token = issuer.token_for("sys_auditor");
    guard.read(&token).await.unwrap();
    let too_large = format!(r#"{{"keys":[],"x":"{}"}}"#, "x".repeat(1 << 20));
    let weak =
        r#"{"keys":[{"kty":"oct","kid":"key-1","k":"c2VjcmV0"},{"kty":"EC","crv":"P-384"}]}"#;
    for (status, body) in [
        (500, "{}"),
        (302, ""),
        (204, ""),
        (200, ""),
        (200, "<html>"),
        (200, "{}"),
        (200, r#"{"keys":[]}"#),
        (200, weak),
        (200, &too_large),
    ] {
        issuer.answer_with(Answer::Status(status, body.to_owned()));
        guard.clock.advance(seconds(61));
        let asked = issuer.fetches();
        assert!(guard.read(&token).await.is_ok(), "{status} {}", &body[..body.len().min(80)]);
        assert_eq!(issuer.fetches(), asked + 1);
    }
}

#[tokio::test]
async fn an_issuer_that_starts_later_is_found() {
    let mut issuer = Issuer::start();
    issuer.stop();
    let guard = TestAuth::trusting(&issuer);
    let token = issuer.token_for("sys_auditor");
    assert_eq!(guard.token_error(&token).await, TokenError::UnknownKey);
    issuer.resume();
    assert_eq!(guard.token_error(&token).await, TokenError::UnknownKey, "not at once again");
    assert_eq!(issuer.fetches(), 0);
    guard.clock.advance(seconds(1));
    assert!(guard.read(&token).await.is_ok());
}

#[tokio::test]
async fn a_silent_issuer_times_out() {
    let issuer = Issuer::start();
    issuer.answer_with(Answer::Silence);
    let guard = TestAuth::trusting(&issuer);
    let token = issuer.token_for("sys_auditor");
    let asking = future::join(guard.token_error(&token), guard.token_error(&token));
    let refusals = tokio::time::timeout(seconds(60), asking).await.expect("an end to the wait");
    assert_eq!(refusals, (TokenError::UnknownKey, TokenError::UnknownKey));
    // The issuer may notice the fetch after it has timed out.
    fetched(&issuer, 1).await;
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn a_disconnected_caller_does_not_cancel_the_fetch() {
    let issuer = Issuer::start();
    let guard = TestAuth::trusting(&issuer);
    let token = issuer.token_for("sys_auditor");
    assert!(guard.read(&token).now_or_never().is_none());
    fetched(&issuer, 1).await;
    // The next fetch is allowed after a second, and the clock does not advance.
    assert!(guard.read(&token).await.is_ok());
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn an_issuer_without_tls_is_unreachable_over_https() {
    let issuer = Issuer::start();
    let url = issuer.url().replace("http://", "https://");
    let guard = TestAuth::new(&[("auth.jwks_url", &url)], None);
    assert_eq!(guard.token_error(&issuer.token_for("sys_admin")).await, TokenError::UnknownKey);
    assert_eq!(issuer.fetches(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_of_a_private_authority_is_trusted_if_it_is_configured() {
    let issuer = Issuer::start();
    let port = issuer.name().rsplit(':').next().unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = CertificateAuthority::new("authority");
    let files = authority.issue(&["127.0.0.1"]).write(folder.path(), "issuer");
    let nginx = require!(Nginx::start_tls(port, &files, None));
    let url = format!("https://127.0.0.1:{}/certs", nginx.port());
    let ca_file = authority.write(folder.path());
    let keys = [("auth.jwks_url", &*url), ("auth.ca_file", ca_file.to_str().unwrap())];
    let token = issuer.token_for("sys_admin");
    assert!(TestAuth::new(&keys, None).read(&token).await.is_ok());
    // The system does not know the authority.
    let guard = TestAuth::new(&keys[..1], None);
    assert_eq!(guard.token_error(&token).await, TokenError::UnknownKey);
    assert_eq!(issuer.fetches(), 1);
}
