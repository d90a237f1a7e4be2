//! Reservations and refunds of rate limits over REST.

mod errors;
mod refunds;
mod shared;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, Reply, Server},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

const RESERVATIONS: &str = "/api/v1/ratelimit/reservations";

on_both_backends!(
    an_id_of_another_server_lifts_no_limit,
    units_are_reserved_and_settled_for_what_was_spent,
    a_denial_reserves_nothing,
    a_stream_is_metered_while_it_runs,
    a_total_is_charged_once_however_often_it_is_sent,
    reservations_that_are_cancelled_or_expire_return_their_units,
    more_than_was_reserved_is_owed_or_overdrawn,
    checks_with_attributes_are_reserved_together,
    a_retry_gets_the_same_reservation,
    a_changed_rule_applies_to_the_settlement,
);

impl Server {
    async fn post_json(&self, path: &str, body: &Value) -> Reply {
        self.post(path, &body.to_string()).await
    }

    /// Limits users whose names match `pattern`, in a window that does not end.
    async fn limit_users(&self, pattern: &str, limit: u64) -> String {
        self.create_rule(&json!({
            "scope": "user", "identifier_pattern": pattern, "limit": limit,
            "window_seconds": FOREVER, "algorithm": "fixed_window",
        }))
        .await
    }

    /// Units left of a user.
    async fn left(&self, user: &str) -> u64 {
        let body = json!({"scope": "user", "identifier": user, "dry_run": true});
        self.post_json(CHECK, &body).await.json()["remaining"].as_u64().unwrap()
    }

    /// Reserves units of a user for an hour; returns the id.
    async fn reserve_user(&self, user: &str, cost: u64) -> String {
        let reply = self.post_json(RESERVATIONS, &user_request(user, cost)).await;
        assert_eq!(reply.status, 201, "{}", reply.text);
        reply.json()["id"].as_str().unwrap().to_owned()
    }

    async fn change(&self, id: &str, verb: &str, body: &Value) -> Reply {
        self.post_json(&format!("{RESERVATIONS}/{id}/{verb}"), body).await
    }

    async fn reservation(&self, id: &str) -> Value {
        let reply = self.get(&format!("{RESERVATIONS}/{id}")).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    }
}

fn user_request(user: &str, cost: u64) -> Value {
    let check = json!({"scope": "user", "identifier": user, "cost": cost});
    // The longest, so that none expires during a test.
    json!({"checks": [check], "ttl_seconds": 3600})
}

/// Status, code and message of an error.
fn error(reply: &Reply) -> (u16, String, String) {
    let body = reply.json();
    let text = |name: &str| body["error"][name].as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), text("code"), text("message"))
}

async fn units_are_reserved_and_settled_for_what_was_spent(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let made = server.post_json(RESERVATIONS, &user_request("u1", 40)).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    assert_eq!((&made["allowed"], &made["status"]), (&json!(true), &json!("pending")));
    assert!(made["expires_at"].as_str().unwrap().ends_with("+00:00"));
    assert_eq!(made["results"][0]["remaining"], 60);
    assert_eq!(server.left("u1").await, 60);

    let id = made["id"].as_str().unwrap();
    let shown = server.reservation(id).await;
    assert_eq!((&shown["status"], &shown["results"][0]["held"]), (&json!("pending"), &json!(40)));
    assert_eq!(shown["expires_at"], made["expires_at"]);

    let settled = server.change(id, "settle", &json!({"cost": 25})).await;
    assert_eq!(settled.status, 200, "{}", settled.text);
    let first = settled.json();
    let units = ["settled", "returned", "owed"].map(|name| first[name].as_u64().unwrap());
    assert_eq!(units, [25, 15, 0]);
    assert_eq!(first["results"][0]["remaining"], 75);
    let again = server.change(id, "settle", &json!({"cost": 25})).await;
    assert_eq!((again.status.as_u16(), again.json()), (200, first));
    assert_eq!(server.left("u1").await, 75);
    let other = server.change(id, "settle", &json!({"cost": 26})).await;
    let expected = "the reservation was settled for 25 before: nothing was changed".to_owned();
    assert_eq!(error(&other), (409, "SYS_RATELIMIT_RESERVATION_CONFLICT".to_owned(), expected));
    let shown = server.reservation(id).await;
    assert_eq!(
        (&shown["status"], &shown["results"][0]["settled"]),
        (&json!("settled"), &json!(25))
    );
    let metrics = server.get("/metrics").await.text;
    for line in [
        r#"headgate_reservations_total{operation="reserve",outcome="done",service="headgate"} 1"#,
        r#"headgate_reservations_total{operation="settle",outcome="done",service="headgate"} 2"#,
        r#"headgate_reservations_total{operation="settle",outcome="invalid",service="headgate"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

async fn a_denial_reserves_nothing(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    server.reserve_user("u2", 70).await;
    let check = |user: &str| json!({"scope": "user", "identifier": user, "cost": 31});
    let body = json!({"checks": [check("u1"), check("u2")]});
    let denied = server.post_json(RESERVATIONS, &body).await;
    assert_eq!(denied.status, 200, "{}", denied.text);
    assert!(denied.headers.contains_key("retry-after"));
    let denied = denied.json();
    assert_eq!((&denied["allowed"], denied.get("id")), (&json!(false), None));
    assert_eq!(denied["results"][0]["allowed"], true);
    assert_eq!(denied["results"][1]["allowed"], false);
    assert!(denied["results"][1]["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!((server.left("u1").await, server.left("u2").await), (100, 30));
}

async fn a_stream_is_metered_while_it_runs(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 10).await;
    let id = server.reserve_user("u1", 3).await;
    let mut produced = 0;
    loop {
        produced += 3;
        let used = server.change(&id, "use", &json!({"cost": 3})).await;
        assert_eq!(used.status, 200, "{}", used.text);
        let used = used.json();
        assert!(used["expires_at"].is_string());
        assert_eq!(used["stop"], used["held"] == 0);
        if used["stop"] == true {
            break;
        }
    }
    // At most a chunk less one over the limit.
    assert_eq!(produced, 12);
    let settled = server.change(&id, "settle", &json!({"cost": produced})).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(12), &json!(0)));
    assert_eq!(server.left("u1").await, 0);
}

async fn a_total_is_charged_once_however_often_it_is_sent(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let id = server.reserve_user("u1", 10).await;
    // Repeated, overtaken by a later one, the answer of an earlier one lost.
    for (total, held, left) in
        [(10, 10, 80), (10, 10, 80), (40, 30, 30), (20, 30, 30), (40, 30, 30)]
    {
        let used = server.change(&id, "use", &json!({"total": total})).await;
        assert_eq!((used.status.as_u16(), &used.json()["held"]), (200, &json!(held)), "{total}");
        assert_eq!(server.left("u1").await, left, "{total}");
    }
    // Many at once: one of them is charged.
    let body = json!({"total": [55]});
    let replies = (0..8).map(|_| server.change(&id, "use", &body));
    for reply in futures_util::future::join_all(replies).await {
        assert_eq!((reply.status.as_u16(), &reply.json()["held"]), (200, &json!(15)));
    }
    assert_eq!(server.left("u1").await, 30);
    let stopped = server.change(&id, "use", &json!({"total": 120})).await.json();
    assert_eq!(server.change(&id, "use", &json!({"total": 120})).await.json()["stop"], true);
    assert_eq!((&stopped["stop"], server.left("u1").await), (&json!(true), 0));
    let settled = server.change(&id, "settle", &json!({"cost": 120})).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(120), &json!(0)));
    let late = server.change(&id, "use", &json!({"total": 121})).await;
    assert_eq!(error(&late).1, "SYS_RATELIMIT_RESERVATION_CONFLICT");
}

async fn reservations_that_are_cancelled_or_expire_return_their_units(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let cancelled = server.reserve_user("u1", 40).await;
    let answer = server.change(&cancelled, "cancel", &json!({})).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["status"].clone()),
        (200, json!("cancelled"))
    );
    assert_eq!(server.left("u1").await, 100);
    let mut short = user_request("u2", 40);
    short["ttl_seconds"] = json!(1);
    let expired = server.post_json(RESERVATIONS, &short).await.json()["id"].clone();
    let expired = expired.as_str().unwrap();
    let returned = async {
        while server.left("u2").await < 100 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(120), returned).await.expect("units that return");
    for id in [cancelled.as_str(), expired] {
        for (verb, body) in [
            ("settle", json!({"cost": 1, "overdraft": true})),
            ("use", json!({"cost": 1})),
            ("cancel", json!({})),
        ] {
            let (status, code, message) = error(&server.change(id, verb, &body).await);
            assert_eq!((status, &*code), (409, "SYS_RATELIMIT_RESERVATION_EXPIRED"), "{verb}");
            assert!(message.ends_with("reserve again"), "{message}");
        }
        assert_eq!(server.reservation(id).await["status"], "ended");
    }
    assert_eq!((server.left("u1").await, server.left("u2").await), (100, 100));
}

async fn more_than_was_reserved_is_owed_or_overdrawn(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let id = server.reserve_user("u1", 40).await;
    let settled = server.change(&id, "settle", &json!({"cost": 130})).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(100), &json!(30)));
    let id = server.reserve_user("u2", 40).await;
    let body = json!({"cost": [130], "overdraft": true});
    let settled = server.change(&id, "settle", &body).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(130), &json!(0)));
    assert_eq!(settled["results"][0]["debt"], 30);
}

async fn checks_with_attributes_are_reserved_together(backend: &Backend) {
    let server = backend.serve(&[]).await;
    for (unit, limit) in [("requests", 10), ("tokens", 1_000)] {
        server
            .create_rule(&json!({
                "name": unit, "when": {"unit": unit}, "per": ["tenant"], "limit": limit,
                "window_seconds": FOREVER, "algorithm": "fixed_window",
            }))
            .await;
    }
    let check = |unit: &str, cost: u64| json!({"attributes": {"tenant": "acme", "unit": unit}, "cost": cost});
    let body = json!({"checks": [check("requests", 1), check("tokens", 800)]});
    let made = server.post_json(RESERVATIONS, &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let made = made.json();
    assert_eq!(made["results"][1]["rule"]["name"], "tokens");
    let id = made["id"].as_str().unwrap();
    let denied = server.post_json(RESERVATIONS, &body).await.json();
    assert_eq!(
        (&denied["allowed"], &denied["results"][0]["remaining"]),
        (&json!(false), &json!(9))
    );
    let settled = server.change(id, "settle", &json!({"cost": [1, 300]})).await.json();
    assert_eq!(settled["results"][0]["remaining"], 9);
    assert_eq!(settled["results"][1]["remaining"], 700);
    // No rule matches: nothing is limited.
    let body = json!({"checks": [{"attributes": {"colour": "red"}, "cost": 5}]});
    let made = server.post_json(RESERVATIONS, &body).await.json();
    let id = made["id"].as_str().unwrap();
    let settled = server.change(id, "settle", &json!({"cost": 7})).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(0), &json!(0)));
}

async fn a_retry_gets_the_same_reservation(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let mut body = user_request("u1", 40);
    body["request_id"] = json!("r1");
    let made = server.post_json(RESERVATIONS, &body).await;
    let again = server.post_json(RESERVATIONS, &body).await;
    assert_eq!((again.status.as_u16(), again.json()), (201, made.json()));
    assert_eq!(
        (made.header("idempotent-replayed"), again.header("idempotent-replayed")),
        ("", "true")
    );
    assert_eq!(server.left("u1").await, 60);
    body["checks"][0]["cost"] = json!(41);
    let (status, code, _) = error(&server.post_json(RESERVATIONS, &body).await);
    assert_eq!((status, &*code), (409, "SYS_RATELIMIT_REQUEST_ID_CONFLICT"));
    assert_eq!(server.left("u1").await, 60);
}

async fn a_changed_rule_applies_to_the_settlement(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = server.limit_users("u1", 100).await;
    let first = server.reserve_user("u1", 40).await;
    let second = server.reserve_user("u1", 40).await;
    let path = format!("{}/{rule}", crate::harness::RULES);
    let mut fields = server.admin("GET", &path, "").await.json();
    fields = json!({
        "scope": "user", "identifier_pattern": "u1", "limit": 200, "window_seconds": fields["window_seconds"],
        "algorithm": "fixed_window", "enabled": true,
    });
    let changed = server.admin("PUT", &path, &fields.to_string()).await;
    assert_eq!(changed.status, 200, "{}", changed.text);
    let settled = server.change(&first, "settle", &json!({"cost": 150})).await.json();
    assert_eq!((&settled["settled"], &settled["owed"]), (&json!(150), &json!(0)));
    let deleted = server.admin("DELETE", &path, "").await;
    assert!(deleted.status.is_success(), "{}", deleted.text);
    let settled = server.change(&second, "settle", &json!({"cost": 10})).await.json();
    assert_eq!((&settled["settled"], &settled["returned"]), (&json!(10), &json!(30)));
}

/// An id that was made up is as valid as one of another server, whose limits are others.
async fn an_id_of_another_server_lifts_no_limit(backend: &Backend) {
    let rule = |limit: u64| {
        json!({
            "scope": "user", "identifier_pattern": "u1", "limit": limit, "window_seconds": 86_400,
        })
    };
    let other = Server::start(&[]).await;
    other.create_rule(&rule(u64::from(u32::MAX))).await;
    let foreign = other.reserve_user("u1", 1).await;
    let server = backend.serve(&[]).await;
    server.create_rule(&rule(20)).await;
    let all = json!({"scope": "user", "identifier": "u1", "cost": 20});
    assert_eq!(server.post_json(CHECK, &all).await.json()["allowed"], true);
    for (verb, body) in
        [("settle", json!({"cost": 1})), ("use", json!({"cost": 1})), ("cancel", json!({}))]
    {
        let reply = server.change(&foreign, verb, &body).await;
        assert_eq!(reply.status, 409, "{verb} {}", reply.text);
        let denied = server.post_json(RESERVATIONS, &user_request("u1", 1)).await.json();
        assert_eq!(denied["allowed"], false, "{verb} {denied}");
        // A unit returns in more than an hour.
        let wait = denied["results"][0]["retry_after_ms"].as_u64().unwrap();
        assert!(wait > 3_600_000, "{verb} {denied}");
    }
}
