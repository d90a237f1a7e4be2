//! Misspelt fields and parameters are errors: otherwise they would be silently ignored.

use serde_json::{Value, json};

use crate::harness::{CHECK, RULES, Reply, Server};

/// Fields and reasons in the details of an error.
fn listed(reply: &Reply) -> Vec<(String, String)> {
    assert_eq!(reply.status, 400, "{}", reply.text);
    let body = reply.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let details = body["error"]["details"].as_array().expect("details");
    details.iter().map(|detail| (text(&detail["field"]), text(&detail["reason"]))).collect()
}

fn unknown(fields: &[&str]) -> Vec<(String, String)> {
    fields.iter().map(|field| ((*field).to_owned(), "unknown".to_owned())).collect()
}

#[tokio::test]
async fn a_misspelt_field_of_a_check_charges_nothing() {
    let server = Server::start(&[]).await;
    let body = r#"{"scope":"user","identifier":"u1","costs":5}"#;
    let refused = server.post(CHECK, body).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let mut error = refused.json()["error"].take();
    error["request_id"].take();
    let expected = json!({
        "code": "SYS_RATELIMIT_VALIDATION_ERROR",
        "message": "validation failed",
        "request_id": null,
        "details": [{
            "field": "costs",
            "reason": "unknown",
            "message": "unknown field \"costs\"; known here: scope, identifier, window, cost, dry_run, attributes, limits, request_id",
        }],
    });
    assert_eq!(error, expected);
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);
}

#[tokio::test]
async fn unknown_fields_and_bad_ones_are_listed_together() {
    let server = Server::start(&[]).await;
    let body = r#"{"Scope":"user","scope":"planet","costs":{"a":[1]},"identifier":"","cost":0}"#;
    let mut expected = unknown(&["Scope", "costs"]);
    expected.push(("scope".to_owned(), "unknown".to_owned()));
    expected.push(("identifier".to_owned(), "invalid".to_owned()));
    expected.push(("cost".to_owned(), "invalid".to_owned()));
    assert_eq!(listed(&server.post(CHECK, body).await), expected);
}

#[tokio::test]
async fn a_misspelt_field_in_a_batch_takes_nothing() {
    let server = Server::start(&[]).await;
    let body = json!({
        "checks": [
            {"scope": "user", "identifier": "u1"},
            {"scope": "user", "identifier": "u2", "costs": 5},
        ],
        "dryrun": true,
    });
    let refused = server.post("/api/v1/ratelimit/check/batch", &body.to_string()).await;
    assert_eq!(listed(&refused), unknown(&["checks[1].costs", "dryrun"]));
    assert_eq!(server.check_user("u1").await.json()["remaining"], 99);
}

#[tokio::test]
async fn a_misspelt_field_changes_nothing() {
    let server = Server::start(&[]).await;
    let rule =
        json!({"scope": "user", "identifier_pattern": "*", "limit": 7, "window_seconds": 60});
    let id = server.create_rule(&rule).await;
    let misspelt = |mut body: Value, field: &str| {
        body[field] = json!(true);
        body.to_string()
    };
    let one = format!("{RULES}/{id}");
    let reset = json!({"scope": "user", "identifier": "u1"});
    for (method, path, body, field) in [
        ("POST", RULES, misspelt(rule.clone(), "enable"), "enable"),
        ("PUT", &one, misspelt(rule.clone(), "enable"), "enable"),
        ("PUT", RULES, json!({"rules": [rule.clone()], "dryrun": true}).to_string(), "dryrun"),
        ("PUT", RULES, json!({"rules": [{"limits": 5}]}).to_string(), "rules[0].limits"),
        (
            "POST",
            "/api/v1/ratelimit/reset",
            misspelt(reset, "identifier_pattern"),
            "identifier_pattern",
        ),
        ("POST", "/console/preview", misspelt(rule.clone(), "brust"), "brust"),
        ("PUT", "/api/v1/services/relay", r#"{"config":{},"version":3}"#.to_owned(), "version"),
    ] {
        let refused = server.admin(method, path, &body).await;
        assert_eq!(listed(&refused)[0], unknown(&[field])[0], "{method} {path} {body}");
    }
    let rules = server.admin("GET", RULES, "").await.json();
    assert_eq!(rules["rules"].as_array().unwrap().len(), 1);
    assert_eq!(rules["rules"][0]["enabled"], true);
}

#[tokio::test]
async fn a_misspelt_parameter_is_refused() {
    let server = Server::start(&[]).await;
    for (path, parameters) in [
        ("/api/v1/ratelimit/explain?scope=user&identifier=u1&window=60s", &["window"][..]),
        ("/api/v1/ratelimit/explain?scop=user&identifier=u1", &["scop"]),
        ("/api/v1/ratelimit/holders?scope=user&identifier=u1&limit=5", &["limit"]),
        ("/api/v1/ratelimit/usage?rule=1", &["rule"]),
        ("/api/v1/ratelimit/rules?Scope=user&pagesize=1", &["Scope", "pagesize"]),
        ("/api/v1/ratelimit/audit?since=2026-02-20T10:00:00Z&till=2026-02-21T10:00:00Z", &["till"]),
        ("/api/v1/quotas?subject=a", &["subject"]),
        ("/api/v1/quotas/quota_1/history?limit=1", &["limit"]),
        ("/api/v1/events?type=QUOTA_EXCEEDED", &["type"]),
        ("/api/v1/events/stream?order=newest", &["order"]),
        ("/console/overview?before=1", &["before"]),
    ] {
        let refused = listed(&server.admin("GET", path, "").await);
        assert_eq!(refused[..parameters.len()], unknown(parameters), "{path}");
    }
}

#[tokio::test]
async fn parameters_that_belong_into_the_body_change_nothing() {
    let server = Server::start(&[]).await;
    let rule = json!({"scope": "user", "identifier_pattern": "*", "limit": 7,
        "window_seconds": 8_640_000});
    let one = format!("{RULES}/{}", server.create_rule(&rule).await);
    let check = r#"{"scope":"user","identifier":"u1"}"#;
    let refused = server.post(&format!("{CHECK}?dry_run=true&cost=5"), check).await;
    assert_eq!(listed(&refused), unknown(&["dry_run", "cost"]));
    let expected = "unknown query parameter \"dry_run\"; it belongs in the JSON body";
    assert_eq!(refused.details()[0].1, expected);
    assert_eq!(server.check_user("u1").await.json()["remaining"], 6);

    let list = json!({"rules": [], "prune": true}).to_string();
    for (method, path, body) in
        [("PUT", RULES, list.as_str()), ("DELETE", &one, ""), ("POST", "/api/v1/quotas", "{}")]
    {
        let refused = server.admin(method, &format!("{path}?dry_run=true"), body).await;
        assert_eq!(listed(&refused), unknown(&["dry_run"]), "{method} {path}");
    }
    assert_eq!(server.admin("GET", &one, "").await.status, 200);
    // A question mark alone is no parameter, and probes may add some.
    assert_eq!(server.post(&format!("{CHECK}?"), check).await.status, 200);
    for path in ["/healthz?x=1", "/readyz?x=1", "/metrics?x=1", "/console?x=1"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn empty_and_duplicate_parameters_are_refused() {
    let server = Server::start(&[]).await;
    for (method, path, field, reason) in [
        ("POST", "/api/v1/config/reload?dry_run", "dry_run", "invalid"),
        ("POST", "/api/v1/config/reload?dry_run=", "dry_run", "invalid"),
        ("POST", "/api/v1/config/reload?dry_run=true&dry_run=false", "dry_run", "duplicate"),
        ("GET", "/api/v1/ratelimit/rules?enabled_only", "enabled_only", "invalid"),
        ("GET", "/api/v1/ratelimit/rules?page=1&page=2", "page", "duplicate"),
    ] {
        let refused = listed(&server.admin(method, path, "").await);
        assert_eq!(refused, [(field.to_owned(), reason.to_owned())], "{method} {path}");
    }
    // An empty text is a filter by nothing.
    assert_eq!(server.admin("GET", "/api/v1/ratelimit/rules?search=", "").await.status, 200);
}

#[tokio::test]
async fn requests_without_fields_refuse_a_body() {
    let server = Server::start(&[]).await;
    let body = r#"{"checks":[{"scope":"user","identifier":"u1","cost":3}]}"#;
    let reserved = server.post("/api/v1/ratelimit/reservations", body).await.json();
    let one = format!("/api/v1/ratelimit/reservations/{}", reserved["id"].as_str().unwrap());
    let cancel = format!("{one}/cancel");
    let refused = server.post(&cancel, r#"{"cost":3}"#).await;
    assert_eq!(listed(&refused), unknown(&["cost"]));
    assert_eq!(refused.details()[0].1, "unknown field \"cost\"; this request has no fields");
    assert_eq!(server.get(&one).await.status, 200, "it is not cancelled");
    assert_eq!(server.post(&cancel, "{}").await.status, 200);

    for path in ["/api/v1/ratelimit/leases/l1/release", "/api/v1/quotas/q1/reservations/r1/cancel"]
    {
        let refused = server.admin("POST", path, r#"{"cost":3}"#).await;
        assert_eq!(listed(&refused), unknown(&["cost"]), "{path}");
        assert_eq!(server.admin("POST", path, "").await.status, 404, "{path}");
    }
    let refused = server.admin("POST", "/api/v1/config/reload", r#"{"dry_run":true}"#).await;
    assert_eq!(listed(&refused), unknown(&["dry_run"]));
}

#[tokio::test]
async fn a_misspelt_parameter_about_a_key_takes_nothing() {
    let server = Server::start(&[]).await;
    let known = "known here: algorithm, key, permits";
    for (method, path, message) in [
        ("GET", "/check?key=k1&permit=5", format!(r#"unknown parameter "permit"; {known}"#)),
        ("POST", "/check?Key=k1&cost=5", format!(r#"unknown parameter "Key", "cost"; {known}"#)),
        (
            "GET",
            "/remaining?key=k1&permits=5",
            r#"unknown parameter "permits"; known here: algorithm, key"#.to_owned(),
        ),
        (
            "DELETE",
            "/reset?key=k1&algoritm=FIXED_WINDOW",
            r#"unknown parameter "algoritm"; known here: algorithm, key"#.to_owned(),
        ),
    ] {
        let refused = server.admin(method, &format!("/api/v1/rate-limit{path}"), "").await;
        assert_eq!(refused.status, 400, "{}", refused.text);
        let body = refused.json();
        assert_eq!(
            (&body["error"], &body["message"]),
            (&json!("INVALID_PARAMETER"), &json!(message))
        );
    }
    let left = server.get("/api/v1/rate-limit/remaining?key=k1").await.json();
    assert_eq!(left["remaining"], 100);
}

/// As the founding documents write them.
#[tokio::test]
async fn the_documents_own_examples_are_accepted() {
    let server = Server::start(&[]).await;
    let rule = r#"{"scope":"user","identifier_pattern":"*","limit":100,"window_seconds":60,"enabled":true}"#;
    assert_eq!(server.admin("POST", RULES, rule).await.status, 201);
    let check = r#"{"scope":"user","identifier":"user-001","window":"60s"}"#;
    assert_eq!(server.post(CHECK, check).await.json()["allowed"], true);
    let reset = r#"{"scope":"user","identifier":"user-001"}"#;
    assert_eq!(server.admin("POST", "/api/v1/ratelimit/reset", reset).await.status, 200);
    let quota = r#"{"name":"standard","subject_type":"tenant","subject_id":"tenant-abc","limit":10000,"period":"daily","enabled":true,"alert_threshold_percent":80}"#;
    let made = server.admin("POST", "/api/v1/quotas", quota).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let increment = r#"{"amount":1,"request_id":"req_abc123def456"}"#;
    let path = format!("/api/v1/quotas/{id}/usage/increment");
    assert_eq!(server.admin("POST", &path, increment).await.status, 200);
    let keyed = "/api/v1/rate-limit/check?algorithm=TOKEN_BUCKET&key=user:123";
    assert_eq!(server.get(keyed).await.status, 200);
}
