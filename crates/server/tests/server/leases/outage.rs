//! Redis away.

use headgate_testkit::{Redis, require};

use super::{Connection, until_leased};
use crate::{harness::Server, redis::ready};

/// Checks until Redis would have to be asked; returns the number of admissions from the lease.
async fn spend(server: &Server, user: &str) -> usize {
    let mut connection = Connection::open(server.address).await;
    for leased in 0..10_000 {
        let answer = connection.check_user(user).await.json();
        assert_eq!(answer["allowed"], true, "{answer}");
        if answer["leased"] != true {
            assert_eq!(answer["reason"], "redis unavailable, fail-open");
            return leased;
        }
        assert_eq!(answer["reason"], "");
    }
    panic!("more than the limit");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_is_handed_out_and_then_the_failure_policy_answers() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let keys = [
        ("redis.url", url.as_str()),
        ("redis.timeout_ms", "100"),
        ("ratelimit.lease", "50%/1000ms"),
        ("ratelimit.default_limit", "100000"),
        ("ratelimit.default_window_seconds", "8640000"),
    ];
    let server = Server::start(&keys).await;
    ready(&server).await;
    // On a busy machine, a hold may be over before the first check.
    for attempt in 0..20 {
        let user = format!("u{attempt}");
        for _ in 0..5 {
            until_leased(&server, &user).await;
        }
        redis.pause();
        let leased = spend(&server, &user).await;
        redis.resume();
        if leased > 0 {
            return;
        }
        ready(&server).await;
    }
    panic!("nothing was held");
}
