use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, body::Body, routing::get};
use headgate_guard::{Allowance, Class, Guard, Policy, Routes};
use http::{Method, Response, StatusCode};

use crate::support::{
    DAY, Server, by_clock, daily, daily_class, guard, guard_by_clock, header, hello, public,
};

#[tokio::test]
async fn a_client_over_the_limit_gets_429_and_retry_after() {
    let minute = Duration::from_secs(60);
    // In memory, the requests take time: much less than an hour.
    for (guard, window, most) in
        [(guard_by_clock(1), minute, Duration::ZERO), (guard(1), DAY, 60 * minute)]
    {
        let server = Server::behind(&guard).await;
        let admitted = server.get("/", &[]).await;
        assert_eq!(admitted.status(), 200);
        assert_eq!(admitted.body(), "hello");
        assert_eq!(header(&admitted, "x-ratelimit-limit"), "", "only if so configured");

        let denied = server.get("/", &[]).await;
        assert_eq!(denied.status(), 429);
        let body = r#"{"code":"RATE_LIMITED","message":"rate limited","details":null}"#;
        assert_eq!(denied.body(), body);
        let (window, most) = (window.as_secs(), most.as_secs());
        let wait: u64 = header(&denied, "retry-after").parse().unwrap();
        assert!((window - most..=window).contains(&wait), "{wait}");
        let expected = [
            ("content-type", "application/json"),
            ("x-ratelimit-limit", "1"),
            ("x-ratelimit-remaining", "0"),
            ("ratelimit-policy", &format!(r#""public";q=1;w={window}"#)),
            ("ratelimit", &format!(r#""public";r=0;t={wait}"#)),
        ];
        for (name, value) in expected {
            assert_eq!(header(&denied, name), value, "{name}");
        }
        let reset: u64 = header(&denied, "x-ratelimit-reset").parse().unwrap();
        assert!(reset > 1_700_000_000, "{reset} is a Unix time");
    }
}

#[tokio::test]
async fn a_client_that_waits_for_retry_after_is_admitted() {
    let (clock, backend) = by_clock();
    let guard = Guard::builder(public(3), Routes::all("public")).backend(backend);
    let server = Server::behind(&guard.build().unwrap()).await;
    for _ in 0..3 {
        assert_eq!(server.status("/").await, 200);
        clock.advance(Duration::from_micros(333_333));
    }
    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status(), 429);
    // The first unit returns after 20 s, of which 0.999999 s have passed: rounded up, never down.
    assert_eq!(header(&denied, "retry-after"), "20");
    clock.advance(Duration::from_secs(19));
    assert_eq!(server.status("/").await, 429);
    clock.advance(Duration::from_secs(1));
    assert_eq!(server.status("/").await, 200);
}

#[tokio::test]
async fn a_limit_of_zero_denies_for_the_whole_window() {
    let guard = Guard::builder(public(0), Routes::all("public")).build().unwrap();
    let server = Server::behind(&guard).await;
    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status(), 429);
    let expected = [
        ("retry-after", "60"),
        ("x-ratelimit-limit", "0"),
        ("x-ratelimit-remaining", "0"),
        ("ratelimit-policy", r#""public";q=0;w=60"#),
        ("ratelimit", r#""public";r=0;t=60"#),
    ];
    for (name, value) in expected {
        assert_eq!(header(&denied, name), value, "{name}");
    }
}

#[tokio::test]
async fn a_denied_request_does_not_reach_the_service() {
    let reached = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&reached);
    let handler = get(move || async move {
        counter.fetch_add(1, SeqCst);
    });
    let router = Router::new().route("/", handler).layer(guard(2).layer());
    let server = Server::start(router).await;
    for _ in 0..5 {
        server.status("/").await;
    }
    assert_eq!(reached.load(SeqCst), 2);
}

#[tokio::test]
async fn classes_are_counted_separately() {
    let policy =
        Policy::new([daily_class("auth", 1), daily_class("reports", 2), daily_class("public", 3)]);
    let routes = Routes::new()
        .prefix("/v1/auth", "auth")
        .method(Method::POST, "/v1/reports", "reports")
        .otherwise("public");
    let guard = Guard::builder(policy.unwrap(), routes).build().unwrap();
    let server = Server::behind(&guard).await;
    let mut admitted = [0; 2];
    for _ in 0..5 {
        // Challenge and verify belong to one class and share its allowance.
        for path in ["/v1/auth/challenge", "/v1/auth/verify"] {
            admitted[0] += u32::from(server.status(path).await == 200);
        }
        admitted[1] += u32::from(server.status("/v1/reports").await == 200);
    }
    assert_eq!(admitted, [1, 3]);
}

#[tokio::test]
async fn a_custom_response_keeps_the_limit_headers() {
    let layer = guard_by_clock(1).layer().respond_with(|denial| {
        let text = format!("{} waits {}", denial.class(), denial.denied().retry_after_secs());
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    });
    let server = Server::start(hello().layer(layer)).await;
    assert_eq!(server.status("/").await, 200);
    let denied = server.get("/", &[]).await;
    assert_eq!(denied.status(), 503);
    assert_eq!(denied.body(), "public waits 60");
    assert_eq!(header(&denied, "retry-after"), "60");
}

#[tokio::test]
async fn admitted_requests_can_have_limit_headers() {
    let guard = Guard::builder(public(5), Routes::all("public")).headers_when_admitted(true);
    let server = Server::behind(&guard.build().unwrap()).await;
    let admitted = server.get("/", &[]).await;
    assert_eq!(admitted.status(), 200);
    assert_eq!(header(&admitted, "x-ratelimit-remaining"), "4");
    assert_eq!(header(&admitted, "ratelimit-policy"), r#""public";q=5;w=60"#);
    assert_eq!(header(&admitted, "retry-after"), "");
}

#[tokio::test]
async fn invalid_policies_are_rejected() {
    let twice = Policy::new([daily_class("a", 1), daily_class("a", 2)]).unwrap_err();
    assert_eq!(twice.to_string(), "duplicate class \"a\" in the policy");
    let nowhere = Guard::builder(daily(1), Routes::all("nobody")).build().unwrap_err();
    let expected = "unknown class \"nobody\": the routes name it, but the policy does not have it";
    assert_eq!(nowhere.to_string(), expected);
    let name = Class::new("Öffentlich").unwrap_err().to_string();
    assert_eq!(
        name,
        "invalid name \"Öffentlich\": expected 1 to 16 bytes of a-z, 0-9, '-' and '_'"
    );
    assert!(Allowance::per_minute(u64::MAX).is_err());
}
