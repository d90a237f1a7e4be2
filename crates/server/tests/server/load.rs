//! A Redis outage under load: responses and latency.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::future::join_all;
use headgate_testkit::{Redis, require};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    harness::Server,
    redis::{PATIENT, ready},
    times::calls,
};

/// Never reached, not even the share of one replica.
const UNLIMITED: (&str, &str) = ("ratelimit.default_limit", "4000000000");

const OPEN: &str = "redis unavailable, fail-open";
const CLOSED: &str = "redis unavailable, fail-closed";

/// Responses and latencies of a run.
#[derive(Default)]
struct Seen {
    took: Vec<Duration>,
    /// By subject: `allowed` and `reason`.
    answers: BTreeMap<&'static str, BTreeSet<(bool, String)>>,
}

/// Runs eight clients for `time`, each in a closed loop over the subjects. However slow the machine
/// is, each asks for every subject twice.
async fn load(server: &Server, subjects: &[&'static str], time: Duration) -> Seen {
    let client = async || {
        let (began, mut seen) = (Instant::now(), Seen::default());
        for (turn, subject) in subjects.iter().cycle().enumerate() {
            if began.elapsed() >= time && turn >= 2 * subjects.len() {
                break;
            }
            let asked = Instant::now();
            let reply = server.check_user(subject).await;
            seen.took.push(asked.elapsed());
            assert_eq!(reply.status, 200, "{}", reply.text);
            let body = reply.json();
            let reason = body["reason"].as_str().unwrap().to_owned();
            let answer = (body["allowed"].as_bool().unwrap(), reason);
            seen.answers.entry(subject).or_default().insert(answer);
        }
        seen
    };
    let mut all = Seen::default();
    for seen in join_all((0..8).map(|_| client())).await {
        all.took.extend(seen.took);
        for (subject, answers) in seen.answers {
            all.answers.entry(subject).or_default().extend(answers);
        }
    }
    all.took.sort();
    all
}

/// Creates a rule with this fail mode, for a subject of the same name.
async fn create_rule(server: &Server, mode: &str) {
    let (limit, window) = (4_000_000_000_u64, 60);
    let rule = json!({
        "scope": "user", "identifier_pattern": mode, "limit": limit, "window_seconds": window,
        "fail_mode": mode,
    });
    server.create_rule(&rule).await;
}

// === impl Seen ===

impl Seen {
    /// Latency at this percentile.
    fn percentile(&self, percent: usize) -> Duration {
        self.took[self.took.len() * percent / 100]
    }

    /// Asserts that a subject got only the responses of a healthy store and of the fail mode.
    fn assert_only(&self, subject: &str, in_its_place: Option<(bool, &str)>) {
        let owned = |(allowed, reason): (bool, &str)| (allowed, reason.to_owned());
        let normal = owned((true, ""));
        let mut answers = self.answers[subject].clone();
        answers.remove(&normal);
        let expected: BTreeSet<_> = in_its_place.map(owned).into_iter().collect();
        assert_eq!(answers, expected, "{subject}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn redis_killed_under_load_costs_no_client_an_error_and_little_time() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [("redis.url", url.as_str()), UNLIMITED, PATIENT];
    let server = Server::start(&keys).await;
    let strict = Server::start(&[&keys[..], &[("ratelimit.fail_open", "false")]].concat()).await;
    ready(&server).await;
    ready(&strict).await;
    for mode in ["capped", "open", "closed", "local"] {
        create_rule(&server, mode).await;
    }
    create_rule(&strict, "open").await;
    let (subjects, strict_subjects) = (["u1", "capped", "open", "closed", "local"], ["u1", "open"]);
    let both = async |time: Duration| {
        tokio::join!(load(&server, &subjects, time), load(&strict, &strict_subjects, time))
    };

    let (normal, strict_normal) = both(Duration::from_secs(2)).await;
    for subject in subjects {
        normal.assert_only(subject, None);
    }
    for subject in strict_subjects {
        strict_normal.assert_only(subject, None);
    }

    let killing = async {
        tokio::task::yield_now().await;
        redis.kill();
    };
    let ((outage, strict_outage), ()) = tokio::join!(both(Duration::from_secs(3)), killing);
    // The rule's own mode decides; the default is the configured one.
    outage.assert_only("u1", Some((true, OPEN)));
    outage.assert_only("capped", Some((true, OPEN)));
    outage.assert_only("open", Some((true, OPEN)));
    outage.assert_only("closed", Some((false, CLOSED)));
    // Decided locally, by a share of the limit that is never used up: there is no reason.
    outage.assert_only("local", None);
    strict_outage.assert_only("u1", Some((false, CLOSED)));
    strict_outage.assert_only("open", Some((true, OPEN)));
    // A busy machine may take seconds for some. A request that waited for the store would take the
    // timeout, which is 100 ms by default and 30 s here.
    let usual = (3 * normal.percentile(50)).max(Duration::from_secs(1));
    for (percent, most) in [(50, usual), (99, Duration::from_secs(15))] {
        let (then, before) = (outage.percentile(percent), normal.percentile(percent));
        assert!(then <= most, "{percent} %: {then:?} in the outage, {before:?} before");
    }

    redis.restart();
    let back = Instant::now();
    while server.check_user("u1").await.json()["reason"] != "" {
        assert!(back.elapsed() < Duration::from_secs(120), "it has not recovered");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_requests_time_out_while_redis_hangs_under_load() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [("redis.url", url.as_str()), ("redis.timeout_ms", "500"), UNLIMITED];
    let server = Server::start(&keys).await;
    ready(&server).await;
    create_rule(&server, "closed").await;
    let (before, _) = calls(&server).await;
    redis.pause();
    let began = Instant::now();
    let outage = load(&server, &["u1", "closed"], Duration::from_secs(4)).await;
    let seconds = began.elapsed().as_secs_f64();
    redis.resume();
    outage.assert_only("u1", Some((true, OPEN)));
    outage.assert_only("closed", Some((false, CLOSED)));
    let waited = calls(&server).await.0 - before;
    // The requests before the breaker opened, and then one per half a second: 16, and some for
    // health checks. In four seconds, it would be 64 if all had waited.
    let most = 24.0 + 4.0 * seconds;
    assert!((1.0..=most).contains(&waited), "{waited} of {}", outage.took.len());
}
