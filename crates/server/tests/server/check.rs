//! `POST /api/v1/ratelimit/check`

use futures_util::future::join_all;
use serde_json::json;

use crate::{
    backend::{Backend, on_both_backends},
    harness::CHECK,
};

/// Long enough that nothing refills during a test.
const FOREVER: (&str, &str) = ("ratelimit.default_window_seconds", "8640000");

on_both_backends!(
    the_default_rule_allows_a_hundred_a_minute,
    a_denial_has_a_reason_and_retry_after,
    subjects_and_scopes_have_separate_limits,
    a_window_selects_the_rule_and_opens_no_bucket,
    of_400_at_once_exactly_50_are_admitted,
);

async fn the_default_rule_allows_a_hundred_a_minute(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let reply = server.check_user("u1").await;
    let mut body = reply.json();
    let reset_at = body["reset_at"].take().as_u64().unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(
        body,
        json!({"allowed": true, "remaining": 99, "reset_at": null, "limit": 100, "reason": ""})
    );
    assert_eq!(reply.header("content-type"), "application/json");
    assert_eq!(reply.header("x-ratelimit-limit"), "100");
    assert_eq!(reply.header("x-ratelimit-remaining"), "99");
    assert_eq!(reply.header("x-ratelimit-reset"), reset_at.to_string());
    assert_eq!(reply.header("retry-after"), "");
}

async fn a_denial_has_a_reason_and_retry_after(backend: &Backend) {
    let server = backend
        .serve(&[("ratelimit.default_limit", "2"), ("ratelimit.default_window_seconds", "7200")])
        .await;
    server.check_user("u1").await;
    let last = server.check_user("u1").await;
    assert_eq!(last.json()["remaining"], 0);
    assert_eq!(last.json()["allowed"], true);

    let denied = server.check_user("u1").await;
    assert_eq!(denied.status, 200);
    let body = denied.json();
    assert_eq!(body["allowed"], false);
    assert_eq!(body["remaining"], 0);
    assert_eq!(body["limit"], 2);
    assert_eq!(body["reason"], "rate limit exceeded for user:u1");
    assert_eq!(denied.header("x-ratelimit-remaining"), "0");
    // One of two units is back after half the window; all of it after the whole.
    let retry_after: u64 = denied.header("retry-after").parse().unwrap();
    assert!((3500..=3600).contains(&retry_after), "{retry_after}");
    let reset_at: u64 = denied.header("x-ratelimit-reset").parse().unwrap();
    assert_eq!(body["reset_at"], reset_at);
    assert_eq!(last.header("x-ratelimit-reset"), reset_at.to_string());
}

async fn subjects_and_scopes_have_separate_limits(backend: &Backend) {
    let server = backend.serve(&[("ratelimit.default_limit", "1"), FOREVER]).await;
    for scope in ["service", "user", "endpoint"] {
        for identifier in ["a", "/api/v1/orders", "ユーザー \\\"quoted\\\""] {
            let body = format!(r#"{{"scope":"{scope}","identifier":"{identifier}"}}"#);
            assert_eq!(server.post(CHECK, &body).await.json()["allowed"], true, "{body}");
            let denied = server.post(CHECK, &body).await.json();
            let expected = format!("rate limit exceeded for {scope}:{identifier}");
            assert_eq!(denied["reason"], expected.replace('\\', ""), "{body}");
        }
    }
}

async fn a_window_selects_the_rule_and_opens_no_bucket(backend: &Backend) {
    // A day, so that nothing refills during the test.
    let day = ("ratelimit.default_window_seconds", "86400");
    let server = backend.serve(&[("ratelimit.default_limit", "7"), day]).await;
    let mut remaining = 7;
    for window in [r#""86400s""#, r#""1440m""#, r#""24h""#, r#""86400""#, "86400", "null"] {
        let body = format!(r#"{{"scope":"user","identifier":"u1","window":{window}}}"#);
        let reply = server.post(CHECK, &body).await;
        remaining -= 1;
        assert_eq!(reply.json()["remaining"], remaining, "{window}");
    }
}

async fn of_400_at_once_exactly_50_are_admitted(backend: &Backend) {
    let server = backend.serve(&[("ratelimit.default_limit", "50"), FOREVER]).await;
    let replies = join_all((0..400).map(|_| server.check_user("u1"))).await;
    let admitted = replies.iter().filter(|reply| reply.json()["allowed"] == true).count();
    assert_eq!(admitted, 50);
}
