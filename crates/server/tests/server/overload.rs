//! Limits hold while the store is slow, full or down.

use std::time::Duration;

use futures_util::{StreamExt as _, future::join_all, stream::FuturesUnordered};
use headgate_testkit::{Redis, require};
use serde_json::json;

use crate::{
    grpc::client::{CheckRateLimitRequest, CheckRateLimitResponse, Client, connect},
    harness::Server,
    redis::{PATIENT, ready},
};

const MODES: [&str; 4] = ["capped", "open", "closed", "local"];

const LIMIT: usize = 3;

/// Long enough that nothing refills during a test.
const WINDOW: u32 = 8_640_000;

const FAIL_OPEN: &str = "redis unavailable, fail-open";

/// Short enough to wait for, long enough that a busy machine is not an outage.
const TIMEOUT: (&str, &str) = ("redis.timeout_ms", "2000");

/// A server with one rule per fail mode, for a subject of the same name.
struct Scene {
    server: Server,
    client: Client,
}

impl Scene {
    async fn new(url: &str, timeout: (&str, &str)) -> Self {
        Self::with(&[("redis.url", url), timeout]).await
    }

    async fn with(keys: &[(&str, &str)]) -> Self {
        let server = Server::start(keys).await;
        ready(&server).await;
        for mode in MODES {
            let rule = json!({
                "scope": "user", "identifier_pattern": mode, "limit": LIMIT,
                "window_seconds": WINDOW, "fail_mode": mode,
            });
            server.create_rule(&rule).await;
        }
        let default = json!({
            "scope": "user", "identifier_pattern": "new*", "limit": LIMIT, "window_seconds": WINDOW,
        });
        server.create_rule(&default).await;
        let client = connect(server.grpc_address).await;
        Self { server, client }
    }

    async fn ask(&self, subject: &str) -> CheckRateLimitResponse {
        let request = CheckRateLimitRequest {
            rule_id: "user".to_owned(),
            subject: subject.to_owned(),
            ..CheckRateLimitRequest::default()
        };
        self.client.clone().check_rate_limit(request).await.unwrap().into_inner()
    }

    /// Checks the subject of each mode until Redis has denied it.
    async fn exhaust(&self) {
        let deny = async |mode| {
            loop {
                let answer = self.ask(mode).await;
                if !answer.allowed && answer.degraded.is_empty() {
                    return;
                }
            }
        };
        let all = join_all(MODES.map(deny));
        tokio::time::timeout(Duration::from_secs(120), all).await.expect("Redis denies them");
    }

    /// Asserts that many requests are denied as Redis denied them.
    async fn assert_blocked(&self, times: usize) {
        let asked = MODES.iter().cycle().take(MODES.len() * times);
        let answers = asked.map(|mode| async move { (mode, self.ask(mode).await) });
        let answers = join_all(answers).await;
        for (mode, answer) in answers {
            assert!(!answer.allowed, "{mode}: {answer:?}");
            assert_eq!(answer.reason, format!("rate limit exceeded for user:{mode}"));
            let most = i64::from(WINDOW) * 1_000 / LIMIT as i64;
            assert!(
                answer.retry_after_ms > most / 2 && answer.retry_after_ms <= most,
                "{answer:?}"
            );
        }
    }

    /// Sends `times` concurrent requests; returns the number admitted.
    async fn admitted(&self, subject: &str, times: usize) -> usize {
        let answers = join_all((0..times).map(|_| self.ask(subject))).await;
        answers.iter().filter(|answer| answer.allowed).count()
    }

    async fn reset(&self, subject: &str) {
        let body = json!({"scope": "user", "identifier": subject}).to_string();
        let done = async {
            while self.server.admin("POST", "/api/v1/ratelimit/reset", &body).await.status != 200 {}
        };
        tokio::time::timeout(Duration::from_secs(120), done).await.expect("a reset");
    }

    /// The count of degraded answers with these labels.
    async fn degraded(&self, mode: &str, reason: &str) -> u64 {
        let metrics = self.server.get("/metrics").await.text;
        let series = format!(
            r#"headgate_degraded_decisions_total{{mode="{mode}",reason="{reason}",service="headgate"}} "#
        );
        let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("{series}\nin\n{metrics}")).parse().unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_subject_stays_blocked_while_redis_hangs_and_is_admitted_after_a_reset() {
    let redis = require!(Redis::start());
    let scene = Scene::new(&redis.url(), TIMEOUT).await;
    scene.exhaust().await;
    redis.pause();
    // For a moment after a denial, Redis is not asked.
    while scene.degraded("remembered", "timeout").await == 0 {
        scene.assert_blocked(20).await;
    }
    // The breaker is open soon: no request waits.
    while scene.degraded("remembered", "unavailable").await == 0 {
        scene.assert_blocked(20).await;
    }
    redis.resume();

    ready(&scene.server).await;
    for mode in MODES {
        scene.reset(mode).await;
    }
    redis.pause();
    let first = join_all(MODES.map(|mode| scene.ask(mode))).await;
    redis.resume();
    let expected = [
        (true, FAIL_OPEN),
        (true, FAIL_OPEN),
        (false, "redis unavailable, fail-closed"),
        (true, ""),
    ];
    for ((mode, answer), expected) in MODES.iter().zip(&first).zip(expected) {
        assert_eq!((answer.allowed, answer.reason.as_str()), expected, "{mode}");
        assert_eq!(answer.degraded, *mode);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_redis_hangs_each_server_admits_the_limit_of_a_subject_and_no_more() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let scenes = [Scene::new(&url, TIMEOUT).await, Scene::new(&url, TIMEOUT).await];
    redis.pause();
    // Concurrent requests, before and after the breaker opens; also without a fail mode in a rule.
    for subject in ["capped", "local", "new-1", "new-2"] {
        for scene in &scenes {
            assert_eq!(scene.admitted(subject, 30).await, LIMIT, "{subject}");
        }
    }
    assert_eq!(scenes[0].admitted("open", 30).await, 30, "without a cap, by name");
    assert_eq!(scenes[0].admitted("closed", 30).await, 0);
    redis.resume();
    assert!(scenes[0].degraded("capped", "timeout").await > 0);
    assert!(scenes[0].degraded("capped", "unavailable").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_subject_stays_blocked_when_redis_is_gone() {
    let redis = require!(Redis::start());
    let scene = Scene::new(&redis.url(), PATIENT).await;
    scene.exhaust().await;
    redis.kill();
    let (all, repeated) = (MODES.len() as u64, || scene.degraded("remembered", "unavailable"));
    // For a moment after a denial, Redis is not asked, so its outage is not noticed yet.
    let mut before = repeated().await;
    loop {
        scene.assert_blocked(1).await;
        let after = repeated().await;
        if after == before + all {
            break;
        }
        before = after;
    }
    let before = repeated().await;
    scene.assert_blocked(20).await;
    assert_eq!(repeated().await - before, 20 * all);
    let answer = scene.ask("new-1").await;
    assert_eq!((answer.allowed, answer.reason.as_str()), (true, FAIL_OPEN));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_redis_lets_no_blocked_subject_through() {
    let redis = require!(Redis::start());
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    redis.cli(&["CONFIG", "SET", "maxmemory", "24mb"]);
    let scene = Scene::new(&redis.url(), PATIENT).await;
    scene.exhaust().await;
    redis.cli(&["SETRANGE", "filler", "25000000", "x"]);
    assert!(redis.cli(&["SET", "one", "more"]).contains("OOM"), "it is full");
    scene.assert_blocked(20).await;
    // New subjects do not fit in Redis, and get the limit of this server.
    assert_eq!(scene.admitted("new-1", 20).await, LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_above_the_calls_in_flight_are_decided_without_redis() {
    let redis = require!(Redis::start());
    let (url, one) = (redis.url(), "1");
    let bounds = [("redis.pool_size", one), ("redis.max_in_flight", one)];
    let keys = [&[("redis.url", url.as_str()), PATIENT], &bounds[..]].concat();
    let scene = Scene::with(&keys).await;
    redis.pause();
    // One call waits for Redis, and the others are not sent.
    let mut asking: FuturesUnordered<_> = (0..20).map(|_| scene.ask("open")).collect();
    let first = tokio::time::timeout(Duration::from_secs(20), asking.next()).await;
    let first = first.expect("an answer before the timeout of Redis").unwrap();
    redis.resume();
    assert_eq!((first.allowed, &*first.degraded), (true, "open"));
    // Redis may have decided some of the others by now.
    let others: Vec<_> = asking.collect().await;
    let degraded = 1 + others.iter().filter(|answer| !answer.degraded.is_empty()).count();
    assert_eq!(scene.degraded("open", "overloaded").await, degraded as u64, "{others:?}");
}
