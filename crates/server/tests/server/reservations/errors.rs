//! Invalid requests, none of which takes anything.

use serde_json::{Value, json};

use super::{RESERVATIONS, error, user_request};
use crate::harness::{CHECK, Server};

#[tokio::test]
async fn invalid_requests_are_refused_with_all_their_problems() {
    let server = Server::start(&[]).await;
    let check = json!({"scope": "user", "identifier": "u1"});
    let of = |checks: Value| json!({"checks": checks});
    let ttl = |ttl: Value| json!({"checks": [check], "ttl_seconds": ttl});
    let many = vec![check.clone(); 17];
    let long = |i: usize| json!({"scope": "user", "identifier": format!("{i}{}", "x".repeat(500))});
    let long: Vec<Value> = (0..8).map(long).collect();
    let cases = [
        (json!({}), "checks", "checks must have 1 to 16 items"),
        (of(json!(many)), "checks", "checks must have 1 to 16 items"),
        (of(json!([{"scope": "user"}])), "checks[0].identifier", "identifier is required"),
        (
            of(json!([check, {"scope": "x", "identifier": "u"}])),
            "checks[1].scope",
            "scope must be one of: service, user, endpoint",
        ),
        (
            of(json!([{"scope": "user", "identifier": "u1", "cost": 101}])),
            "checks[0].cost",
            "cost 101 is above the limit of 100 and can never be admitted",
        ),
        (
            of(json!([{"scope": "user", "identifier": "u1", "cost": 0}])),
            "checks[0].cost",
            "cost must be at least 1",
        ),
        (
            of(json!([{"scope": "user", "identifier": "u1", "dry_run": true}])),
            "checks[0].dry_run",
            "dry_run is not for the checks of a reservation",
        ),
        (
            of(json!([{"scope": "user", "identifier": "u1", "request_id": "r"}])),
            "checks[0].request_id",
            "request_id is not for the checks of a reservation",
        ),
        (of(json!(long)), "checks", "too many limits with long identifiers"),
        (ttl(json!(0)), "ttl_seconds", "ttl_seconds must be between 1 and 3600"),
        (ttl(json!(-1)), "ttl_seconds", "ttl_seconds must be between 1 and 3600"),
        (ttl(json!(3601)), "ttl_seconds", "ttl_seconds must be between 1 and 3600"),
        (ttl(json!("1m")), "ttl_seconds", "ttl_seconds must be a whole number, got a string"),
        (
            json!({"checks": [check], "request_id": ""}),
            "request_id",
            "request_id must have 1 to 128 bytes and no control characters",
        ),
        (
            json!({"checks": [check], "request_id": 7}),
            "request_id",
            "request_id must be a string, got a number",
        ),
        (json!({"checks": [check], "ttl": 7}), "ttl", "unknown field"),
    ];
    for (body, field, message) in cases {
        let reply = server.post_json(RESERVATIONS, &body).await;
        assert_eq!(reply.status, 400, "{body} {}", reply.text);
        let details = reply.details();
        assert!(
            matches!(&details[..], [(at, text)] if at == field && text.starts_with(message)),
            "{body} {details:?}"
        );
    }
    let all = json!({"checks": [{"scope": "x"}], "ttl_seconds": 0, "request_id": "\n"});
    assert_eq!(server.post_json(RESERVATIONS, &all).await.details().len(), 4);
    assert_eq!(server.left("u1").await, 100);
}

#[tokio::test]
async fn invalid_changes_are_refused_and_change_nothing() {
    let server = Server::start(&[]).await;
    let checks = json!([{"scope": "user", "identifier": "u1", "cost": 40}, {"scope": "user", "identifier": "u2", "cost": 5}]);
    let made = server.post_json(RESERVATIONS, &json!({"checks": checks, "ttl_seconds": 600})).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let cases = [
        ("settle", json!({}), "cost", "cost is required"),
        ("settle", json!({"cost": null}), "cost", "cost is required"),
        ("settle", json!({"cost": -1}), "cost", "cost must not be negative"),
        ("settle", json!({"cost": 1.5}), "cost", "cost must be a whole number, got a fraction"),
        ("settle", json!({"cost": "1"}), "cost", "cost must be a whole number, got a string"),
        (
            "settle",
            json!({"cost": 9_007_199_254_740_993_u64}),
            "cost",
            "cost must be at most 9007199254740992",
        ),
        (
            "settle",
            json!({"cost": [1]}),
            "cost",
            "cost must be one number, or a list of 2: one for each check; got 1",
        ),
        ("settle", json!({"cost": [1, -1]}), "cost[1]", "cost[1] must not be negative"),
        ("settle", json!({"cost": vec![1; 17]}), "cost", "cost must have at most 16 items"),
        (
            "settle",
            json!({"cost": 1, "overdraft": 1}),
            "overdraft",
            "overdraft must be a boolean, got a number",
        ),
        ("use", json!({"cost": {}}), "cost", "cost must be a whole number, got an object"),
        ("use", json!({"amount": 1, "cost": 1}), "amount", "unknown field"),
        ("use", json!({"total": null}), "cost", "cost or total is required"),
        ("use", json!({"total": 1, "cost": 1}), "total", "total cannot be combined with cost"),
        ("use", json!({"total": -1}), "total", "total must not be negative"),
        ("use", json!({"total": [1, 1.5]}), "total[1]", "total[1] must be a whole number"),
        (
            "use",
            json!({"total": [1]}),
            "total",
            "total must be one number, or a list of 2: one for each check; got 1",
        ),
    ];
    for (verb, body, field, message) in cases {
        let reply = server.change(&id, verb, &body).await;
        assert_eq!(reply.status, 400, "{body} {}", reply.text);
        let details = reply.details();
        assert!(
            matches!(&details[..], [(at, text)] if at == field && text.starts_with(message)),
            "{body} {details:?}"
        );
    }
    let shown = server.reservation(&id).await;
    assert_eq!(
        (&shown["results"][0]["held"], &shown["results"][1]["held"]),
        (&json!(40), &json!(5))
    );
}

#[tokio::test]
async fn an_unknown_or_forged_id_is_not_found() {
    let server = Server::start(&[]).await;
    let id = server.reserve_user("u1", 40).await;
    let mut forged = id.clone();
    let last = if forged.ends_with('A') { 'B' } else { 'A' };
    forged.pop();
    forged.push(last);
    let long = format!("rres_{}", "A".repeat(5_000));
    for id in
        ["rres_", "x", "rres_AAAA", "qres_2026-02_A", "%00", &forged, &id[..id.len() - 4], &long]
    {
        for (verb, body) in
            [("settle", json!({"cost": 1})), ("use", json!({"cost": 1})), ("cancel", json!({}))]
        {
            let (status, code, message) = error(&server.change(id, verb, &body).await);
            assert_eq!((status, &*code), (404, "SYS_RATELIMIT_RESERVATION_NOT_FOUND"), "{id}");
            assert!(message.len() < 200, "{message}");
        }
        let shown = server.get(&format!("{RESERVATIONS}/{id}")).await;
        assert_eq!(shown.status, 404, "{}", shown.text);
    }
    assert_eq!(server.reservation(&id).await["results"][0]["held"], 40);
}

#[tokio::test]
async fn a_check_is_as_it_was_without_a_request_id() {
    // In the default window, the unit would be back in 600 ms.
    let server = Server::start(&[("ratelimit.default_window_seconds", "8640000")]).await;
    let body = json!({"scope": "user", "identifier": "u1", "request_id": null});
    let reply = server.post_json(CHECK, &body).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["remaining"]), (200, &json!(99)));
    let bad = json!({"scope": "user", "identifier": "u1", "request_id": "x".repeat(129)});
    assert_eq!(server.post_json(CHECK, &bad).await.status, 400);
    let denied = user_request("u1", 100);
    assert_eq!(server.post_json(RESERVATIONS, &denied).await.json()["allowed"], false);
}
