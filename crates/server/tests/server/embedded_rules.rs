//! Rules of a server in another service: `headgate-guard-rules`.

use std::{sync::Arc, time::Duration};

use headgate::Cost;
use headgate_guard_rules::{Attributes, RuleSet, ServerRules};
use headgate_store_redis::{RedisConfig, RedisStore};
use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use crate::{
    harness::{CHECK, RULES, Server},
    redis::{PATIENT, ready},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

const OVERRIDES: &str = "/api/v1/ratelimit/overrides";

fn rule(name: &str, limit: u64) -> Value {
    json!({"name": name, "when": {"path": "/v1/*"}, "per": ["user"], "limit": limit,
        "window_seconds": FOREVER, "lease": {"share_percent": 0, "hold_ms": 100}})
}

fn follow(server: &Server, rules: &RuleSet) -> ServerRules {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("http://{}/", server.address);
    ServerRules::new(client, &url, server.admin_token.clone(), rules).unwrap()
}

async fn check(rules: &RuleSet, user: &str) -> Option<(bool, u64, String)> {
    let mut attributes = Attributes::default();
    attributes.insert("path", "/v1/x").unwrap();
    attributes.insert("user", user).unwrap();
    let verdict = rules.check(attributes, Cost::ONE).await.unwrap()?;
    Some((verdict.decision.allowed, verdict.decision.remaining, verdict.rule))
}

#[tokio::test]
async fn changes_of_a_server_apply_and_its_last_rules_stay() {
    let server = Server::start(&[]).await;
    let rules = RuleSet::in_memory();
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("rules.json");
    let mut source = follow(&server, &rules).cached_in(&cache);
    assert!(source.refresh().await.unwrap());
    assert_eq!(check(&rules, "u1").await, None);
    let many: Vec<Value> = (0..250).map(|i| rule(&format!("other{i}"), 1000)).collect();
    let many: Vec<Value> = many
        .into_iter()
        .map(|mut rule| {
            rule["when"] = json!({"path": "/other"});
            rule
        })
        .chain([rule("exports", 3)])
        .collect();
    let reply = server.admin("PUT", RULES, &json!({"rules": many}).to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    assert!(source.refresh().await.unwrap());
    assert_eq!(rules.len(), 251);
    assert_eq!(check(&rules, "u1").await, Some((true, 2, "exports".to_owned())));
    assert!(!source.refresh().await.unwrap());

    let token = ServerRules::new(reqwest::Client::new(), "http://127.0.0.1:1", None, &rules);
    let error = token.unwrap().refresh().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot fetch rules: "), "{error}");
    let restarted = RuleSet::in_memory();
    let mut again = follow(&server, &restarted);
    server.stop().await.unwrap();
    assert!(source.refresh().await.is_err());
    // A service that starts now has the cached rules, if it has a cache.
    assert!(again.refresh().await.is_err());
    assert!(restarted.is_empty());
    again = again.cached_in(&cache);
    assert!(again.refresh().await.unwrap());
    assert_eq!(restarted.len(), 251);
    assert_eq!(check(&restarted, "u1").await, Some((true, 2, "exports".to_owned())));
    assert!(again.refresh().await.is_err());
    assert_eq!(check(&rules, "u1").await, Some((true, 1, "exports".to_owned())));
    let followed =
        tokio::time::timeout(Duration::from_millis(50), source.follow(Duration::from_millis(5)));
    assert!(followed.await.is_err());
    assert_eq!(rules.len(), 251);
}

#[tokio::test]
async fn overrides_of_a_server_apply_and_stay_with_its_last_rules() {
    let server = Server::start(&[]).await;
    let id = server.create_rule(&rule("exports", 10)).await;
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("rules.json");
    let rules = RuleSet::in_memory();
    let mut source = follow(&server, &rules).cached_in(&cache);
    assert!(source.refresh().await.unwrap());
    assert_eq!(check(&rules, "u1").await, Some((true, 9, "exports".to_owned())));

    // More than a page of them.
    for i in 1..=101 {
        let user = format!("u{i}");
        let until = if i == 2 { json!("2126-12-01T00:00:00Z") } else { Value::Null };
        let lowered = json!({"rule_id": id, "subject": {"user": user}, "limit": 2, "until": until});
        let set = server.admin("PUT", OVERRIDES, &lowered.to_string()).await;
        assert_eq!(set.status, 201, "{}", set.text);
    }
    assert!(source.refresh().await.unwrap());
    assert!(!source.refresh().await.unwrap());
    assert_eq!(check(&rules, "u1").await, Some((true, 0, "exports".to_owned())));
    assert_eq!(check(&rules, "u1").await, Some((false, 0, "exports".to_owned())));
    for user in ["u2", "u101"] {
        assert_eq!(check(&rules, user).await, Some((true, 1, "exports".to_owned())), "{user}");
    }
    assert_eq!(check(&rules, "other").await, Some((true, 9, "exports".to_owned())));

    let listed = server.admin("GET", &format!("{OVERRIDES}?search=u101"), "").await.json();
    let one = format!("{OVERRIDES}/{}", listed["overrides"][0]["id"].as_str().unwrap());
    assert_eq!(server.admin("DELETE", &one, "").await.status, 204);
    assert!(source.refresh().await.unwrap());
    assert_eq!(check(&rules, "u101").await, Some((true, 8, "exports".to_owned())));

    let restarted = RuleSet::in_memory();
    let mut again = follow(&server, &restarted).cached_in(&cache);
    server.stop().await.unwrap();
    assert!(again.refresh().await.unwrap());
    assert_eq!(check(&restarted, "u1").await, Some((true, 1, "exports".to_owned())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_and_the_server_count_together() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), PATIENT]).await;
    ready(&server).await;
    server.create_rule(&rule("exports", 3)).await;
    let patience = Duration::from_secs(30);
    let config = RedisConfig::from_url(&url).unwrap().timeout(patience).connect_timeout(patience);
    let rules = RuleSet::on(Arc::new(RedisStore::connect(config)));
    follow(&server, &rules).refresh().await.unwrap();
    assert_eq!(check(&rules, "u1").await, Some((true, 2, "exports".to_owned())));
    let body = json!({"attributes": {"path": "/v1/x", "user": "u1"}}).to_string();
    assert_eq!(server.post(CHECK, &body).await.json()["remaining"], 1);
    assert_eq!(check(&rules, "u1").await, Some((true, 0, "exports".to_owned())));
    assert_eq!(server.post(CHECK, &body).await.json()["allowed"], false);
}
