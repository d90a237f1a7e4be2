//! Matching, stacked windows, usage, reset, explain and batches.

use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, RULES},
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

fn rule(scope: &str, pattern: &str, limit: i64, window: i64) -> Value {
    json!({"scope": scope, "identifier_pattern": pattern, "limit": limit, "window_seconds": window})
}

on_both_backends!(
    the_closest_rule_decides_and_else_the_default,
    windows_stack_and_all_must_admit,
    a_changed_limit_applies_to_the_next_check_and_keeps_usage,
    a_disabled_rule_admits_and_counts_nothing,
    a_cost_is_taken_and_a_dry_run_takes_nothing,
    every_algorithm_can_be_chosen,
    usage_is_shown_if_there_is_any,
    a_reset_restores_the_whole_limit,
    explain_shows_the_matching_rules,
    a_batch_is_admitted_as_a_whole_or_takes_nothing,
    decisions_are_counted_by_rule,
    the_headers_are_those_of_the_draft,
    the_headers_name_every_window_that_applied,
);

async fn the_closest_rule_decides_and_else_the_default(backend: &Backend) {
    let server = backend.serve(&[("ratelimit.default_limit", "7")]).await;
    for (pattern, limit) in [("*", 1), ("ip:*", 2), ("ip:10.*", 3), ("ip:10.0.0.1", 4)] {
        server.create_rule(&rule("user", pattern, limit, 60)).await;
    }
    for (identifier, limit) in [("ip:10.0.0.1", 4), ("ip:10.9.9.9", 3), ("ip:9.9.9.9", 2), ("u", 1)]
    {
        assert_eq!(server.check_user(identifier).await.json()["limit"], limit, "{identifier}");
    }
    let body = json!({"scope": "service", "identifier": "ip:10.0.0.1"}).to_string();
    assert_eq!(server.post(CHECK, &body).await.json()["limit"], 7);
}

async fn windows_stack_and_all_must_admit(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "u1", 5, FOREVER)).await;
    server.create_rule(&rule("user", "u1", 2, FOREVER + 1)).await;
    for left in [1, 0] {
        let body = server.check_user("u1").await.json();
        assert_eq!((&body["limit"], &body["remaining"]), (&json!(2), &json!(left)));
    }
    assert_eq!(server.check_user("u1").await.json()["allowed"], false);
    // The denial took nothing from the wider limit.
    let wide = json!({"scope": "user", "identifier": "u1", "window": FOREVER}).to_string();
    let body = server.post(CHECK, &wide).await.json();
    assert_eq!((&body["limit"], &body["remaining"]), (&json!(5), &json!(2)));
    let unknown = json!({"scope": "user", "identifier": "u1", "window": "5s"}).to_string();
    let refused = server.post(CHECK, &unknown).await;
    let message = refused.json()["error"]["details"][0]["message"].clone();
    assert_eq!(
        message,
        format!(
            "no rule has a window of 5s; windows of this subject: {FOREVER}s, {}s",
            FOREVER + 1
        )
    );
}

async fn a_changed_limit_applies_to_the_next_check_and_keeps_usage(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&rule("user", "u1", 10, FOREVER)).await;
    let path = format!("{RULES}/{id}");
    for _ in 0..4 {
        server.check_user("u1").await;
    }
    server.admin("PUT", &path, &rule("user", "u1", 20, FOREVER).to_string()).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 15);
    server.admin("PUT", &path, &rule("user", "u1", 5, FOREVER).to_string()).await;
    assert_eq!(server.check_user("u1").await.json()["allowed"], false);
    server.admin("PUT", &path, &rule("user", "u1", 6, FOREVER).to_string()).await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 0);
}

async fn a_disabled_rule_admits_and_counts_nothing(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let mut off = rule("user", "u1", 1, FOREVER);
    off["enabled"] = json!(false);
    let id = server.create_rule(&off).await;
    for _ in 0..3 {
        let body = server.check_user("u1").await.json();
        assert_eq!((&body["allowed"], &body["remaining"]), (&json!(true), &json!(1)));
    }
    server
        .admin("PUT", &format!("{RULES}/{id}"), &{
            let mut on = rule("user", "u1", 1, FOREVER);
            on["enabled"] = json!(true);
            on.to_string()
        })
        .await;
    assert_eq!(server.check_user("u1").await.json()["remaining"], 0);
}

async fn a_cost_is_taken_and_a_dry_run_takes_nothing(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "*", 10, FOREVER)).await;
    let ask = async |extra: Value| {
        let mut body = json!({"scope": "user", "identifier": "u1"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        server.post(CHECK, &body.to_string()).await
    };
    assert_eq!(ask(json!({"cost": 4})).await.json()["remaining"], 6);
    assert_eq!(ask(json!({"cost": 6, "dry_run": true})).await.json()["allowed"], true);
    assert_eq!(ask(json!({"cost": 7, "dry_run": true})).await.json()["allowed"], false);
    assert_eq!(ask(json!({"dry_run": true})).await.json()["remaining"], 6);
    for (wrong, message) in [
        (json!({"cost": 0}), "cost must be at least 1"),
        (json!({"cost": 11}), "cost 11 is above the limit of 10 and can never be admitted"),
        (json!({"cost": -1}), "cost must be a whole number of at least 1"),
        (json!({"dry_run": "yes"}), "dry_run must be a boolean, got a string"),
    ] {
        let reply = ask(wrong).await;
        assert_eq!(reply.json()["error"]["details"][0]["message"], message);
    }
}

async fn every_algorithm_can_be_chosen(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let algorithms = [
        "token_bucket",
        "leaky_bucket",
        "fixed_window",
        "sliding_window",
        "sliding_window_counter",
    ];
    for algorithm in algorithms {
        let mut chosen = rule("user", algorithm, 2, 86_400);
        chosen["algorithm"] = json!(algorithm);
        server.create_rule(&chosen).await;
        let mut allowed = Vec::new();
        for _ in 0..3 {
            allowed.push(server.check_user(algorithm).await.json()["allowed"].as_bool().unwrap());
        }
        assert_eq!(allowed, [true, true, false], "{algorithm}");
    }
}

async fn usage_is_shown_if_there_is_any(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let mut named = rule("user", "u1", 10, FOREVER);
    named["name"] = json!("user-global");
    let exact = server.create_rule(&named).await;
    let all = server.create_rule(&rule("user", "*", 5, FOREVER)).await;
    let usage = async |query: String| {
        let reply = server.admin("GET", &format!("/api/v1/ratelimit/usage{query}"), "").await;
        (reply.status.as_u16(), reply.json())
    };
    let fresh = json!({
        "rule_id": exact, "rule_name": "user-global", "limit": 10, "window_seconds": FOREVER,
        "algorithm": "token_bucket", "enabled": true,
    });
    assert_eq!(usage(format!("?rule_id={exact}")).await, (200, fresh));
    for subject in ["u1", "u1", "u2"] {
        server.check_user(subject).await;
    }
    let (_, used) = usage(format!("?rule_id={exact}")).await;
    assert_eq!((&used["used"], &used["remaining"]), (&json!(2), &json!(8)));
    assert!(used["reset_at"].as_u64().is_some());

    let (_, unnamed) = usage(format!("?rule_id={all}")).await;
    assert_eq!((unnamed.get("used"), &unnamed["rule_name"]), (None, &json!("user:*")));
    let (_, named_subject) = usage(format!("?rule_id={all}&identifier=u2")).await;
    assert_eq!((&named_subject["used"], &named_subject["remaining"]), (&json!(1), &json!(4)));

    let (status, body) = usage(String::new()).await;
    let message = body["error"]["message"].as_str().unwrap();
    assert_eq!((status, message), (400, "rule_id is required"));
    let (status, _) = usage(format!("?rule_id={exact}&identifier=u2")).await;
    assert_eq!(status, 400);
    let unknown = "550e8400-e29b-41d4-a716-446655440000";
    let (status, body) = usage(format!("?rule_id={unknown}")).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("SYS_RATELIMIT_RULE_NOT_FOUND")));
    assert_eq!(body["error"]["message"], format!("rule not found: {unknown}"));
}

async fn a_reset_restores_the_whole_limit(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "u1", 1, FOREVER)).await;
    let mut log = rule("user", "u1", 1, 86_400);
    log["algorithm"] = json!("sliding_window");
    server.create_rule(&log).await;
    server.check_user("u1").await;
    assert_eq!(server.check_user("u1").await.json()["allowed"], false);

    let body = json!({"scope": "user", "identifier": "u1", "reason": "a test"}).to_string();
    let reply = server.admin("POST", "/api/v1/ratelimit/reset", &body).await;
    let expected = json!({"success": true, "message": "rate limit counter reset for user:u1"});
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    assert_eq!(server.check_user("u1").await.json()["allowed"], true);

    let wrong = server.admin("POST", "/api/v1/ratelimit/reset", r#"{"scope":"x"}"#).await.json();
    assert_eq!(wrong["error"]["code"], "SYS_RATELIMIT_VALIDATION_ERROR");
    let message = "scope must be one of: service, user, endpoint";
    assert_eq!(wrong["error"]["details"][0]["message"], message);
}

async fn explain_shows_the_matching_rules(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "ip:*", 5, FOREVER)).await;
    server.create_rule(&rule("user", "*", 9, 60)).await;
    server.check_user("ip:1").await;
    let path = "/api/v1/ratelimit/explain?scope=user&identifier=ip:1";
    let body = server.admin("GET", path, "").await.json();
    let rules = body["rules"].as_array().unwrap();
    let column = |key: &str| rules.iter().map(|rule| rule[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("match"), ["prefix", "any", "default"]);
    assert_eq!(column("applies"), [true, false, false]);
    assert_eq!(rules[0]["why"], "the pattern is the longest prefix of the identifier");
    assert_eq!(rules[1]["why"], "a closer pattern matches");
    assert_eq!((&rules[0]["used"], &rules[0]["remaining"]), (&json!(1), &json!(4)));

    let wrong = server.admin("GET", "/api/v1/ratelimit/explain", "").await.json();
    assert_eq!(wrong["error"]["details"].as_array().unwrap().len(), 2, "{wrong}");
}

async fn a_batch_is_admitted_as_a_whole_or_takes_nothing(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "*", 2, FOREVER)).await;
    server.create_rule(&rule("endpoint", "*", 3, FOREVER)).await;
    let batch = async |checks: Value, dry_run: bool| {
        let body = json!({"checks": checks, "dry_run": dry_run}).to_string();
        server.post("/api/v1/ratelimit/check/batch", &body).await
    };
    let both = || {
        json!([
            {"scope": "user", "identifier": "u1"},
            {"scope": "endpoint", "identifier": "/orders", "cost": 2},
        ])
    };
    let first = batch(both(), false).await.json();
    assert_eq!(first["allowed"], true);
    assert_eq!(
        (&first["results"][0]["remaining"], &first["results"][1]["remaining"]),
        (&json!(1), &json!(1))
    );

    let second = batch(both(), false).await.json();
    assert_eq!(second["allowed"], false);
    assert_eq!(
        (&second["results"][0]["allowed"], &second["results"][1]["allowed"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(second["results"][1]["reason"], "rate limit exceeded for endpoint:/orders");
    // Nothing was taken.
    assert_eq!(
        batch(json!([{"scope": "user", "identifier": "u1"}]), true).await.json()["results"][0]["remaining"],
        1
    );

    // A subject that is listed twice needs units for both.
    let twice =
        json!([{"scope": "user", "identifier": "u2"}, {"scope": "user", "identifier": "u2"}]);
    assert_eq!(batch(twice.clone(), false).await.json()["allowed"], true);
    assert_eq!(batch(twice, false).await.json()["allowed"], false);

    let wrong =
        batch(json!([{"scope": "user", "identifier": "a"}, {"scope": "x"}]), false).await.json();
    let fields: Vec<&str> = wrong["error"]["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["checks[1].scope", "checks[1].identifier"]);
    for count in [0, 101] {
        let checks: Vec<Value> =
            (0..count).map(|i| json!({"scope": "user", "identifier": format!("u{i}")})).collect();
        assert_eq!(batch(json!(checks), false).await.status, 400, "{count}");
    }
    let hundred: Vec<Value> =
        (0..100).map(|i| json!({"scope": "user", "identifier": format!("h{i}")})).collect();
    assert_eq!(batch(json!(hundred), false).await.json()["allowed"], true);
}

async fn decisions_are_counted_by_rule(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&rule("user", "u1", 1, FOREVER)).await;
    for subject in ["u1", "u1", "somebody"] {
        server.check_user(subject).await;
    }
    let metrics = server.get("/metrics").await.text;
    for line in [
        format!(
            r#"headgate_rule_decisions_total{{outcome="allowed",rule="{id}",service="headgate"}} 1"#
        ),
        format!(
            r#"headgate_rule_decisions_total{{outcome="denied",rule="{id}",service="headgate"}} 1"#
        ),
        r#"headgate_rule_decisions_total{outcome="allowed",rule="default",service="headgate"} 1"#
            .to_owned(),
        r#"headgate_rules{service="headgate"} 1"#.to_owned(),
        r#"headgate_database_up{service="headgate"} 1"#.to_owned(),
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\nin\n{metrics}");
    }
}

/// `r` and `t` of a `RateLimit` field with one policy.
fn standing(field: &str, name: &str) -> (u64, u64) {
    let parameters = field.strip_prefix(&format!("\"{name}\";r=")).expect(field);
    let (remaining, more) = parameters.split_once(";t=").expect(field);
    (remaining.parse().expect(field), more.parse().expect(field))
}

async fn the_headers_name_every_window_that_applied(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let named = |name: &str, pattern: &str, limit, window| {
        let mut rule = rule("user", pattern, limit, window);
        rule["name"] = json!(name);
        rule
    };
    server.create_rule(&named("burst", "u1", 2, FOREVER)).await;
    server.create_rule(&named("a \"long\" one", "u1", 5, FOREVER + 1)).await;
    let reply = server.check_user("u1").await;
    let items = |field: &str| {
        let mut items: Vec<String> = field.split(", ").map(str::to_owned).collect();
        items.sort();
        items
    };
    let expected = [
        format!(r#""a \"long\" one";q=5;w={}"#, FOREVER + 1),
        format!(r#""burst";q=2;w={FOREVER}"#),
    ];
    assert_eq!(items(reply.header("ratelimit-policy")), expected);
    let left = items(reply.header("ratelimit"));
    assert!(left[0].starts_with(r#""a \"long\" one";r=4;t="#), "{left:?}");
    assert!(left[1].starts_with(r#""burst";r=1;t="#), "{left:?}");

    // Rules with the same name are distinguished by their windows.
    for window in [FOREVER, FOREVER + 1] {
        server.create_rule(&rule("user", "u2", 3, window)).await;
    }
    let policies = items(server.check_user("u2").await.header("ratelimit-policy"));
    let one = |window: i64| format!(r#""user:u2:{window}s";q=3;w={window}"#);
    assert_eq!(policies, [one(FOREVER), one(FOREVER + 1)]);

    // Strings of structured fields are ASCII.
    let id = server.create_rule(&named("標準", "u3", 3, FOREVER)).await;
    let policy = server.check_user("u3").await.header("ratelimit-policy").to_owned();
    assert_eq!(policy, format!("\"{id}\";q=3;w={FOREVER}"));
}

async fn the_headers_are_those_of_the_draft(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&rule("user", "u1", 4, 3600)).await;
    for left in (0..4).rev() {
        let reply = server.check_user("u1").await;
        assert_eq!(reply.header("ratelimit-policy"), "\"user:u1\";q=4;w=3600");
        let (remaining, more) = standing(reply.header("ratelimit"), "user:u1");
        assert_eq!(remaining, left);
        // `t` is the time to the next unit, not to full recovery.
        assert!((1..=900).contains(&more), "{more}");
    }
    let denied = server.check_user("u1").await;
    let (remaining, more) = standing(denied.header("ratelimit"), "user:u1");
    assert_eq!((remaining, more.to_string().as_str()), (0, denied.header("retry-after")));
    let reply = server.check_user("u2").await;
    assert_eq!(reply.header("ratelimit-policy"), "\"default\";q=100;w=60");
    assert_eq!(reply.header("ratelimit"), "\"default\";r=99;t=1");
}
