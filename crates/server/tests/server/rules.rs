//! `/api/v1/ratelimit/rules`, on the embedded default and on PostgreSQL with Redis.

use headgate_testkit::{Postgres, require};
use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{RULES, Reply, Server},
};

const UNKNOWN: &str = "550e8400-e29b-41d4-a716-446655440000";

fn rule(scope: &str, pattern: &str, limit: i64, window: i64) -> Value {
    json!({
        "scope": scope, "identifier_pattern": pattern,
        "limit": limit, "window_seconds": window, "enabled": true,
    })
}

fn is_a_time(value: &Value) -> bool {
    let text = value.as_str().unwrap();
    // 2026-02-20T10:00:00.000+00:00
    text.len() == 29 && text.ends_with("+00:00") && &text[19..20] == "."
}

fn error(reply: &Reply) -> (u16, String, String) {
    let body = reply.json();
    let text = |key: &str| body["error"][key].as_str().unwrap().to_owned();
    assert_eq!(text("request_id"), reply.header("x-request-id"));
    (reply.status.as_u16(), text("code"), text("message"))
}

on_both_backends!(
    rules_are_made_listed_changed_and_deleted,
    all_invalid_fields_are_named_at_once,
    an_invalid_page_is_rejected,
    an_invalid_id_is_an_unknown_rule,
    an_update_keeps_the_optional_fields_it_leaves_out,
    a_list_of_rules_is_applied_as_a_whole_or_not_at_all,
);

async fn a_rule_lives_from_creation_to_deletion(server: &Server) {
    let created = server.admin("POST", RULES, &rule("user", "*", 100, 60).to_string()).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let mut body = created.json();
    let id = body["id"].as_str().unwrap().to_owned();
    assert!(is_a_time(&body["created_at"]) && is_a_time(&body["updated_at"]), "{body}");
    assert_eq!(body["created_at"], body["updated_at"]);
    for key in ["id", "created_at", "updated_at"] {
        body[key].take();
    }
    let expected = json!({
        "id": null, "scope": "user", "identifier_pattern": "*", "limit": 100, "window_seconds": 60,
        "algorithm": "token_bucket", "enabled": true, "created_at": null, "updated_at": null,
    });
    assert_eq!(body, expected);

    let path = format!("{RULES}/{id}");
    let got = server.admin("GET", &path, "").await;
    assert_eq!((got.status.as_u16(), got.json()), (200, created.json()));

    let updated = server.admin("PUT", &path, &rule("user", "*", 200, 60).to_string()).await;
    assert_eq!(updated.status, 200, "{}", updated.text);
    assert_eq!(updated.json()["limit"], 200);
    assert_eq!(updated.json()["created_at"], created.json()["created_at"]);
    assert!(updated.json()["updated_at"].as_str() >= created.json()["updated_at"].as_str());

    let deleted = server.admin("DELETE", &path, "").await;
    assert_eq!((deleted.status.as_u16(), deleted.text.as_str()), (204, ""));
    for (method, body) in [("GET", ""), ("DELETE", ""), ("PUT", r#"{"scope":"user"}"#)] {
        let gone = server.admin(method, &path, body).await;
        let expected =
            (404, "SYS_RATELIMIT_RULE_NOT_FOUND".into(), format!("rule not found: {id}"));
        assert_eq!(error(&gone), expected, "{method}");
    }
}

async fn rules_are_listed_in_pages(server: &Server) {
    for i in 0..25 {
        let scope = if i % 5 == 0 { "service" } else { "user" };
        let mut rule = rule(scope, &format!("u{i}"), 1, 60);
        rule["enabled"] = json!(i % 2 == 0);
        server.create_rule(&rule).await;
    }
    let mut seen = Vec::new();
    for page in 1..=3 {
        let reply = server.admin("GET", &format!("{RULES}?page={page}&page_size=10"), "").await;
        let body = reply.json();
        let expected =
            json!({"total_count": 25, "page": page, "page_size": 10, "has_next": page < 3});
        assert_eq!(body["pagination"], expected);
        let rules = body["rules"].as_array().unwrap();
        seen.extend(
            rules.iter().map(|rule| rule["identifier_pattern"].as_str().unwrap().to_owned()),
        );
    }
    let mut different = seen.clone();
    different.sort();
    different.dedup();
    assert_eq!((seen.len(), different.len()), (25, 25));

    let count = async |query: &str| {
        let body = server.admin("GET", &format!("{RULES}?{query}"), "").await.json();
        body["pagination"]["total_count"].as_u64().unwrap()
    };
    assert_eq!(count("scope=service").await, 5);
    assert_eq!(count("enabled_only=true").await, 13);
    assert_eq!(count("scope=user&enabled_only=true").await, 10);
    let default = server.admin("GET", RULES, "").await.json();
    assert_eq!(default["rules"].as_array().unwrap().len(), 20);
    let past = server.admin("GET", &format!("{RULES}?page=99"), "").await.json();
    assert_eq!(
        (past["rules"].as_array().unwrap().len(), &past["pagination"]["has_next"]),
        (0, &json!(false))
    );
}

async fn a_duplicate_rule_is_rejected(server: &Server) {
    server.create_rule(&rule("user", "twice", 1, 60)).await;
    let other = server.create_rule(&rule("user", "twice", 1, 3600)).await;
    let again = server.admin("POST", RULES, &rule("user", "twice", 9, 60).to_string()).await;
    let message = "a rule for user:twice with a window of 60 seconds already exists";
    let expected = (409, "SYS_RATELIMIT_RULE_EXISTS".to_owned(), message.to_owned());
    assert_eq!(error(&again), expected);
    let path = format!("{RULES}/{other}");
    let moved = server.admin("PUT", &path, &rule("user", "twice", 1, 60).to_string()).await;
    assert_eq!(error(&moved), expected);
}

async fn rules_are_made_listed_changed_and_deleted(backend: &Backend) {
    let server = backend.serve(&[]).await;
    a_rule_lives_from_creation_to_deletion(&server).await;
    rules_are_listed_in_pages(&server).await;
    a_duplicate_rule_is_rejected(&server).await;
    if let Backend::PostgresAndRedis(database, _) = backend {
        let kept = database.psql("SELECT count(*) FROM ratelimit.rate_limit_rules");
        assert_eq!(kept.trim(), "27");
    }
}

async fn all_invalid_fields_are_named_at_once(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let reply = server.admin("POST", RULES, &rule("user", "*", 0, 0).to_string()).await;
    let message = "validation failed".to_owned();
    assert_eq!(error(&reply), (400, "SYS_RATELIMIT_VALIDATION_ERROR".to_owned(), message));
    let expected = [
        ("limit", "limit must be greater than 0"),
        ("window_seconds", "window_seconds must be greater than 0"),
    ];
    assert_eq!(reply.details(), expected.map(|(f, m)| (f.to_owned(), m.to_owned())));
    let reason = reply.json()["error"]["details"][0]["reason"].clone();
    assert_eq!(reason, "must_be_positive");

    let reply = server
        .admin(
            "POST",
            RULES,
            r#"{"scope":"tenant","identifier_pattern":7,"limit":"many","enabled":1}"#,
        )
        .await;
    let messages: Vec<String> = reply.details().into_iter().map(|(_, message)| message).collect();
    let expected = [
        "scope must be one of: service, user, endpoint",
        "identifier_pattern must be a string, got a number",
        "limit must be a whole number, got a string",
        "window_seconds is required",
        "enabled must be a boolean, got a number",
    ];
    assert_eq!(messages, expected);
}

async fn an_invalid_page_is_rejected(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let reply = server
        .admin("GET", &format!("{RULES}?page=0&page_size=101&scope=x&enabled_only=maybe"), "")
        .await;
    assert_eq!(reply.status, 400);
    let fields: Vec<String> = reply.details().into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["scope", "enabled_only", "page"]);
    for query in ["page_size=0", "page_size=101", "page_size=-1", "page=99999999999"] {
        let reply = server.admin("GET", &format!("{RULES}?{query}"), "").await;
        assert_eq!(reply.status, 400, "{query}");
    }
}

async fn an_invalid_id_is_an_unknown_rule(backend: &Backend) {
    let server = backend.serve(&[]).await;
    for id in [UNKNOWN, "nonsense"] {
        let reply = server.admin("GET", &format!("{RULES}/{id}"), "").await;
        assert_eq!(error(&reply).2, format!("rule not found: {id}"));
    }
}

async fn an_update_keeps_the_optional_fields_it_leaves_out(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let mut full = rule("user", "*", 10, 60);
    full["name"] = json!("everybody");
    full["algorithm"] = json!("leaky_bucket");
    full["burst"] = json!(5);
    full["fail_mode"] = json!("closed");
    let id = server.create_rule(&full).await;
    let path = format!("{RULES}/{id}");
    let kept = server.admin("PUT", &path, &rule("user", "*", 20, 60).to_string()).await.json();
    assert_eq!(kept["limit"], 20);
    assert_eq!((&kept["name"], &kept["burst"]), (&json!("everybody"), &json!(5)));
    assert_eq!(
        (&kept["algorithm"], &kept["fail_mode"]),
        (&json!("leaky_bucket"), &json!("closed"))
    );

    let mut dropped = rule("user", "*", 20, 60);
    dropped["burst"] = Value::Null;
    let dropped = server.admin("PUT", &path, &dropped.to_string()).await.json();
    assert_eq!(dropped.get("burst"), None);
}

async fn a_list_of_rules_is_applied_as_a_whole_or_not_at_all(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "old", 1, 60)).await;
    server.create_rule(&rule("user", "kept", 1, 60)).await;
    let list = |prune: bool, dry_run: bool| {
        let rules = [rule("user", "kept", 1, 60), rule("user", "new", 2, 60)];
        json!({"rules": rules, "prune": prune, "dry_run": dry_run}).to_string()
    };
    let shape = |reply: &Reply| {
        let body = reply.json();
        let count = |key: &str| body[key].as_array().unwrap().len();
        let counts = (count("created"), count("updated"), count("deleted"));
        (counts, body["unchanged"].as_u64().unwrap(), body["applied"].as_bool().unwrap())
    };
    let total = async || {
        let body = server.admin("GET", RULES, "").await.json();
        body["pagination"]["total_count"].as_u64().unwrap()
    };
    let planned = server.admin("PUT", RULES, &list(true, true)).await;
    assert_eq!(shape(&planned), ((1, 0, 1), 1, false));
    assert_eq!(total().await, 2);

    let applied = server.admin("PUT", RULES, &list(false, false)).await;
    assert_eq!(shape(&applied), ((1, 0, 0), 2, true));
    assert_eq!(total().await, 3);
    let again = server.admin("PUT", RULES, &list(false, false)).await;
    assert_eq!(shape(&again), ((0, 0, 0), 3, true));

    let mut wrong = rule("user", "x", 1, 60);
    wrong["limit"] = json!(0);
    let list = json!({"rules": [rule("user", "y", 1, 60), wrong], "prune": true}).to_string();
    let refused = server.admin("PUT", RULES, &list).await;
    let expected = ("rules[1].limit".to_owned(), "limit must be greater than 0".to_owned());
    assert_eq!(refused.details(), [expected]);
    let twice = json!({"rules": [rule("user", "y", 1, 60), rule("user", "y", 2, 60)]}).to_string();
    assert_eq!(server.admin("PUT", RULES, &twice).await.status, 400);
    assert_eq!(total().await, 3);
}

#[tokio::test]
async fn rules_survive_a_restart() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().to_str().unwrap();
    let keys = [("server.data_dir", folder)];
    let server = Server::start_in_place(&keys).await;
    let token = server.admin_token.clone().unwrap();
    server.create_rule(&rule("user", "u1", 3, 60)).await;
    server.stop().await.unwrap();

    let server = Server::start_in_place(&keys).await;
    assert_eq!(server.admin_token, None, "the token is made once");
    assert_eq!(server.check_user("u1").await.json()["limit"], 3);
    let reply = server.with_token(Some(&token), "GET", RULES, "").await;
    assert_eq!(reply.json()["pagination"]["total_count"], 1);
}

#[tokio::test]
async fn a_corrupt_rule_is_an_internal_error_without_details() {
    let postgres = require!(Postgres::shared());
    let server = Server::start(&[("database.url", postgres.url())]).await;
    server.create_rule(&rule("user", "u1", 3, 60)).await;
    postgres.psql("UPDATE ratelimit.rate_limit_rules SET identifier_pattern = 'a*b'");
    let reply = server.admin("GET", RULES, "").await;
    let expected = (500, "SYS_RATELIMIT_INTERNAL_ERROR".to_owned(), "internal error".to_owned());
    assert_eq!(error(&reply), expected);
    // The loaded rules still apply.
    assert_eq!(server.check_user("u1").await.json()["limit"], 3);
}
