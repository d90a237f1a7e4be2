//! `CheckRateLimit`

use futures_util::future::join_all;
use tonic::Code;

use super::client::{
    CheckRateLimitRequest, CheckRateLimitResponse, Client, CreateRuleRequest, FOREVER,
    assert_error, assert_invalid, connect, create, rule_of,
};
use crate::{
    backend::{Backend, on_both_backends},
    harness::Server,
};

fn ask(rule_id: &str, subject: &str) -> CheckRateLimitRequest {
    CheckRateLimitRequest {
        rule_id: rule_id.to_owned(),
        subject: subject.to_owned(),
        ..CheckRateLimitRequest::default()
    }
}

async fn check(client: &Client, request: CheckRateLimitRequest) -> CheckRateLimitResponse {
    client.clone().check_rate_limit(request).await.unwrap().into_inner()
}

async fn rule(server: &Server, client: &Client, key: &str, limit: i64, window_secs: i64) -> String {
    let token = server.admin_token.as_deref().unwrap();
    create(client, token, CreateRuleRequest { limit, window_secs, ..rule_of(key) }).await.id
}

on_both_backends!(
    the_default_rule_decides_in_a_scope_without_rules,
    a_denial_has_a_reason_and_a_retry_time,
    a_rule_can_be_asked_by_its_id,
    an_unknown_rule_is_not_found,
    all_invalid_fields_of_a_check_are_reported_at_once,
    a_check_takes_its_cost_and_a_dry_run_nothing,
    a_window_selects_the_rule_and_opens_no_bucket,
    of_400_at_once_exactly_50_are_admitted,
);

async fn the_default_rule_decides_in_a_scope_without_rules(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let answer = check(&client, ask("user", "u1")).await;
    assert!(answer.reset_at > 1_700_000_000, "{answer:?}");
    let expected = CheckRateLimitResponse {
        allowed: true,
        remaining: 99,
        reset_at: answer.reset_at,
        limit: 100,
        ..CheckRateLimitResponse::default()
    };
    assert_eq!(answer, expected);
}

async fn a_denial_has_a_reason_and_a_retry_time(backend: &Backend) {
    let server = backend
        .serve(&[("ratelimit.default_limit", "2"), ("ratelimit.default_window_seconds", "7200")])
        .await;
    let client = connect(server.grpc_address).await;
    assert!(check(&client, ask("user", "u1")).await.allowed);
    // REST and gRPC count together.
    assert_eq!(server.check_user("u1").await.json()["remaining"], 0);

    let denied = check(&client, ask("user", "u1")).await;
    assert!(!denied.allowed);
    assert_eq!((denied.remaining, denied.limit), (0, 2));
    assert_eq!(denied.reason, "rate limit exceeded for user:u1");
    // One of two units is refilled after half the window.
    assert!((3_500_000..=3_600_000).contains(&denied.retry_after_ms), "{denied:?}");
    assert_eq!(server.check_user("u1").await.json()["reason"], denied.reason.as_str());
}

async fn a_rule_can_be_asked_by_its_id(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let id = rule(&server, &client, "user:vip-*", 1, FOREVER).await;

    let first = check(&client, ask(&id, "vip-1")).await;
    assert!(first.allowed);
    assert_eq!((first.limit, first.rule_id.as_str()), (1, id.as_str()));
    let denied = check(&client, ask("user", "vip-1")).await;
    assert!(!denied.allowed);
    assert_eq!(
        (denied.rule_id, denied.reason),
        (id.clone(), "rate limit exceeded for user:vip-1".into())
    );

    let other = client.clone().check_rate_limit(ask(&id, "u1")).await.unwrap_err();
    let message = format!("rule {id} does not match this subject: its pattern is user:vip-*");
    assert_invalid(&other, &[("subject", &message)]);
}

async fn an_unknown_rule_is_not_found(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    for id in ["8d9b1c52-7a3e-4f0e-9a34-0c8d5a2f6b11", "planet", "User"] {
        let status = client.clone().check_rate_limit(ask(id, "u1")).await.unwrap_err();
        let message = format!("rule not found: {id}");
        assert_error(&status, Code::NotFound, "SYS_RATELIMIT_RULE_NOT_FOUND", &message);
    }
}

async fn all_invalid_fields_of_a_check_are_reported_at_once(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let nothing = client.clone().check_rate_limit(CheckRateLimitRequest::default()).await;
    assert_invalid(
        &nothing.unwrap_err(),
        &[("rule_id", "rule_id is required"), ("subject", "subject is required")],
    );
    let wrong = CheckRateLimitRequest { cost: -1, window: "soon".into(), ..ask("user", "a\nb") };
    let wrong = client.clone().check_rate_limit(wrong).await;
    assert_invalid(
        &wrong.unwrap_err(),
        &[
            ("subject", "subject must not contain control characters (found byte 0x0a)"),
            ("cost", "cost must be a whole number of at least 1"),
            ("window", "window must be written like 60s, 1m, 1h or 60 (seconds)"),
        ],
    );
    let never = CheckRateLimitRequest { cost: 101, ..ask("user", "u1") };
    let never = client.clone().check_rate_limit(never).await.unwrap_err();
    assert_eq!(never.code(), Code::InvalidArgument);
}

async fn a_check_takes_its_cost_and_a_dry_run_nothing(backend: &Backend) {
    let server = backend.serve(&[("ratelimit.default_window_seconds", "31000000")]).await;
    let client = connect(server.grpc_address).await;
    let costly = CheckRateLimitRequest { cost: 60, ..ask("service", "s1") };
    let dry = CheckRateLimitRequest { dry_run: true, ..costly.clone() };
    assert!(check(&client, dry.clone()).await.allowed);
    assert_eq!(check(&client, costly).await.remaining, 40);
    let denied = check(&client, dry).await;
    assert_eq!((denied.allowed, denied.remaining), (false, 40));
    assert_eq!(check(&client, ask("service", "s1")).await.remaining, 39);
}

async fn a_window_selects_the_rule_and_opens_no_bucket(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    let minute = rule(&server, &client, "endpoint:/a", 5, 60).await;
    let hour = rule(&server, &client, "endpoint:/a", 50, 3600).await;
    let within = |window: &str, rule: &str| CheckRateLimitRequest {
        window: window.to_owned(),
        ..ask(rule, "/a")
    };
    for (window, id) in [("1m", &minute), ("60", &minute), ("1h", &hour), ("3600s", &hour)] {
        assert_eq!(&check(&client, within(window, "endpoint")).await.rule_id, id, "{window}");
        assert_eq!(&check(&client, within(window, id)).await.rule_id, id, "{window}");
    }
    let known = [("endpoint", "60s, 3600s"), (minute.as_str(), "60s")];
    for (rule, windows) in known {
        let status = client.clone().check_rate_limit(within("30s", rule)).await.unwrap_err();
        let message = format!("no rule has a window of 30s; windows of this subject: {windows}");
        assert_invalid(&status, &[("window", &message)]);
    }
}

#[tokio::test]
async fn a_degraded_check_is_marked() {
    for (open, allowed, mode, reason) in [
        ("true", true, "capped", "redis unavailable, fail-open"),
        ("false", false, "closed", "redis unavailable, fail-closed"),
    ] {
        let server =
            Server::start(&[("redis.url", "redis://127.0.0.1:1"), ("ratelimit.fail_open", open)])
                .await;
        let client = connect(server.grpc_address).await;
        let answer = check(&client, ask("user", "u1")).await;
        assert_eq!((answer.allowed, answer.degraded.as_str()), (allowed, mode));
        assert_eq!(answer.reason, reason);
    }
}

async fn of_400_at_once_exactly_50_are_admitted(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let client = connect(server.grpc_address).await;
    rule(&server, &client, "user:u1", 50, FOREVER).await;
    let answers = join_all((0..400).map(|_| check(&client, ask("user", "u1")))).await;
    assert_eq!(answers.iter().filter(|answer| answer.allowed).count(), 50);
}
