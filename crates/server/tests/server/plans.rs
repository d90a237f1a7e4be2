//! Limits by plan, overrides, and batches with attributes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    backend::{Backend, on_both_backends},
    harness::{CHECK, RULES, Server},
    replicas::until,
};

/// Long enough that nothing refills during a test.
const FOREVER: i64 = 8_640_000;

const EXPLAIN: &str = "/api/v1/ratelimit/explain";
const OVERRIDES: &str = "/api/v1/ratelimit/overrides";

on_both_backends!(
    a_limit_by_plan_is_shown_as_it_was_written_and_decides,
    explain_says_where_a_limit_comes_from,
    invalid_limits_by_plan_are_refused_with_all_problems,
    an_override_is_set_replaced_listed_and_deleted,
    an_override_ends_by_itself,
    rules_by_scope_have_overrides,
    invalid_overrides_are_refused_with_all_problems,
    batches_have_attributes,
);

fn api() -> Value {
    json!({
        "name": "api", "per": ["tenant"], "window_seconds": FOREVER,
        "limit": {"by": "plan", "free": 3, "pro": 30, "default": 2},
    })
}

async fn check(server: &Server, attributes: Value) -> Value {
    let body = json!({"attributes": attributes, "limits": true}).to_string();
    let reply = server.post(CHECK, &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json()
}

/// Limit and remaining units after a check.
async fn left(server: &Server, attributes: Value) -> (u64, u64) {
    let answer = check(server, attributes).await;
    (answer["limit"].as_u64().unwrap(), answer["remaining"].as_u64().unwrap())
}

async fn set(server: &Server, draft: &Value) -> Value {
    let reply = server.admin("PUT", OVERRIDES, &draft.to_string()).await;
    assert!(reply.status.is_success(), "{}", reply.text);
    reply.json()
}

async fn a_limit_by_plan_is_shown_as_it_was_written_and_decides(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&api()).await;
    let path = format!("{RULES}/{id}");
    let shown = server.admin("GET", &path, "").await.json();
    assert_eq!(shown["limit"], api()["limit"]);

    assert_eq!(left(&server, json!({"tenant": "a", "plan": "free"})).await, (3, 2));
    assert_eq!(left(&server, json!({"tenant": "b", "plan": "pro"})).await, (30, 29));
    assert_eq!(left(&server, json!({"tenant": "c", "plan": "gold"})).await, (2, 1));
    assert_eq!(left(&server, json!({"tenant": "d"})).await, (2, 1));
    // A subject that changes its plan keeps its count.
    assert_eq!(left(&server, json!({"tenant": "a", "plan": "pro"})).await, (30, 28));
    let answer = check(&server, json!({"tenant": "a", "plan": "free"})).await;
    assert_eq!((&answer["limits"][0]["limit"], &answer["remaining"]), (&json!(3), &json!(0)));
    let denied = check(&server, json!({"tenant": "a", "plan": "free"})).await;
    assert_eq!((&denied["allowed"], &denied["rule"]["name"]), (&json!(false), &json!("api")));

    // A number replaces limits by plan, and what was written can be sent back.
    let update = json!({"limit": 7, "window_seconds": FOREVER}).to_string();
    assert_eq!(server.admin("PUT", &path, &update).await.json()["limit"], 7);
    assert_eq!(left(&server, json!({"tenant": "b", "plan": "free"})).await, (7, 5));
    let again = server.admin("PUT", &path, &api().to_string()).await.json();
    assert_eq!((&again["limit"], again.get("warnings")), (&api()["limit"], None));
}

async fn explain_says_where_a_limit_comes_from(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let id = server.create_rule(&api()).await;
    let explain = async |attributes: Value| {
        let body = json!({"attributes": attributes}).to_string();
        server.admin("POST", EXPLAIN, &body).await.json()["rules"][0].clone()
    };
    let pro = explain(json!({"tenant": "a", "plan": "pro"})).await;
    assert_eq!(
        (&pro["limit"], &pro["limit_why"]),
        (&json!(30), &json!("the limit is 30 by the value of plan"))
    );
    let none = explain(json!({"tenant": "a"})).await;
    assert_eq!(none["limit_why"], "the check has no attribute plan: it has the default limit, 2");
    let unlisted = explain(json!({"tenant": "a", "plan": "gold"})).await;
    let why = "the rule has no limit for this value of plan: it has the default limit, 2";
    assert_eq!((&unlisted["limit"], &unlisted["limit_why"]), (&json!(2), &json!(why)));

    let boost =
        json!({"rule_id": id, "subject": {"tenant": "a"}, "limit": 500, "reason": "launch"});
    let boost = set(&server, &boost).await;
    let boosted = explain(json!({"tenant": "a", "plan": "pro"})).await;
    let why = "an override of tenant=a sets the limit to 500";
    assert_eq!((&boosted["limit"], &boosted["limit_why"]), (&json!(500), &json!(why)));
    assert_eq!(
        (&boosted["override"]["id"], &boosted["override"]["reason"]),
        (&boost["id"], &json!("launch"))
    );

    let mut lowest = api();
    lowest["limit"].as_object_mut().unwrap().remove("default");
    let updated = server.admin("PUT", &format!("{RULES}/{id}"), &lowest.to_string()).await.json();
    assert_eq!(updated["warnings"][0]["reason"], "no_default", "{updated}");
    let none = explain(json!({"tenant": "b"})).await;
    let why = "the check has no attribute plan: it has the lowest limit, 3, because the rule has no default";
    assert_eq!(none["limit_why"], why);
}

async fn invalid_limits_by_plan_are_refused_with_all_problems(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = json!({
        "name": "api", "per": ["tenant"], "window_seconds": 0,
        "limit": {"by": "a b", "free": 0, "pro": "x", "default": -1},
    });
    let reply = server.admin("POST", RULES, &rule.to_string()).await;
    let mut messages: Vec<String> =
        reply.details().into_iter().map(|(_, message)| message).collect();
    messages.sort();
    let expected = [
        "limit.by must be the name of an attribute",
        "limit.default must be greater than 0",
        "limit.free must be greater than 0",
        "limit.pro must be a whole number",
        "window_seconds must be greater than 0",
    ];
    assert_eq!((reply.status.as_u16(), messages), (400, expected.map(str::to_owned).to_vec()));
    for limit in [json!([]), json!("x"), json!(true), json!({}), json!({"by": "plan"})] {
        let rule = json!({"name": "api", "per": ["tenant"], "window_seconds": 60, "limit": limit});
        assert_eq!(server.admin("POST", RULES, &rule.to_string()).await.status, 400, "{rule}");
    }
    let log = json!({
        "name": "log", "per": ["tenant"], "window_seconds": 60, "algorithm": "sliding_window",
        "limit": {"by": "plan", "huge": 100_001, "default": 5},
    });
    let reply = server.admin("POST", RULES, &log.to_string()).await;
    assert!(
        reply.text.contains("limit.huge: limit of sliding_window must be at most 100000"),
        "{}",
        reply.text
    );
    let by_scope = json!({
        "scope": "user", "identifier_pattern": "*", "window_seconds": 60, "limit": api()["limit"],
    });
    assert_eq!(server.admin("POST", RULES, &by_scope.to_string()).await.status, 400);
}

async fn an_override_is_set_replaced_listed_and_deleted(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = server.create_rule(&api()).await;
    let draft = json!({
        "rule_id": rule, "subject": {"tenant": "acme"}, "limit": 5000,
        "until": "2999-12-01T00:00:00Z", "reason": "launch",
    });
    let reply = server.admin("PUT", OVERRIDES, &draft.to_string()).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let created = reply.json();
    assert_eq!((&created["subject"], &created["limit"]), (&draft["subject"], &json!(5000)));
    assert_eq!((&created["rule_name"], &created["active"]), (&json!("api"), &json!(true)));
    assert_eq!(created["until"], "2999-12-01T00:00:00.000+00:00");
    assert_eq!(left(&server, json!({"tenant": "acme", "plan": "free"})).await, (5000, 4999));
    assert_eq!(left(&server, json!({"tenant": "other", "plan": "free"})).await, (3, 2));

    let changed = json!({"rule_id": rule, "subject": {"tenant": "acme"}, "limit": 9});
    let reply = server.admin("PUT", OVERRIDES, &changed.to_string()).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["id"]), (200, &created["id"]));
    assert_eq!(left(&server, json!({"tenant": "acme"})).await, (9, 7));

    let other = json!({"rule_id": rule, "subject": {"tenant": "other", "user": 7}, "limit": 1});
    let warned = set(&server, &other).await;
    assert_eq!(warned["warnings"][0]["reason"], "unrelated", "{warned}");
    let listed =
        server.admin("GET", &format!("{OVERRIDES}?search=ACME&rule_id={rule}"), "").await.json();
    assert_eq!(listed["pagination"]["total_count"], 1, "{listed}");
    assert_eq!(listed["overrides"][0]["id"], created["id"]);
    let paged =
        server.admin("GET", &format!("{OVERRIDES}?page=2&page_size=1&active_only=true"), "").await;
    assert_eq!(paged.json()["overrides"].as_array().unwrap().len(), 1, "{}", paged.text);

    let path = format!("{OVERRIDES}/{}", created["id"].as_str().unwrap());
    assert_eq!(server.admin("GET", &path, "").await.json()["limit"], 9);
    assert_eq!(server.admin("DELETE", &path, "").await.status, 204);
    assert_eq!(left(&server, json!({"tenant": "acme", "plan": "pro"})).await, (30, 27));
    let gone = server.admin("DELETE", &path, "").await;
    assert_eq!(
        (gone.status.as_u16(), &gone.json()["error"]["code"]),
        (404, &json!("SYS_RATELIMIT_OVERRIDE_NOT_FOUND"))
    );

    let audit = server.admin("GET", "/api/v1/ratelimit/audit?action=override.set", "").await.json();
    let entry = audit["entries"].as_array().unwrap().last().unwrap();
    assert_eq!((&entry["target"], &entry["target_name"]), (&created["id"], &json!("tenant=acme")));
    assert_eq!((&entry["after"]["limit"], &entry["reason"]), (&json!(5000), &json!("launch")));
}

/// Sets an override that ends soon; returns its end, and the override. On a busy machine, a short
/// one may be over before it is set.
async fn set_for_a_moment(server: &Server, rule: &str) -> (jiff::Timestamp, Value) {
    for seconds in [2, 20, 60] {
        let end = jiff::Timestamp::now() + Duration::from_secs(seconds);
        let boost = json!({
            "rule_id": rule, "subject": {"tenant": "acme"}, "limit": 100, "until": end.to_string(),
        });
        let reply = server.admin("PUT", OVERRIDES, &boost.to_string()).await;
        if reply.status.is_success() && reply.json()["active"] == true {
            return (end, reply.json());
        }
        assert!(jiff::Timestamp::now() >= end, "{}", reply.text);
    }
    panic!("no override was set in time");
}

async fn an_override_ends_by_itself(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let rule = server.create_rule(&api()).await;
    let (end, set) = set_for_a_moment(&server, &rule).await;
    until(Duration::from_secs(180), async || {
        check(&server, json!({"tenant": "acme"})).await["limit"] == 2
    })
    .await;
    assert!(jiff::Timestamp::now() >= end);
    let path = format!("{OVERRIDES}/{}", set["id"].as_str().unwrap());
    assert_eq!(server.admin("GET", &path, "").await.json()["active"], false);
    let active = server.admin("GET", &format!("{OVERRIDES}?active_only=true"), "").await.json();
    assert_eq!(active["pagination"]["total_count"], 0);
}

async fn rules_by_scope_have_overrides(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let users = json!({
        "scope": "user", "identifier_pattern": "u*", "limit": 9, "window_seconds": FOREVER
    });
    let rule = server.create_rule(&users).await;
    set(&server, &json!({"rule_id": rule, "subject": {"user": "u1"}, "limit": 50})).await;
    let answer = server.check_user("u1").await;
    assert_eq!((&answer.json()["limit"], &answer.json()["remaining"]), (&json!(50), &json!(49)));
    assert_eq!(answer.header("ratelimit-policy"), r#""user:u*";q=50;w=8640000"#);
    assert_eq!(server.check_user("u2").await.json()["limit"], 9);
    let usage = server
        .admin("GET", &format!("/api/v1/ratelimit/usage?rule_id={rule}&identifier=u1"), "")
        .await
        .json();
    assert_eq!((&usage["used"], &usage["remaining"]), (&json!(1), &json!(49)), "{usage}");
    let path = format!("{EXPLAIN}?scope=user&identifier=u1");
    let explained = server.admin("GET", &path, "").await.json()["rules"][0].clone();
    assert_eq!((&explained["limit"], &explained["override"]["limit"]), (&json!(50), &json!(50)));

    for (subject, message) in [
        (json!({"user": "x1"}), "subject does not match the rule's pattern u*"),
        (json!({"tenant": "u1"}), "subject of this rule must have the attribute user only"),
    ] {
        let draft = json!({"rule_id": rule, "subject": subject, "limit": 5}).to_string();
        let reply = server.admin("PUT", OVERRIDES, &draft).await;
        assert_eq!(reply.details(), [("subject".to_owned(), message.to_owned())]);
    }
    // They go with their rule.
    assert_eq!(server.admin("DELETE", &format!("{RULES}/{rule}"), "").await.status, 204);
    let listed = server.admin("GET", OVERRIDES, "").await.json();
    assert_eq!(listed["pagination"]["total_count"], 0, "{listed}");
}

async fn invalid_overrides_are_refused_with_all_problems(backend: &Backend) {
    let server = backend.serve(&[]).await;
    let draft = json!({
        "rule_id": "x", "subject": {"a": []}, "limit": 0, "until": "yesterday", "reason": "",
    });
    let reply = server.admin("PUT", OVERRIDES, &draft.to_string()).await;
    let fields: Vec<String> = reply.details().into_iter().map(|(field, _)| field).collect();
    assert_eq!(
        (reply.status.as_u16(), fields.join(" ")),
        (400, "rule_id subject limit until reason".to_owned())
    );
    let unknown = json!({
        "rule_id": "00000000-0000-4000-8000-000000000000", "subject": {"a": "b"}, "limit": 1,
    });
    let reply = server.admin("PUT", OVERRIDES, &unknown.to_string()).await;
    assert_eq!(reply.json()["error"]["code"], "SYS_RATELIMIT_RULE_NOT_FOUND");
    let past = json!({
        "rule_id": "00000000-0000-4000-8000-000000000000", "subject": {"a": "b"}, "limit": 1,
        "until": "2020-01-01T00:00:00Z", "untli": 1,
    });
    assert_eq!(server.admin("PUT", OVERRIDES, &past.to_string()).await.status, 400);
    assert_eq!(server.post(OVERRIDES, "{}").await.status, 405);
    assert_eq!(server.get(OVERRIDES).await.status, 401);
}

async fn batches_have_attributes(backend: &Backend) {
    let server = backend.serve(&[]).await;
    server.create_rule(&api()).await;
    let users =
        json!({"scope": "user", "identifier_pattern": "*", "limit": 9, "window_seconds": FOREVER});
    server.create_rule(&users).await;
    let batch = async |checks: Value| {
        let body = json!({"checks": checks}).to_string();
        server.post("/api/v1/ratelimit/check/batch", &body).await
    };
    let checks = json!([
        {"attributes": {"tenant": "a", "plan": "free"}, "cost": 2, "limits": true},
        {"scope": "user", "identifier": "u1"},
        {"attributes": {"nothing": "matches"}},
        {"scope": "user", "identifier": "u1", "limits": true},
    ]);
    let first = batch(checks.clone()).await.json();
    assert_eq!(first["allowed"], true, "{first}");
    let results = &first["results"];
    assert_eq!((&results[0]["remaining"], &results[0]["rule"]["name"]), (&json!(1), &json!("api")));
    assert_eq!(results[0]["limits"].as_array().unwrap().len(), 1);
    // Bodies of checks without attributes are as they were.
    assert_eq!((&results[1]["remaining"], results[1].get("rule")), (&json!(7), None));
    assert_eq!(
        results[2],
        json!({"allowed": true, "reason": "no rule matches", "retry_after_ms": 0})
    );
    assert_eq!(results[3]["limits"][0]["limit"], 9);

    let second = batch(checks).await.json();
    assert_eq!(
        (&second["allowed"], &second["results"][0]["allowed"]),
        (&json!(false), &json!(false))
    );
    assert!(second["results"][0]["retry_after_ms"].as_u64().unwrap() > 0);
    assert_eq!(server.check_user("u1").await.json()["remaining"], 6, "nothing was taken");

    let wrong = batch(json!([
        {"attributes": {"a b": 1}, "window": "60s"}, {"attributes": {}, "limits": "x"},
        {"attributes": {"tenant": "a"}, "dry_run": true},
    ]))
    .await;
    let fields: Vec<String> = wrong.details().into_iter().map(|(field, _)| field).collect();
    assert_eq!(
        fields.join(" "),
        "checks[0].attributes checks[0].window checks[1].limits checks[2].dry_run",
        "{}",
        wrong.text
    );
}
