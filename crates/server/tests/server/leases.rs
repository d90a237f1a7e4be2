//! Leases: units taken in advance from Redis, on every surface.

mod connection;
mod denials;
mod exactness;
mod outage;
mod surfaces;

use headgate_testkit::Redis;
use serde_json::{Value, json};

use self::connection::Connection;
use crate::{
    harness::Server,
    redis::{PATIENT, ready},
};

/// A window that does not end during a test.
const FOREVER: u64 = 8_640_000;

/// Starts a server on `redis` with these keys.
async fn start(redis: &Redis, keys: &[(&str, &str)]) -> Server {
    let url = redis.url();
    let server = Server::start(&[&[("redis.url", url.as_str()), PATIENT], keys].concat()).await;
    ready(&server).await;
    server
}

fn rule(pattern: &str, limit: u64, algorithm: &str, lease: &Value) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": FOREVER,
        "algorithm": algorithm, "lease": lease,
    })
}

/// Number of scripts that Redis has run: each is one call of the store.
fn calls(redis: &Redis) -> u64 {
    let stats = redis.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default();
    let calls = line.split(['=', ',']).nth(1).unwrap_or("0");
    calls.parse().unwrap()
}

/// The explanation of the rule that decides for a user.
async fn explained(server: &Server, user: &str) -> Value {
    let path = format!("/api/v1/ratelimit/explain?scope=user&identifier={user}");
    let reply = server.admin("GET", &path, "").await;
    let rules = reply.json()["rules"].take();
    rules.as_array().unwrap().iter().find(|rule| rule["applies"] == true).unwrap().clone()
}

/// The value of a metric.
async fn metric(server: &Server, name: &str, label: &str) -> u64 {
    let text = server.get("/metrics").await.text;
    let found = text.lines().find(|line| line.starts_with(name) && line.contains(label));
    let found = found.unwrap_or_else(|| panic!("no {name} {label} in\n{text}"));
    found.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
}

/// Checks a user until an answer is decided without Redis; returns it and the number of checks.
async fn until_leased(server: &Server, user: &str) -> (Value, usize) {
    let mut connection = Connection::open(server.address).await;
    for checks in 1..=10_000 {
        let answer = connection.check_user(user).await;
        assert_eq!(answer.json()["allowed"], true, "{answer:?}");
        if answer.json()["leased"] == true {
            assert_eq!(answer.header("x-ratelimit-leased"), "true");
            return (answer.json(), checks);
        }
        assert_eq!(answer.json().get("leased"), None);
        assert_eq!(answer.header("x-ratelimit-leased"), "");
    }
    panic!("Redis was asked every time");
}
