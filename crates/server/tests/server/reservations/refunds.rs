//! Refunds of checks, by their request ids.

use serde_json::{Value, json};

use super::{Backend, error};
use crate::{
    backend::on_both_backends,
    harness::{CHECK, Server},
};

const REFUND: &str = "/api/v1/ratelimit/refund";
const RESET: &str = "/api/v1/ratelimit/reset";

on_both_backends!(
    a_check_is_refunded_once,
    a_refund_needs_the_check_that_was_admitted,
    checks_with_attributes_are_refunded,
    a_refund_returns_nothing_that_a_reset_has_deleted,
);

fn check(cost: u64, request_id: &str) -> Value {
    json!({"scope": "user", "identifier": "u1", "cost": cost, "request_id": request_id})
}

async fn a_check_is_refunded_once(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    let body = check(30, "r1");
    let admitted = server.post_json(CHECK, &body).await;
    assert_eq!(
        (&admitted.json()["allowed"], &admitted.json()["remaining"]),
        (&json!(true), &json!(70))
    );
    assert_eq!(admitted.header("x-ratelimit-remaining"), "70");
    let (status, code, _) = error(&server.post_json(CHECK, &body).await);
    assert_eq!((status, &*code), (409, "SYS_RATELIMIT_REQUEST_ID_CONFLICT"));
    assert_eq!(server.left("u1").await, 70);
    for replayed in ["", "true"] {
        let refunded = server.post_json(REFUND, &body).await;
        assert_eq!(refunded.status, 200, "{}", refunded.text);
        assert_eq!(refunded.header("idempotent-replayed"), replayed);
        let refunded = refunded.json();
        assert_eq!((&refunded["cost"], &refunded["remaining"]), (&json!(30), &json!(100)));
        server.post_json(CHECK, &json!({"scope": "user", "identifier": "u2", "cost": 1})).await;
    }
    assert_eq!(server.left("u1").await, 100);
    // Its id stays used.
    assert_eq!(server.post_json(CHECK, &body).await.status, 409);
}

async fn a_refund_needs_the_check_that_was_admitted(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.limit_users("*", 100).await;
    server.post_json(CHECK, &check(60, "r1")).await;
    let denied = server.post_json(CHECK, &check(60, "r2")).await.json();
    assert_eq!(denied["allowed"], false);
    let mut dry_run = check(10, "r3");
    dry_run["dry_run"] = json!(true);
    assert_eq!(server.post_json(CHECK, &dry_run).await.json()["allowed"], true);
    for body in [check(59, "r1"), check(60, "r2"), check(10, "r3"), check(60, "R1")] {
        let (status, code, _) = error(&server.post_json(REFUND, &body).await);
        assert_eq!((status, &*code), (404, "SYS_RATELIMIT_REQUEST_NOT_FOUND"), "{body}");
    }
    let nameless = json!({"scope": "user", "identifier": "u1", "cost": 0});
    let details = server.post_json(REFUND, &nameless).await.details();
    let fields: Vec<&str> = details.iter().map(|(field, _)| field.as_str()).collect();
    assert_eq!(fields, ["cost", "request_id"]);
    assert_eq!(server.left("u1").await, 40);
}

async fn checks_with_attributes_are_refunded(backend: &Backend) {
    let server: Server = backend.serve(&[]).await;
    server
        .create_rule(&json!({
            "name": "exports", "when": {"path": "/v1/exports/*"}, "per": ["tenant"], "limit": 3,
            "window_seconds": 8_640_000, "algorithm": "sliding_window",
        }))
        .await;
    let body = |id: &str| json!({"attributes": {"tenant": "acme", "path": "/v1/exports/7"}, "cost": 3, "request_id": id});
    assert_eq!(server.post_json(CHECK, &body("r1")).await.json()["remaining"], 0);
    assert_eq!(server.post_json(CHECK, &body("r2")).await.json()["allowed"], false);
    assert_eq!(server.post_json(REFUND, &body("r1")).await.json()["remaining"], 3);
    assert_eq!(server.post_json(CHECK, &body("r2")).await.json()["allowed"], true);
}

async fn a_refund_returns_nothing_that_a_reset_has_deleted(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let algorithms = ["token_bucket", "fixed_window", "sliding_window", "sliding_window_counter"];
    for algorithm in algorithms {
        server
            .create_rule(&json!({
                "scope": "user", "identifier_pattern": algorithm, "limit": 10,
                "window_seconds": 8_640_000, "algorithm": algorithm,
            }))
            .await;
        let ask = |id: &str| json!({"scope": "user", "identifier": algorithm, "cost": 10, "request_id": id});
        let reset = json!({"scope": "user", "identifier": algorithm, "reason": "test"});
        for id in ["before", "between", "after"] {
            let reset = server.admin("POST", RESET, &reset.to_string()).await;
            assert_eq!(reset.status, 200, "{}", reset.text);
            assert_eq!(server.post_json(CHECK, &ask(id)).await.json()["allowed"], true, "{id}");
        }
        for before in ["before", "between"] {
            let refunded = server.post_json(REFUND, &ask(before)).await;
            assert_eq!(refunded.status, 200, "{}", refunded.text);
            assert_eq!(refunded.json()["remaining"], 0, "{algorithm} {before}");
        }
        let refunded = server.post_json(REFUND, &ask("after")).await.json();
        assert_eq!(refunded["remaining"], 10, "{algorithm}: taken after the last reset");
    }
}
