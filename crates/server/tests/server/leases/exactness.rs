//! What several servers admit together.

use std::time::Duration;

use futures_util::future::join_all;
use headgate_testkit::{Redis, require};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Connection, calls, explained, metric, rule, start};
use crate::{harness::Server, replicas::until};

const LIMIT: u64 = 2_000;
const ALGORITHMS: [&str; 5] =
    ["token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_window_counter"];

/// Long enough for unused units to be given back, and for denials to be forgotten.
const QUIET: Duration = Duration::from_millis(1_500);

/// Checks a user until it was denied for a while; returns the number of admissions and of answers.
async fn exhaust(server: &Server, user: &str) -> (u64, u64) {
    let mut connection = Connection::open(server.address).await;
    let (mut admitted, mut answers) = (0, 0);
    let mut last = Instant::now();
    while last.elapsed() < QUIET {
        let answer = connection.check_user(user).await.json();
        assert_eq!(answer["limit"], LIMIT, "{answer}");
        answers += 1;
        if answer["allowed"] == true {
            admitted += 1;
            last = Instant::now();
        }
    }
    (admitted, answers)
}

async fn three_servers(redis: &Redis, database: &str) -> [Server; 3] {
    let keys = [("database.url", database), ("ratelimit.refresh_interval_seconds", "1")];
    [start(redis, &keys).await, start(redis, &keys).await, start(redis, &keys).await]
}

/// The sum of a metric over all servers.
async fn total(servers: &[Server], name: &str, label: &str) -> u64 {
    let mut sum = 0;
    for server in servers {
        sum += metric(server, name, label).await;
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn three_servers_admit_exactly_the_limit_with_few_calls() {
    let redis = require!(Redis::start());
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", folder.path().join("shared.db").display());
    let servers = three_servers(&redis, &database).await;
    let lease = json!({"share_percent": 10, "hold_ms": 500});
    for algorithm in ALGORITHMS {
        servers[0].create_rule(&rule(algorithm, LIMIT, algorithm, &lease)).await;
    }
    for server in &servers {
        until(Duration::from_secs(120), async || {
            explained(server, ALGORITHMS[4]).await["limit"] == LIMIT
        })
        .await;
    }
    let mut lost = 0;
    for algorithm in ALGORITHMS {
        let (before, begun) = (calls(&redis), Instant::now());
        let (mut admitted, mut answers) = (0, 0);
        let all_lost = loop {
            let all = servers.iter().flat_map(|server| {
                let load = || exhaust(server, algorithm);
                [load(), load()]
            });
            let all = join_all(all).await;
            let taken: u64 = all.iter().map(|it| it.0).sum();
            admitted += taken;
            answers += all.iter().map(|it| it.1).sum::<u64>();
            // On a busy machine, unused units may come back too late: they count as used. Or they
            // come back after all were denied: the next round takes them.
            let all_lost = total(&servers, "headgate_lease_units_total", r#"event="lost""#).await;
            let held = total(&servers, "headgate_lease_units_held", "").await;
            if admitted + (all_lost - lost) >= LIMIT || (taken == 0 && held == 0) {
                break all_lost;
            }
            assert!(begun.elapsed() < Duration::from_secs(300), "{algorithm}: {held} are held");
        };
        assert_eq!(admitted + (all_lost - lost), LIMIT, "{algorithm}: {admitted}");
        lost = all_lost;
        let (calls, took) = (calls(&redis) - before, begun.elapsed());
        // If an answer takes longer than a denial is remembered, each of the six connections asks.
        let most = (answers / 4).max(6 * took.as_millis() as u64 / 60);
        assert!(calls < most, "{algorithm}: {calls} calls for {answers} answers in {took:?}");
    }
    let leased = total(&servers, "headgate_lease_decisions_total", r#"source="lease""#).await;
    assert!(leased > LIMIT, "of 5 times {LIMIT} admissions, {leased} without Redis");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_gives_everything_back() {
    let redis = require!(Redis::start());
    let keys = [
        ("ratelimit.lease", "50%/1000ms"),
        ("ratelimit.default_limit", "1000"),
        ("ratelimit.default_window_seconds", "8640000"),
    ];
    let mut late = Vec::new();
    // On a busy machine, units may come back after the hold is over: they count as used.
    for attempt in 0..5 {
        let name = format!("u{attempt}");
        let server = start(&redis, &keys).await;
        let (_, checks) = super::until_leased(&server, &name).await;
        let held = explained(&server, &name).await["held"]["units"].as_u64();
        server.stop().await.unwrap();
        let other = start(&redis, &keys).await;
        let used = explained(&other, &name).await["used"].as_u64().unwrap();
        if used == checks as u64 {
            return;
        }
        assert!(used > checks as u64, "{used} of {checks} are used");
        late.push((used, checks, held));
    }
    panic!("used, checks and held units: {late:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn units_under_an_earlier_limit_are_not_handed_out() {
    let redis = require!(Redis::start());
    let server = start(&redis, &[]).await;
    let lease = json!({"share_percent": 50, "hold_ms": 1_000});
    let mut rule = rule("u1", 1_000, "fixed_window", &lease);
    let id = server.create_rule(&rule).await;
    super::until_leased(&server, "u1").await;
    rule["limit"] = json!(10);
    rule["lease"] = Value::Null;
    let path = format!("{}/{id}", crate::harness::RULES);
    assert_eq!(server.admin("PUT", &path, &rule.to_string()).await.status, 200);
    let answer = server.check_user("u1").await.json();
    assert_eq!(answer["limit"], 10);
    assert_eq!(answer.get("leased"), None, "{answer}");
    // What was held goes back, so that only what was used counts.
    until(Duration::from_secs(30), async || {
        metric(&server, "headgate_lease_units_held", "").await == 0
    })
    .await;
}
