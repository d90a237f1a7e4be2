//! `/api/v1/rate-limit` of running servers: clock skew and logs.

use std::{thread, time::Duration};

use headgate::{Clock as _, SystemClock};
use headgate_testkit::{Redis, require, skewed_clock, wait_until};
use serde_json::Value;

use crate::harness::{Server, http};

const ALGORITHMS: [&str; 5] =
    ["TOKEN_BUCKET", "SLIDING_WINDOW", "SLIDING_WINDOW_COUNTER", "FIXED_WINDOW", "LEAKY_BUCKET"];

/// 2026-02-20T10:00:00Z
const START: u64 = 1_771_581_600;

/// Clock skew in seconds.
const SKEW: i64 = 300;

/// A response: status, headers and body.
struct Answer(String);

impl Answer {
    fn of(server: &Server, path: &str) -> Self {
        Self(http(server, &format!("GET {path}"), &[], ""))
    }

    fn status(&self) -> &str {
        self.0.split(' ').nth(1).expect("a status")
    }

    fn header(&self, name: &str) -> Option<&str> {
        let head = self.0.split("\r\n\r\n").next()?;
        head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn body(&self) -> Value {
        let body = self.0.split("\r\n\r\n").nth(1).expect("a body");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {}", self.0))
    }

    /// The server's time, by its Date header.
    fn date(&self) -> i64 {
        let date = self.header("date").expect("a date");
        jiff::fmt::rfc2822::parse(date).expect("a date").timestamp().as_second()
    }
}

/// Starts a server on `redis` with more variables.
fn server(redis: &Redis, environment: &[(&str, String)]) -> Server {
    let url = redis.url();
    let mut variables = vec![
        ("HEADGATE__REDIS__URL", url.as_str()),
        ("HEADGATE__REDIS__TIMEOUT_MS", "30000"),
        ("HEADGATE__REDIS__CONNECT_TIMEOUT_SECONDS", "30"),
    ];
    variables.extend(environment.iter().map(|(name, value)| (*name, value.as_str())));
    let server = Server::start(&variables);
    let is_up = || Answer::of(&server, "/actuator/health").body()["status"] == "UP";
    assert!(wait_until(Duration::from_secs(120), is_up), "no Redis");
    server
}

#[test]
fn servers_with_skewed_clocks_give_the_same_answers() {
    let redis = require!(Redis::builder().fake_clock(START * 1_000_000).start());
    let (ahead, behind) = (require!(skewed_clock(SKEW)), require!(skewed_clock(-SKEW)));
    let servers = [server(&redis, &[]), server(&redis, &ahead), server(&redis, &behind)];
    let [right, fast, slow] =
        servers.each_ref().map(|server| Answer::of(server, "/actuator/info").date());
    assert!((fast - right).abs_diff(SKEW) < 60 && (right - slow).abs_diff(SKEW) < 60);

    for algorithm in ALGORITHMS {
        let path = format!("/api/v1/rate-limit/check?algorithm={algorithm}&key=user:123");
        let answers: Vec<Answer> = (0..110).map(|i| Answer::of(&servers[i % 3], &path)).collect();
        for (i, answer) in answers.iter().enumerate().take(100) {
            let left = 99 - i as u64;
            assert_eq!(answer.status(), "200", "{algorithm}: {}", answer.0);
            assert_eq!(answer.body()["remaining"], left, "{algorithm}");
        }
        let denials = &answers[100..];
        for denial in denials {
            assert_eq!(denial.status(), "429", "{algorithm}");
            assert_eq!(denial.body(), denials[0].body(), "{algorithm}");
            for header in ["retry-after", "x-ratelimit-reset", "ratelimit"] {
                assert_eq!(denial.header(header), denials[0].header(header), "{algorithm}");
            }
        }
        let reset: u64 = denials[0].header("x-ratelimit-reset").unwrap().parse().unwrap();
        assert!((START + 1..=START + 120).contains(&reset), "{algorithm}: {reset}");
    }
}

#[test]
fn servers_with_skewed_clocks_admit_exactly_the_limit() {
    let redis = require!(Redis::builder().fake_clock(START * 1_000_000).start());
    let (ahead, behind) = (require!(skewed_clock(SKEW)), require!(skewed_clock(-SKEW)));
    let servers = [server(&redis, &ahead), server(&redis, &behind)];
    for algorithm in ALGORITHMS {
        let path = format!("/api/v1/rate-limit/check?algorithm={algorithm}&key=shared");
        let ask = |client: usize| {
            let answers = (0..25).map(|_| Answer::of(&servers[client % 2], &path));
            answers.filter(|answer| answer.status() == "200").count()
        };
        let admitted: usize = thread::scope(|scope| {
            let clients: Vec<_> = (0..8).map(|client| scope.spawn(move || ask(client))).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).sum()
        });
        // The clock of Redis does not advance, so nothing is refilled.
        assert_eq!(admitted, 100, "{algorithm}");
    }
}

const KEY: &str = "person:jane.doe-1";

fn check(server: &Server) -> Answer {
    Answer::of(server, &format!("/api/v1/rate-limit/check?algorithm=FIXED_WINDOW&key={KEY}"))
}

#[test]
fn decisions_are_logged_at_debug_level_with_masked_keys() {
    let server = Server::start_with_log(&[
        ("HEADGATE__OBSERVABILITY__LOG__LEVEL", "debug"),
        ("HEADGATE__RATE_LIMITER__FIXED_WINDOW__MAX_REQUESTS", "1"),
        ("HEADGATE__RATE_LIMITER__FIXED_WINDOW__WINDOW_SIZE", "8640000"),
    ]);
    assert_eq!([check(&server).status(), check(&server).status()], ["200", "429"]);
    Answer::of(&server, &format!("/api/v1/rate-limit/check?key={KEY}&permits=x"));
    let log = server.log();
    for message in ["Request allowed", "Rate limit exceeded"] {
        let logged: Vec<&str> = log.lines().filter(|line| line.contains(message)).collect();
        assert_eq!(logged.len(), 1, "{log}");
        assert!(logged[0].contains("DEBUG") && logged[0].contains("per***-1"), "{}", logged[0]);
    }
    assert!(!log.contains("jane") && !log.contains("127.0.0.1:0"), "{log}");
}

#[test]
fn an_outage_is_logged_once_and_a_failed_reset_as_an_error() {
    let server = Server::start_with_log(&[("HEADGATE__REDIS__URL", "redis://127.0.0.1:1")]);
    let clock = SystemClock::new();
    let began = clock.steady();
    for _ in 0..20 {
        assert_eq!(check(&server).body()["degraded"], "capped");
    }
    // Once, and again every ten seconds, which is rather soon on a busy machine.
    let lines = 1 + (clock.steady() - began) / 10_000_000;
    let token = std::fs::read_to_string(server.folder().join("data/admin-token")).unwrap();
    let authorization = format!("authorization: Bearer {}", token.trim());
    let line = format!("DELETE /api/v1/rate-limit/reset?key={KEY}");
    let refused = Answer(http(&server, &line, &[&authorization], ""));
    assert_eq!((refused.status(), &refused.body()["error"]), ("503", &"STORE_UNAVAILABLE".into()));

    let log = server.log();
    let logged: Vec<&str> = log.lines().filter(|line| line.contains("fail mode capped")).collect();
    assert!((1..=lines).contains(&(logged.len() as u64)), "{log}");
    assert!(logged[0].contains("WARN") && logged[0].contains("per***-1"), "{}", logged[0]);
    assert!(log.lines().any(|line| line.contains("ERROR") && line.contains("failed")), "{log}");
    assert!(!log.contains("jane"), "{log}");
}
