//! Requests of the console's pages.

use std::time::Duration;

use headgate::Timestamp;
use headgate_ratelimit::Author;
use headgate_service_config::{ConfigUpdate, ServiceConfigRepository};
use hyper::Request;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{TOKENS, ask, relay, sign_in};
use crate::{
    events::receiver::Receiver,
    harness::{RULES, Server},
};

/// Limit of waiting on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn a_rule_is_changed_only_if_its_etag_matches() {
    let server = Server::start(&[]).await;
    let rule =
        json!({"scope": "user", "identifier_pattern": "u1", "limit": 5, "window_seconds": 60});
    let path = format!("{RULES}/{}", server.create_rule(&rule).await);
    let seen = server.admin("GET", &path, "").await;
    let tag = seen.header("etag").to_owned();
    assert_eq!(tag, seen.json()["updated_at"].to_string());
    let change = async |tag: &str, limit: u32| {
        let body = json!({"limit": limit, "scope": "user", "identifier_pattern": "u1", "window_seconds": 60});
        let token = format!("Bearer {}", server.admin_token.as_deref().unwrap());
        let request = Request::put(&path).header("if-match", tag).header("authorization", token);
        server.send(request.header("content-type", "application/json"), &body.to_string()).await
    };
    let first = change(&tag, 6).await;
    assert_eq!(first.status, 200, "{}", first.text);
    assert_ne!(first.header("etag"), tag);

    let late = change(&tag, 7).await;
    assert_eq!(
        (late.status.as_u16(), &late.json()["error"]["code"]),
        (412, &json!("SYS_RATELIMIT_RULE_CHANGED"))
    );
    assert_eq!(server.admin("GET", &path, "").await.json()["limit"], 6);

    assert_eq!(change(first.header("etag"), 7).await.status, 200);
    assert_eq!(change("*", 8).await.status, 200);
    assert_eq!(change("yesterday", 9).await.status, 400);
    // Without `If-Match` the change is unconditional.
    let careless =
        json!({"limit": 9, "scope": "user", "identifier_pattern": "u1", "window_seconds": 60});
    assert_eq!(server.admin("PUT", &path, &careless.to_string()).await.status, 200);
}

#[tokio::test]
async fn a_rule_is_deleted_only_if_its_etag_matches() {
    let server = Server::start(&[]).await;
    let rule =
        json!({"scope": "user", "identifier_pattern": "u1", "limit": 5, "window_seconds": 60});
    let path = format!("{RULES}/{}", server.create_rule(&rule).await);
    let tag = server.admin("GET", &path, "").await.header("etag").to_owned();
    let updated = server.admin("PUT", &path, &rule.to_string()).await;
    let delete = async |tag: &str| {
        let token = format!("Bearer {}", server.admin_token.as_deref().unwrap());
        let request = Request::delete(&path).header("if-match", tag).header("authorization", token);
        server.send(request, "").await.status.as_u16()
    };
    assert_eq!(delete(&tag).await, 412);
    assert_eq!(delete("yesterday").await, 400);
    assert_eq!(server.admin("GET", &path, "").await.status, 200);
    assert_eq!(delete(updated.header("etag")).await, 204);
    assert_eq!(server.admin("GET", &path, "").await.status, 404);
}

#[tokio::test]
async fn rules_are_searched() {
    let server = Server::start(&[]).await;
    for (name, pattern) in [("Free plan", "free-*"), ("Paid", "paid-*")] {
        let rule = json!({"name": name, "scope": "user", "identifier_pattern": pattern, "limit": 5, "window_seconds": 60});
        server.create_rule(&rule).await;
    }
    let count = async |query: &str| {
        let reply = server.admin("GET", &format!("{RULES}?{query}"), "").await;
        (reply.status.as_u16(), reply.json()["pagination"]["total_count"].clone())
    };
    assert_eq!(count("search=PLAN").await, (200, json!(1)));
    assert_eq!(count("search=-%2A&scope=user").await, (200, json!(2)));
    assert_eq!(count("search=-%2A&scope=service").await, (200, json!(0)));
    assert_eq!(count(&format!("search={}", "x".repeat(256))).await, (400, Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_newest_first_with_their_deliveries() {
    let receiver = Receiver::start(&[]).await;
    let webhooks = receiver.config("webhook-secret-0123456789", "");
    let server = Server::start(&[("webhooks", &webhooks)]).await;
    let policy = json!({"name": "n", "subject_type": "user", "subject_id": "u1", "limit": 10, "period": "daily", "alert_threshold_percent": 50});
    let made = server.admin("POST", "/api/v1/quotas", &policy.to_string()).await.json();
    let increment = format!("/api/v1/quotas/{}/usage/increment", made["id"].as_str().unwrap());
    assert_eq!(server.admin("POST", &increment, r#"{"amount":10}"#).await.status, 200);
    receiver.until(|got| got.len() == 2).await;

    let delivered = async {
        loop {
            let path = "/api/v1/events?order=newest&deliveries=true";
            let events = server.admin("GET", path, "").await.json()["events"].clone();
            let mut listed = events.as_array().unwrap().iter();
            if listed.all(|it| it["deliveries"][0]["delivered"] == true) {
                return events;
            }
            // A delivery is recorded a moment later.
            sleep(Duration::from_millis(10)).await;
        }
    };
    let events = timeout(PATIENCE, delivered).await.expect("deliveries on record");
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|it| &it["event_type"]).collect();
    assert_eq!(kinds, ["QUOTA_EXCEEDED", "QUOTA_THRESHOLD_REACHED"]);
    let delivery = &events[0]["deliveries"][0];
    assert!(delivery["sink"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{delivery}");
    assert!(!delivery.to_string().contains("hidden"), "no part of the address that may be secret");
    assert!(delivery["delivered_at"].is_string());

    let newest = server.admin("GET", "/api/v1/events?order=newest&limit=1", "").await.json();
    assert_eq!(newest["events"][0]["event_type"], "QUOTA_EXCEEDED");
    assert!(newest["events"][0].get("deliveries").is_none());
    let before = newest["next"].as_str().unwrap();
    let older =
        server.admin("GET", &format!("/api/v1/events?order=newest&before={before}"), "").await;
    assert_eq!(older.json()["events"][0]["event_type"], "QUOTA_THRESHOLD_REACHED");
    for wrong in [
        "order=sideways",
        "order=newest&before=-1",
        "deliveries=perhaps",
        "before=5",
        "order=oldest&before=5",
        "order=newest&after=5",
    ] {
        assert_eq!(
            server.admin("GET", &format!("/api/v1/events?{wrong}"), "").await.status,
            400,
            "{wrong}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_shows_server_state_and_limited_subjects() {
    let keys = [
        ("auth.tokens", TOKENS),
        ("ratelimit.default_limit", "1"),
        ("ratelimit.default_window_seconds", "8640000"),
    ];
    let server = Server::start(&keys).await;
    for _ in 0..5 {
        server.check_user("somebody-known").await;
    }
    let keyed = "/api/v1/rate-limit/check?algorithm=FIXED_WINDOW&key=k1";
    server.get(keyed).await;
    let batch = r#"{"checks":[{"scope":"user","identifier":"somebody-known"}]}"#;
    server.post("/api/v1/ratelimit/check/batch", batch).await;
    let overview = async |token: &str| {
        let reply = server.with_token(Some(token), "GET", "/console/overview", "").await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    let seen = overview("operator-token-0123456789").await;
    assert_eq!((&seen["store"]["ok"], &seen["database"]["ok"]), (&json!(true), &json!(true)));
    assert_eq!(seen["server"]["store"], "memory");
    let limited = &seen["limited"][0];
    assert_eq!(
        (&limited["scope"], &limited["identifier"]),
        (&json!("user"), &json!("somebody-known"))
    );
    assert_eq!((&limited["denied"], &limited["rule_name"]), (&json!(5), &json!("default")));
    let masked = overview("auditor-token-0123456789").await;
    assert_eq!(
        (&masked["masked"], &masked["limited"][0]["identifier"]),
        (&json!(true), &json!("som***wn"))
    );

    // Each decision is counted in one of the seconds. They are shown as rates, which are lower if a
    // second takes longer, as on a busy machine: then it needs more decisions.
    let counted = async {
        loop {
            let beats = overview("operator-token-0123456789").await["beats"].clone();
            let sum = |name: &str| -> f64 {
                let each = beats.as_array().unwrap().iter();
                each.map(|beat| beat[name].as_f64().unwrap()).sum::<f64>()
            };
            if sum("admitted") >= 1.5 && sum("denied") >= 4.5 {
                return;
            }
            sleep(Duration::from_millis(500)).await;
            server.get(keyed).await;
            server.check_user("somebody-known").await;
        }
    };
    timeout(PATIENCE, counted).await.expect("rates of decisions");
}

#[tokio::test]
async fn a_document_is_changed_only_at_the_expected_version() {
    const RELAY: &str = "/api/v1/services/relay";
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let server =
        Server::start_in_place(&[("server.data_dir", folder), ("auth.tokens", TOKENS)]).await;
    relay::register(&relay::documents(data.path())).await;
    let put = async |token: &str, body: &Value| {
        server.with_token(Some(token), "PUT", RELAY, &body.to_string()).await
    };
    let (ops, eyes) = ("operator-token-0123456789", "auditor-token-0123456789");
    let first = json!({"config": {"rate_limit": {"ws": {"events_per_minute": 240}}}, "expected_version": 0});
    assert_eq!(put(eyes, &first).await.status, 403);
    let made = put(ops, &first).await;
    assert_eq!((made.status.as_u16(), &made.json()["version"]), (200, &json!(1)), "{}", made.text);
    let late = put(ops, &first).await;
    assert_eq!(
        (late.status.as_u16(), &late.json()["error"]["code"]),
        (409, &json!("SYS_SERVICE_VERSION_MISMATCH"))
    );
    let wrong = json!({"config": {"rate_limit": {"ws": {"events_per_minute": -1}}, "surprise": 1}, "expected_version": 1});
    let refused = put(ops, &wrong).await;
    assert_eq!(refused.status, 400);
    let details = refused.json()["error"]["details"].to_string();
    assert!(
        details.contains("/rate_limit/ws/events_per_minute") && details.contains("/surprise"),
        "{details}"
    );
    assert_eq!(put(ops, &json!({"config": 7})).await.status, 400);

    let seen = server.with_token(Some(eyes), "GET", "/api/v1/services", "").await.json();
    let relay = seen["services"].as_array().unwrap().iter().find(|it| it["service"] == "relay");
    assert_eq!(relay.unwrap()["updated_by"], "ops", "{seen}");
    let changes =
        server.with_token(Some(eyes), "GET", &format!("{RELAY}/changes"), "").await.json();
    assert_eq!(changes["changes"][0]["actor"], "ops");
    let unknown = server.with_token(Some(eyes), "GET", "/api/v1/services/nobody", "").await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["error"]["code"]),
        (404, &json!("SYS_SERVICE_NOT_FOUND"))
    );
    assert!(unknown.text.contains("known services: relay"), "{}", unknown.text);
}

#[tokio::test]
async fn a_document_of_an_unregistered_kind_is_shown_and_may_hold_any_field_but_secrets() {
    const MAILER: &str = "/api/v1/services/mailer";
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let server =
        Server::start_in_place(&[("server.data_dir", folder), ("auth.tokens", TOKENS)]).await;
    let put = async |config: Value| {
        let body = json!({ "config": config }).to_string();
        server.with_token(Some("operator-token-0123456789"), "PUT", MAILER, &body).await
    };
    assert_eq!(put(json!({})).await.status, 404, "no program has said that there is a mailer");

    let author = Author {
        actor: "mailer".to_owned(),
        request_id: "req-1".to_owned(),
        at: Timestamp::default(),
    };
    let update = ConfigUpdate {
        service: "mailer".to_owned(),
        config: json!({"mails": 1}),
        expected_version: None,
    };
    relay::documents(data.path()).put(&update, &author).await.unwrap();
    let seen = server
        .with_token(Some("auditor-token-0123456789"), "GET", "/api/v1/services", "")
        .await
        .json();
    assert_eq!(seen["services"][0]["config"], json!({"mails": 1}), "{seen}");
    assert_eq!(seen["services"][0]["registered"], false, "{seen}");

    let changed = put(json!({"mails": 2, "anything": []})).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["version"]), (200, &json!(2)));
    let refused = put(json!({"smtp": {"password": "x"}})).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.json()["error"]["details"][0]["field"], "/smtp/password");
}

#[tokio::test]
async fn a_preview_matches_the_engine() {
    let server = Server::start(&[("auth.tokens", TOKENS)]).await;
    let cookie = sign_in(&server, "auditor-token-0123456789").await;
    let preview = async |rule: &Value| {
        ask(&server, "POST", "/console/preview", &cookie, &rule.to_string()).await
    };
    let rule =
        json!({"scope": "user", "identifier_pattern": "*", "limit": 60, "window_seconds": 60});
    let seen = preview(&rule).await.json();
    assert_eq!((&seen["capacity"], &seen["burst"][0]), (&json!(60), &json!([0, 60, 60])));
    assert_eq!(seen["burst"][120], json!([120_000, 180, 180]));
    let wrong =
        json!({"scope": "user", "identifier_pattern": "*", "limit": 0, "window_seconds": 60});
    let refused = preview(&wrong).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["details"][0]["field"]),
        (400, &json!("limit"))
    );
    assert_eq!(server.post("/console/preview", &rule.to_string()).await.status, 401);
}
