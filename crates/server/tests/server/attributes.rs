//! Rules over attributes, and checks with them.

use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, RULES, Server},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

const EXPLAIN: &str = "/api/v1/ratelimit/explain";
const RESET: &str = "/api/v1/ratelimit/reset";

on_both_backends!(
    every_rule_that_matches_must_admit_and_the_answer_names_the_one_that_denied,
    a_check_that_no_rule_matches_is_not_limited,
    subjects_are_attributes,
    a_rule_is_shown_changed_and_listed_as_it_was_written,
    explain_says_why_each_rule_applies_or_not,
    explain_shows_rules_beyond_the_maximum,
    a_reset_of_a_subject_resets_the_rules_that_count_it,
    a_reset_of_attributes_resets_what_such_a_check_counts,
    decisions_in_a_list_of_rules_are_applied_as_a_whole,
);

fn exports() -> Value {
    json!({
        "name": "exports",
        "when": {
            "path": "/v1/exports/*",
            "method": ["POST", "PUT"],
            "address": {"not_in": ["10.0.0.0/8"]},
            "plan": {"exists": true},
        },
        "per": ["tenant", "user"],
        "limit": 3,
        "window_seconds": FOREVER,
    })
}

fn request() -> Value {
    json!({
        "tenant": "acme", "user": "u1", "plan": "pro", "method": "POST", "size": 7,
        "path": "/v1/exports/7", "country": "JP", "address": "203.0.113.7", "roles": ["a", "b"],
    })
}

async fn check(server: &Server, attributes: &Value, cost: u64) -> Value {
    let body = json!({"attributes": attributes, "cost": cost, "limits": true}).to_string();
    let reply = server.post(CHECK, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

async fn every_rule_that_matches_must_admit_and_the_answer_names_the_one_that_denied(
    backend: &Backend,
) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&exports()).await;
    let tenant =
        json!({"name": "tenant", "per": ["tenant"], "limit": 5, "window_seconds": FOREVER});
    server.create_rule(&tenant).await;

    let first = check(&server, &request(), 3).await;
    assert_eq!((&first["allowed"], &first["remaining"]), (&json!(true), &json!(0)), "{first}");
    assert_eq!(first["rule"], json!({"id": id, "name": "exports"}));
    assert_eq!(first["limits"].as_array().unwrap().len(), 2, "{first}");

    let denied = check(&server, &request(), 1).await;
    assert_eq!((&denied["allowed"], &denied["rule"]["name"]), (&json!(false), &json!("exports")));
    assert_eq!(denied["reason"], "rate limit exceeded by rule exports");
    assert!(denied["retry_after_ms"].as_u64().unwrap() > 0, "{denied}");
    let of_tenant =
        denied["limits"].as_array().unwrap().iter().find(|limit| limit["rule"]["name"] == "tenant");
    // The denial took nothing from the tenant.
    assert_eq!(of_tenant.unwrap()["remaining"], 2, "{denied}");

    let mut inside = request();
    inside["address"] = json!("10.1.2.3");
    let admitted = check(&server, &inside, 2).await;
    assert_eq!((&admitted["rule"]["name"], &admitted["remaining"]), (&json!("tenant"), &json!(0)));
}

async fn a_check_that_no_rule_matches_is_not_limited(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&exports()).await;
    let body = json!({"attributes": {"tenant": "acme", "path": "/"}}).to_string();
    let reply = server.post(CHECK, &body).await;
    let expected = json!({"allowed": true, "reason": "no rule matches", "retry_after_ms": 0});
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
}

async fn subjects_are_attributes(backend: &Backend) {
    let server = backend.serve(&[("ratelimit.default_limit", "50")]).await;
    let users = json!({
        "scope": "user", "identifier_pattern": "*", "limit": 9, "window_seconds": FOREVER
    });
    server.create_rule(&users).await;
    let mine = json!({
        "name": "mine", "when": {"user": "u*"}, "per": ["user"], "limit": 4,
        "window_seconds": FOREVER
    });
    server.create_rule(&mine).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 3);
    let both = check(&server, &json!({"user": "u1"}), 1).await;
    assert_eq!((&both["remaining"], &both["limits"].as_array().unwrap().len()), (&json!(2), &2));
    // The default limit applies to subjects alone.
    let service = json!({
        "scope": "service", "identifier": "s1", "attributes": {"user": "u1"}, "limits": true
    });
    let reply = server.post(CHECK, &service.to_string()).await.json();
    let limits: Vec<&Value> =
        reply["limits"].as_array().unwrap().iter().map(|limit| &limit["limit"]).collect();
    assert_eq!(limits, [50, 9, 4]);
    let other = json!({"scope": "user", "identifier": "u2", "attributes": {"user": "u1"}});
    let refused = server.post(CHECK, &other.to_string()).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
}

async fn a_rule_is_shown_changed_and_listed_as_it_was_written(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&exports()).await;
    let path = format!("{RULES}/{id}");
    let shown = server.admin("GET", &path, "").await.json();
    assert_eq!((&shown["when"], &shown["per"]), (&exports()["when"], &exports()["per"]));
    assert_eq!((&shown["scope"], &shown["priority"]), (&json!("attributes"), &json!(0)));

    // What an update leaves out stays; what is shown can be sent back.
    let update = json!({"limit": 8, "window_seconds": FOREVER, "priority": 5}).to_string();
    let updated = server.admin("PUT", &path, &update).await.json();
    assert_eq!((&updated["when"], &updated["limit"]), (&exports()["when"], &json!(8)));
    let mut again = updated.clone();
    for field in ["id", "created_at", "updated_at", "warnings"] {
        again.as_object_mut().unwrap().remove(field);
    }
    let same = server.admin("PUT", &path, &again.to_string()).await;
    assert_eq!(
        (same.status.as_u16(), &same.json()["when"]),
        (200, &exports()["when"]),
        "{}",
        same.text
    );

    let listed = server.admin("GET", &format!("{RULES}?scope=attributes"), "").await.json();
    assert_eq!(listed["rules"].as_array().unwrap().len(), 1);

    // A rule that stops shadows the first, and one by path multiplies counters.
    let wide = json!({
        "name": "wide", "per": ["tenant"], "priority": 9, "stops": true, "limit": 1,
        "window_seconds": 60
    });
    server.create_rule(&wide).await;
    let update = json!({
        "limit": 8, "window_seconds": FOREVER, "per": ["tenant", "path"],
    });
    let warned = server.admin("PUT", &path, &update.to_string()).await.json();
    let reasons: Vec<&Value> =
        warned["warnings"].as_array().unwrap().iter().map(|warning| &warning["reason"]).collect();
    assert_eq!(reasons, ["unbounded", "shadowed"], "{warned}");

    let wrong = json!({
        "scope": "user", "when": {"a b": 1, "c": true}, "per": "tenant", "limit": 1,
        "window_seconds": 1, "name": "wrong"
    });
    let refused = server.admin("POST", RULES, &wrong.to_string()).await;
    let fields: Vec<String> = refused.details().into_iter().map(|(field, _)| field).collect();
    assert_eq!(
        (refused.status.as_u16(), &*fields),
        (400, &["per", "when", "when", "scope"].map(str::to_owned)[..])
    );
}

async fn explain_says_why_each_rule_applies_or_not(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&exports()).await;
    let stopped = json!({"name": "low", "priority": -1, "limit": 1, "window_seconds": 60});
    server.create_rule(&stopped).await;
    let staff = json!({
        "name": "staff", "when": {"role": "staff"}, "stops": true, "limit": 1, "window_seconds": 60
    });
    server.create_rule(&staff).await;
    check(&server, &request(), 1).await;

    let explain = async |attributes: &Value| {
        let body = json!({"attributes": attributes}).to_string();
        let reply = server.admin("POST", EXPLAIN, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let rules = reply.json()["rules"].as_array().unwrap().clone();
        move |name: &str| {
            let rule = rules.iter().find(|rule| rule["rule_name"] == name).unwrap();
            (
                rule["applies"].as_bool().unwrap(),
                rule["why"].as_str().unwrap().to_owned(),
                rule["used"].clone(),
            )
        }
    };
    let all = explain(&request()).await;
    assert_eq!(all("exports"), (true, "all conditions hold".to_owned(), json!(1)));
    assert_eq!(all("staff"), (false, "the check has no attribute role".to_owned(), Value::Null));
    let mut other = request();
    other["role"] = json!("staff");
    other["path"] = json!("/");
    other.as_object_mut().unwrap().remove("tenant");
    let other = explain(&other).await;
    let why = "path does not fulfil the condition; the rule counts per tenant, which the check does not have";
    assert_eq!(other("exports"), (false, why.to_owned(), Value::Null));
    assert!(other("staff").0);
    assert!(other("low").1.starts_with("a rule of a higher priority"), "{}", other("low").1);

    let wrong = server.admin("POST", EXPLAIN, r#"{"attributes":{"a":null,"b":[1]}}"#).await;
    assert_eq!((wrong.status.as_u16(), wrong.details().len()), (400, 2), "{}", wrong.text);
    let missing = server.admin("POST", EXPLAIN, "{}").await;
    assert_eq!(missing.details()[0].0, "attributes");
}

/// Returns `true` if the check is admitted.
async fn admitted(server: &Server, body: &Value) -> bool {
    let reply = server.post(CHECK, &body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()["allowed"].as_bool().unwrap()
}

async fn a_reset_of_a_subject_resets_the_rules_that_count_it(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = |name: &str, per: Value| json!({"name": name, "per": per, "limit": 1, "window_seconds": FOREVER});
    server.create_rule(&rule("each user", json!(["user"]))).await;
    let (one, two) = (
        json!({"scope": "user", "identifier": "u1"}),
        json!({"scope": "user", "identifier": "u2"}),
    );
    for subject in [&one, &two] {
        assert!(admitted(&server, subject).await);
        assert!(!admitted(&server, subject).await);
    }
    assert_eq!(server.admin("POST", RESET, &one.to_string()).await.status, 200);
    assert!(admitted(&server, &one).await, "it has its whole allowance back");
    assert!(!admitted(&server, &two).await, "others have not");
    // What all checks share does not belong to one subject.
    server
        .create_rule(
            &json!({"name": "all", "when": {"user": "*"}, "limit": 1, "window_seconds": FOREVER}),
        )
        .await;
    assert!(admitted(&server, &json!({"scope": "user", "identifier": "u3"})).await);
    assert_eq!(server.admin("POST", RESET, &one.to_string()).await.status, 200);
    assert!(!admitted(&server, &one).await);
}

async fn a_reset_of_attributes_resets_what_such_a_check_counts(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = json!({
        "name": "exports", "when": {"path": "/v1/*"}, "per": ["tenant"], "limit": 1,
        "window_seconds": FOREVER
    });
    server.create_rule(&rule).await;
    let user = json!({
        "scope": "user", "identifier_pattern": "*", "limit": 1, "window_seconds": FOREVER
    });
    server.create_rule(&user).await;
    let of = |tenant: &str, user: &str| json!({"attributes": {"tenant": tenant, "path": "/v1/x", "user": user}});
    assert!(admitted(&server, &of("acme", "u1")).await);
    assert!(admitted(&server, &of("other", "u2")).await);
    for (tenant, user) in [("acme", "u1"), ("acme", "u3"), ("other", "u4"), ("new", "u1")] {
        assert!(!admitted(&server, &of(tenant, user)).await, "{tenant} {user}");
    }
    let reset = server.admin("POST", RESET, &of("acme", "u1").to_string()).await;
    assert_eq!(reset.status, 200, "{}", reset.text);
    assert_eq!(reset.json()["message"], "rate limit counters reset for these attributes");
    assert!(admitted(&server, &of("acme", "u1")).await);
    assert!(!admitted(&server, &of("other", "u4")).await);
    let log = server.admin("GET", "/api/v1/ratelimit/audit?action=counter.reset", "").await.json();
    let target = log["entries"][0]["target"].as_str().unwrap();
    assert!(target.starts_with("attributes:") && target.contains("tenant=acme"), "{log}");

    for (wrong, fields) in [
        (json!({"attributes": {}}), &["attributes"][..]),
        (json!({"attributes": 1, "reason": 2}), &["attributes", "reason"]),
        (json!({"attributes": {"a": null}, "scope": "user"}), &["scope", "attributes"]),
        (json!({"attributes": {"a": "b"}, "identifier": 1}), &["identifier"]),
        (json!({}), &["scope", "identifier"]),
    ] {
        let refused = server.admin("POST", RESET, &wrong.to_string()).await;
        let named: Vec<String> = refused.details().into_iter().map(|(field, _)| field).collect();
        assert_eq!(refused.status, 400, "{wrong}");
        assert_eq!(named, fields, "{wrong}");
    }
}

/// `explain` must show which rules are too many.
async fn explain_shows_rules_beyond_the_maximum(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let when = json!({"a": "b"});
    let rule = |i| json!({"name": format!("r{i}"), "when": when, "limit": 9, "window_seconds": 60});
    let rules: Vec<Value> = (0..33).map(rule).collect();
    let body = json!({ "rules": rules }).to_string();
    assert_eq!(server.admin("PUT", RULES, &body).await.status, 200);
    let refused = server.post(CHECK, r#"{"attributes":{"a":"b"}}"#).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let reply = server.admin("POST", EXPLAIN, r#"{"attributes":{"a":"b"}}"#).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let body = reply.json();
    let explained = body["rules"].as_array().unwrap();
    assert_eq!(explained.len(), 33);
    let why = "all conditions hold, but more than 32 rules match: such checks are refused";
    assert!(explained.iter().all(|rule| rule["why"] == why), "{body}");
}

async fn decisions_in_a_list_of_rules_are_applied_as_a_whole(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let apply = async |rules: Value| {
        let body = json!({"rules": rules, "prune": true}).to_string();
        let reply = server.admin("PUT", RULES, &body).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        reply.json()
    };
    let created = apply(json!([exports()])).await;
    assert_eq!(created["created"][0]["when"], exports()["when"], "{created}");
    assert_eq!(apply(json!([exports()])).await["unchanged"], 1);
    let mut changed = exports();
    changed["when"] = json!({"path": "/v2/*"});
    let updated = apply(json!([changed])).await;
    assert_eq!(updated["updated"][0]["after"]["when"], changed["when"], "{updated}");
    let elsewhere = check(&server, &request(), 1).await;
    assert_eq!(elsewhere["limits"], json!([]));
}

#[tokio::test]
async fn invalid_attributes_are_refused_with_all_that_is_wrong() {
    let server = Server::start(&[]).await;
    for (body, expected) in [
        (
            json!({"attributes": []}),
            vec![("attributes", "attributes must be an object, got a list")],
        ),
        (
            json!({"attributes": {"a b": "x", "c": true, "d": {}}, "window": "60s", "cost": 0}),
            vec![
                (
                    "attributes",
                    "attributes: attribute names must have 1 to 64 ASCII letters, digits, '_', '-' and '.'",
                ),
                (
                    "attributes",
                    "attributes: c must be a string, a number or a list of strings, got a boolean",
                ),
                (
                    "attributes",
                    "attributes: d must be a string, a number or a list of strings, got an object",
                ),
                ("window", "window and attributes exclude each other"),
            ],
        ),
        (
            json!({"attributes": {}, "limits": "yes"}),
            vec![("limits", "limits must be a boolean, got a string")],
        ),
    ] {
        let reply = server.post(CHECK, &body.to_string()).await;
        let details = reply.details();
        assert_eq!(reply.status, 400, "{}", reply.text);
        for (field, message) in expected {
            let expected = (field.to_owned(), message.to_owned());
            assert!(details.contains(&expected), "{body}: {details:?}");
        }
    }
    let many: serde_json::Map<_, _> = (0..40).map(|i| (format!("a{i}"), json!("x"))).collect();
    let reply = server.post(CHECK, &json!({"attributes": many}).to_string()).await;
    assert_eq!(reply.details()[0].1, "there may be at most 32 attributes");
}

#[tokio::test]
async fn more_matching_rules_than_the_maximum_are_an_error_that_says_what_to_do() {
    let server = Server::start(&[]).await;
    let rule =
        |i: usize| json!({"name": format!("r{i}"), "per": [], "limit": 9, "window_seconds": 60});
    let rules: Vec<Value> = (0..33).map(rule).collect();
    let list = json!({"rules": rules}).to_string();
    assert_eq!(server.admin("PUT", RULES, &list).await.status, 200);
    let reply = server.post(CHECK, r#"{"attributes":{}}"#).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text.contains("more than 32 rules over attributes match"), "{}", reply.text);
}

#[tokio::test]
async fn the_headers_of_many_rules_fit_into_the_buffers_of_proxies() {
    let server = Server::start(&[]).await;
    // Escaped in the headers, and so twice as long.
    let name = |number: i64| format!("{number:02}{}", "\"".repeat(240));
    for number in 1..=20 {
        let limit = if number == 15 { 1 } else { 5 + number };
        server
            .create_rule(&json!({
                "name": name(number), "per": ["tenant"], "limit": limit, "window_seconds": FOREVER,
            }))
            .await;
    }
    for allowed in [true, false] {
        let body = json!({"attributes": {"tenant": "acme"}, "limits": true}).to_string();
        let reply = server.post(CHECK, &body).await;
        let answer = reply.json();
        assert_eq!(answer["allowed"], allowed, "{answer}");
        assert_eq!(answer["limits"].as_array().unwrap().len(), 20, "the body has all");
        let names = |header| {
            let items = reply.header(header).split(", ");
            items.map(|item| item[..3].to_owned()).collect::<Vec<_>>()
        };
        let listed = names("ratelimit");
        assert_eq!(listed, names("ratelimit-policy"));
        assert_eq!((listed[0].as_str(), listed.len()), ("\"15", 2), "the rule that decided first");
        let headers = reply.headers.iter();
        let bytes: usize = headers.map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
        assert!(bytes < 4000, "{bytes}");
    }
}
