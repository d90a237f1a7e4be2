//! Places of concurrency limits over REST.

mod holders;

use std::time::Duration;

use headgate_testkit::{Redis, require};
use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, Reply, Server},
    redis::{PATIENT, ready},
};

const ACQUIRE: &str = "/api/v1/ratelimit/acquire";

on_both_backends!(
    a_place_is_held_until_it_is_released,
    a_place_of_a_holder_that_died_is_free_when_its_lease_ends,
    places_and_units_are_taken_together_or_not_at_all,
    a_check_takes_no_place_and_is_denied_while_all_are_taken,
    a_retry_renews_the_same_lease,
    a_reservation_holds_a_place_until_it_is_settled,
    invalid_requests_take_nothing,
);

impl Server {
    async fn limit_exports(&self, limit: u64, longest_lease: u64) -> String {
        self.create_rule(&json!({
            "scope": "service", "identifier_pattern": "export", "limit": limit,
            "window_seconds": longest_lease, "algorithm": "concurrency",
        }))
        .await
    }

    async fn post_value(&self, path: &str, body: &Value) -> Reply {
        self.post(path, &body.to_string()).await
    }

    async fn acquire(&self, lease_seconds: u64) -> Value {
        let check = json!({"scope": "service", "identifier": "export"});
        let body = json!({"checks": [check], "lease_seconds": lease_seconds});
        let reply = self.post_value(ACQUIRE, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let body = reply.json();
        assert_eq!(reply.headers.contains_key("retry-after"), body["allowed"] == false, "{body}");
        body
    }

    async fn change_lease(&self, lease: &Value, verb: &str) -> Reply {
        let id = lease["lease_id"].as_str().unwrap();
        self.post(&format!("/api/v1/ratelimit/leases/{id}/{verb}"), "{}").await
    }

    async fn release(&self, lease: &Value) -> bool {
        let reply = self.change_lease(lease, "release").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()["released"].as_bool().unwrap()
    }
}

fn code(reply: &Reply) -> (u16, String) {
    (reply.status.as_u16(), reply.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

async fn a_place_is_held_until_it_is_released(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(2, 1200).await;
    let (first, second) = (server.acquire(600).await, server.acquire(3600).await);
    assert!(first["lease_id"].as_str().unwrap().starts_with("lease_"), "{first}");
    assert!(first["expires_at"].as_str().unwrap() < second["expires_at"].as_str().unwrap());
    assert_eq!(second["results"][0]["remaining"], 0);

    let denied = server.acquire(30).await;
    assert_eq!((&denied["allowed"], &denied["lease_id"]), (&json!(false), &Value::Null));
    assert_eq!(denied["retry_after_estimated"], true, "{denied}");
    let wait = denied["results"][0]["retry_after_ms"].as_u64().unwrap();
    assert!((1..=600_000).contains(&wait), "until the first lease ends: {denied}");

    let renewed = server.change_lease(&first, "renew").await;
    assert_eq!(renewed.status, 200, "{}", renewed.text);
    assert!(renewed.json()["expires_at"].as_str() > first["expires_at"].as_str());
    assert!(server.release(&first).await);
    assert!(!server.release(&first).await, "it has ended");
    let ended = server.change_lease(&first, "renew").await;
    assert_eq!(code(&ended), (409, "SYS_RATELIMIT_LEASE_ENDED".to_owned()), "{}", ended.text);
    let third = server.acquire(30).await;
    assert_eq!(third["allowed"], true, "{third}");
    assert!(server.release(&second).await && server.release(&third).await);
}

async fn a_place_of_a_holder_that_died_is_free_when_its_lease_ends(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    let lost = server.acquire(1).await;
    let next = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            let next = server.acquire(30).await;
            if next["allowed"] == true {
                return next;
            }
            assert!(next["results"][0]["retry_after_ms"].as_u64().unwrap() <= 1_000, "{next}");
        }
    });
    let next = next.await.expect("the lease is over in a second");
    assert!(next["expires_at"].as_str() > lost["expires_at"].as_str());
    assert!(!server.release(&lost).await, "the place has another holder");
    assert!(server.release(&next).await);
}

async fn places_and_units_are_taken_together_or_not_at_all(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    server
        .create_rule(&json!({
            "scope": "service", "identifier_pattern": "export", "limit": 10,
            "window_seconds": 8_640_000, "algorithm": "fixed_window",
        }))
        .await;
    let acquire = async |cost: u64| {
        let check = json!({"scope": "service", "identifier": "export", "cost": cost});
        server.post_value(ACQUIRE, &json!({"checks": [check]})).await.json()
    };
    let first = acquire(4).await;
    assert_eq!(first["allowed"], true, "{first}");
    // No place: no units.
    assert_eq!(acquire(1).await["allowed"], false);
    assert!(server.release(&first).await);
    // No units: no place, and no estimate.
    let denied = acquire(7).await;
    assert_eq!(
        (&denied["allowed"], &denied["retry_after_estimated"]),
        (&json!(false), &Value::Null)
    );
    let second = acquire(6).await;
    assert_eq!(second["allowed"], true, "four of ten were used: {second}");
    assert!(server.release(&second).await);
}

async fn a_check_takes_no_place_and_is_denied_while_all_are_taken(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    let check = json!({"scope": "service", "identifier": "export", "cost": 5});
    for _ in 0..3 {
        let body = server.post_value(CHECK, &check).await.json();
        assert_eq!((&body["allowed"], &body["remaining"]), (&json!(true), &json!(1)), "{body}");
    }
    let held = server.acquire(30).await;
    assert_eq!(server.post_value(CHECK, &check).await.json()["allowed"], false);
    assert!(server.release(&held).await);
    assert_eq!(server.post_value(CHECK, &check).await.json()["allowed"], true);
}

async fn a_retry_renews_the_same_lease(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    let check = json!({"scope": "service", "identifier": "export"});
    let body = json!({"checks": [check], "request_id": "job-7"});
    let first = server.post_value(ACQUIRE, &body).await.json();
    let again = server.post_value(ACQUIRE, &body).await.json();
    assert_eq!(first["lease_id"], again["lease_id"]);
    assert!(server.release(&again).await);
    // Without a rule, nothing is limited; the lease holds nothing, and works all the same.
    let other = json!({"checks": [{"scope": "service", "identifier": "import"}]});
    let free = server.post_value(ACQUIRE, &other).await.json();
    assert_eq!(free["allowed"], true, "{free}");
    assert_eq!(server.change_lease(&free, "renew").await.status, 200);
    assert!(server.release(&free).await);
}

async fn a_reservation_holds_a_place_until_it_is_settled(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    let check = json!({"scope": "service", "identifier": "export", "cost": 100});
    let body = json!({"checks": [check], "ttl_seconds": 30});
    let reservations = "/api/v1/ratelimit/reservations";
    let made = server.post_value(reservations, &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    assert_eq!(server.acquire(30).await["allowed"], false);
    let settle = format!("{reservations}/{}/settle", made["id"].as_str().unwrap());
    for _ in 0..2 {
        let settled = server.post_value(&settle, &json!({"cost": 7})).await;
        assert_eq!(settled.status, 200, "{}", settled.text);
    }
    assert_eq!(server.acquire(30).await["allowed"], true);
}

async fn invalid_requests_take_nothing(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_exports(1, 60).await;
    let check = json!({"scope": "service", "identifier": "export"});
    for (body, field) in [
        (json!({"checks": []}), "checks"),
        (json!({"checks": [check.clone()], "lease_seconds": 0}), "lease_seconds"),
        (json!({"checks": [check.clone()], "lease_seconds": 3601}), "lease_seconds"),
        (json!({"checks": [check.clone()], "lease_seconds": "30"}), "lease_seconds"),
        (json!({"checks": [check.clone()], "seconds": 30}), "seconds"),
    ] {
        let reply = server.post_value(ACQUIRE, &body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        assert_eq!(reply.json()["error"]["details"][0]["field"], field, "{}", reply.text);
    }
    for verb in ["renew", "release"] {
        let unknown = server.change_lease(&json!({"lease_id": "lease_AAAA"}), verb).await;
        assert_eq!(code(&unknown), (404, "SYS_RATELIMIT_LEASE_NOT_FOUND".to_owned()));
    }
    assert_eq!(server.acquire(30).await["allowed"], true);

    let rule = |fields: Value| {
        let mut rule = json!({
            "scope": "user", "identifier_pattern": "*", "limit": 5, "window_seconds": 60,
            "algorithm": "concurrency",
        });
        rule.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        rule
    };
    let rules = "/api/v1/ratelimit/rules";
    let all = rule(json!({
        "window_seconds": 7200, "lease": {"share_percent": 10, "hold_ms": 200},
    }));
    let refused = server.admin("POST", rules, &all.to_string()).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let fields: Vec<String> = refused.json()["error"]["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["field"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(fields, ["lease", "window_seconds"], "{}", refused.text);
    for fields in [json!({"limit": 100_001}), json!({"burst": 3})] {
        let refused = server.admin("POST", rules, &rule(fields).to_string()).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
}

/// A lease that one instance made is renewed and released by the other.
#[tokio::test(flavor = "multi_thread")]
async fn every_instance_renews_and_releases_a_lease() {
    let backend = require!(Backend::postgres_and_redis());
    let (first, second) = (backend.serve(&[]).await, backend.serve(&[]).await);
    first.limit_exports(1, 60).await;
    let held = first.acquire(30).await;
    assert_eq!(second.change_lease(&held, "renew").await.status, 200);
    assert_eq!(first.acquire(30).await["allowed"], false);
    assert!(second.release(&held).await);
    assert_eq!(first.acquire(30).await["allowed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_during_an_outage_as_the_rule_says() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), PATIENT]).await;
    ready(&server).await;
    let modes = ["open", "capped", "local", "closed"];
    let mut leases = Vec::new();
    for mode in modes {
        server
            .create_rule(&json!({
                "scope": "user", "identifier_pattern": mode, "limit": 1, "window_seconds": 600,
                "algorithm": "concurrency", "fail_mode": mode,
            }))
            .await;
        let check = json!({"scope": "user", "identifier": mode});
        let body = json!({"checks": [check], "lease_seconds": 600});
        leases.push(server.post_value(ACQUIRE, &body).await.json());
    }
    redis.kill();
    for (mode, lease) in modes.into_iter().zip(&leases) {
        let renewed = server.change_lease(lease, "renew").await;
        if mode == "closed" {
            assert_eq!(renewed.status, 503, "{}", renewed.text);
        } else {
            assert_eq!(renewed.status, 200, "{mode}: {}", renewed.text);
            assert_eq!(renewed.json()["degraded"], mode);
        }
    }
    let released = server.change_lease(&leases[0], "release").await;
    assert_eq!(released.status, 503, "its place is free when the lease ends: {}", released.text);
}

/// An id that was made up is as valid as one of another server, whose limits are others.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_server_takes_no_place_after_an_outage() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[("redis.url", url.as_str()), ("redis.timeout_ms", "5000")]).await;
    ready(&server).await;
    server.limit_exports(1, 600).await;
    let held = server.acquire(600).await;
    assert_eq!(held["allowed"], true, "{held}");
    let other = Server::start(&[]).await;
    other.limit_exports(100_000, 600).await;
    let foreign = [other.acquire(600).await, other.acquire(600).await];

    redis.pause();
    for lease in &foreign {
        let renewed = server.change_lease(lease, "renew").await;
        assert_eq!(renewed.status, 503, "{}", renewed.text);
    }
    // That of a rule is renewed as before.
    assert_eq!(server.change_lease(&held, "renew").await.json()["degraded"], "capped");
    redis.resume();
    ready(&server).await;
    for lease in &foreign {
        let ended = (409, "SYS_RATELIMIT_LEASE_ENDED".to_owned());
        assert_eq!(code(&server.change_lease(lease, "renew").await), ended);
    }
    let holders = "/api/v1/ratelimit/holders?scope=service&identifier=export";
    let holders = server.admin("GET", holders, "").await.json();
    assert_eq!(holders["rules"][0]["taken"], 1, "{holders}");
}
