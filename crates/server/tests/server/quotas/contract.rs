//! The examples of the founding document.

use headgate_testkit::require;
use hyper::Request;
use serde_json::{Value, json};

use super::{QUOTAS, backend::Backend, error};
use crate::harness::{Reply, Server};

/// The document's own example.
fn standard() -> Value {
    json!({
        "name": "スタンダードプランAPIクォータ", "subject_type": "tenant", "subject_id": "tenant-abc",
        "limit": 10_000, "period": "daily", "enabled": true, "alert_threshold_percent": 80,
    })
}

fn is_time(text: &Value) -> bool {
    let text = text.as_str().unwrap();
    text.len() == "2026-02-20T10:00:00.000+00:00".len() && text.ends_with("+00:00")
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_default() {
    contract(&Server::start(&[]).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_redis() {
    let backend = require!(Backend::start());
    contract(&backend.server().await).await;
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'quota' \
                  AND table_name IN ('quota_policies', 'quota_usages')";
    assert_eq!(backend.postgres.psql(tables), "2");
}

async fn contract(server: &Server) {
    let id = policies(server).await;
    usage(server, &id).await;
    let refused = increments(server, &id).await;
    exceeded(&refused, &id);
    repeats(server).await;
    resets(server, &id).await;
    history(server, &id).await;
    deletion(server, &id).await;
}

async fn policies(server: &Server) -> String {
    let made = server.admin("POST", QUOTAS, &standard().to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let mut policy = made.json();
    let id = policy["id"].as_str().unwrap().to_owned();
    assert!(id.starts_with("quota_"), "{id}");
    assert!(is_time(&policy["created_at"]) && is_time(&policy["updated_at"]), "{policy}");
    let path = format!("{QUOTAS}/{id}");
    assert_eq!(server.admin("GET", &path, "").await.json(), policy);
    for field in ["id", "created_at", "updated_at"] {
        policy.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(policy, standard());

    let again = server.admin("POST", QUOTAS, &standard().to_string()).await;
    let message = "a daily quota policy for tenant tenant-abc already exists".to_owned();
    assert_eq!(error(&again), (409, "SYS_QUOTA_ALREADY_EXISTS".to_owned(), message));
    assert_eq!(again.details(), []);
    let mut monthly = standard();
    monthly["period"] = json!("monthly");
    let monthly = server.create_quota(&monthly).await;

    let list = async |query: &str| {
        let body = server.admin("GET", &format!("{QUOTAS}?{query}"), "").await.json();
        let ids: Vec<String> = body["quotas"]
            .as_array()
            .unwrap()
            .iter()
            .map(|quota| quota["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, body["pagination"].clone())
    };
    let pagination = |page: u32, size: u32, next: bool| json!({"total_count": 2, "page": page, "page_size": size, "has_next": next});
    let both = vec![monthly.clone(), id.clone()];
    assert_eq!(list("").await, (both.clone(), pagination(1, 20, false)));
    assert_eq!(list("subject_type=tenant&subject_id=tenant-abc&enabled_only=true").await.0, both);
    assert_eq!(list("page_size=1").await, (vec![monthly], pagination(1, 1, true)));
    assert_eq!(list("page_size=1&page=2").await, (vec![id.clone()], pagination(2, 1, false)));
    assert_eq!(list("subject_type=user").await.0, Vec::<String>::new());
    id
}

async fn usage(server: &Server, id: &str) {
    let mut usage = server.quota_usage(id).await.json();
    let text = |key: &str| usage[key].as_str().unwrap().to_owned();
    let (start, end, reset) = (text("period_start"), text("period_end"), text("reset_at"));
    assert!(start.ends_with("T00:00:00.000+00:00") && reset.ends_with("T00:00:00.000+00:00"));
    assert_eq!(end, format!("{}T23:59:59.999+00:00", &start[..10]));
    assert!(reset > end && is_time(&usage["retrieved_at"]), "{usage}");
    for field in ["period_start", "period_end", "reset_at", "retrieved_at"] {
        usage.as_object_mut().unwrap().remove(field);
    }
    let expected = json!({
        "quota_id": id, "subject_type": "tenant", "subject_id": "tenant-abc", "period": "daily",
        "limit": 10_000, "used": 0, "remaining": 10_000, "usage_percent": 0.0, "exceeded": false,
    });
    assert_eq!(usage, expected);
}

/// Uses the whole quota; returns the first denial.
async fn increments(server: &Server, id: &str) -> Reply {
    assert_eq!(server.increment(id, 7_523, None).await.status, 200);
    let done = server.increment(id, 1, Some("req_abc123def456")).await;
    let expected = json!({
        "quota_id": id, "used": 7_524, "remaining": 2_476, "usage_percent": 75.24,
        "exceeded": false, "allowed": true,
    });
    assert_eq!((done.status.as_u16(), done.json()), (200, expected), "{}", done.text);
    assert_eq!(
        (done.header("x-ratelimit-limit"), done.header("x-ratelimit-remaining")),
        ("10000", "2476")
    );
    assert_eq!(done.header("ratelimit-policy"), format!("\"{id}\";q=10000;w=86400"));
    let usage = server.quota_usage(id).await.json();
    assert_eq!((&usage["used"], &usage["usage_percent"]), (&json!(7_524), &json!(75.24)));

    let check = format!("{QUOTAS}/{id}/check");
    for (body, allowed) in
        [("", true), ("{}", true), (r#"{"amount":2476}"#, true), (r#"{"amount":2477}"#, false)]
    {
        let checked = server.admin("POST", &check, body).await;
        assert_eq!(checked.status, 200, "{body}: {}", checked.text);
        assert_eq!(checked.json()["allowed"], allowed, "{body}");
        assert_eq!(checked.json()["used"], 7_524, "nothing is used");
    }
    let too_much = server.increment(id, 2_477, None).await;
    assert_eq!(too_much.status, 429, "nothing is granted in part: {}", too_much.text);
    assert_eq!(server.used(id).await, 7_524);
    let last = server.increment(id, 2_476, None).await.json();
    assert_eq!((&last["exceeded"], &last["remaining"]), (&json!(true), &json!(0)), "{last}");
    server.increment(id, 1, None).await
}

fn exceeded(refused: &Reply, id: &str) {
    let message = "quota exceeded for tenant-abc: 10000/10000 (daily)".to_owned();
    assert_eq!(error(refused), (429, "SYS_QUOTA_EXCEEDED".to_owned(), message));
    let listed = refused.details();
    assert_eq!(listed[0], ("quota_id".to_owned(), id.to_owned()));
    assert_eq!((listed.len(), listed[1].0.as_str()), (2, "reset_at"));
    assert!(listed[1].1.ends_with("T00:00:00.000+00:00"), "{listed:?}");
    let wait: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    assert_eq!(refused.header("ratelimit"), format!("\"{id}\";r=0;t={wait}"));
    assert_eq!(refused.json()["error"]["request_id"], refused.header("x-request-id"));
}

async fn repeats(server: &Server) {
    let id = server.create_quota(&super::policy("repeats", 100)).await;
    let first = server.increment(&id, 10, Some("once")).await;
    assert_eq!(first.header("idempotent-replayed"), "");
    server.increment(&id, 5, Some("twice")).await;
    let replay = server.increment(&id, 10, Some("once")).await;
    assert_eq!((replay.status, replay.json()), (first.status, first.json()), "as it was then");
    assert_eq!(replay.header("idempotent-replayed"), "true");
    let conflict = server.increment(&id, 11, Some("once")).await;
    let message = "request_id once was used with another amount in this period".to_owned();
    assert_eq!(error(&conflict), (409, "SYS_QUOTA_REQUEST_ID_CONFLICT".to_owned(), message));

    let path = format!("{QUOTAS}/{id}/usage/increment");
    let with_header = async |value: &str, body: &str| {
        let request = Request::post(&path)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", server.admin_token.as_deref().unwrap()))
            .header("idempotency-key", value);
        server.send(request, body).await.json()["used"].clone()
    };
    let ten = r#"{"amount":10}"#;
    assert_eq!(with_header("key-1", ten).await, 25);
    assert_eq!(with_header("\"key-1\"", ten).await, 25, "quotes are the header's, not the name's");
    assert_eq!(with_header("key-1", r#"{"amount":10,"request_id":"key-2"}"#).await, 35);
    assert_eq!(server.used(&id).await, 35);
}

async fn resets(server: &Server, id: &str) {
    let path = format!("{QUOTAS}/{id}/usage/reset");
    for body in ["{}", r#"{"reason":"  "}"#, r#"{"reason":null}"#] {
        let refused = server.admin("POST", &path, body).await;
        assert_eq!(error(&refused).1, "SYS_QUOTA_VALIDATION_ERROR", "{body}");
        assert_eq!(refused.details(), [("reason".to_owned(), "reason is required".to_owned())]);
    }
    let body = r#"{"reason":"プラン変更に伴うリセット"}"#;
    let mut reset = server.admin("POST", &path, body).await.json();
    assert!(is_time(&reset["reset_at"]), "{reset}");
    reset.as_object_mut().unwrap().remove("reset_at");
    assert_eq!(reset, json!({"quota_id": id, "used": 0, "reset_by": "admin"}));
    assert_eq!(server.used(id).await, 0);
    let query = "/api/v1/ratelimit/audit?action=quota.reset";
    let entry = server.admin("GET", query, "").await.json()["entries"][0].clone();
    assert_eq!((&entry["target"], &entry["actor"]), (&json!(id), &json!("admin")), "{entry}");
    assert_eq!(entry["reason"], "プラン変更に伴うリセット");
    // A retry of an increment before the reset is not charged again.
    let replay = server.increment(id, 1, Some("req_abc123def456")).await;
    assert_eq!(replay.header("idempotent-replayed"), "true");
    assert_eq!(server.used(id).await, 0);
}

async fn history(server: &Server, id: &str) {
    server.increment(id, 3, None).await;
    let body = server.admin("GET", &format!("{QUOTAS}/{id}/history"), "").await.json();
    assert_eq!((&body["quota_id"], &body["pagination"]["total_count"]), (&json!(id), &json!(1)));
    let period = &body["history"][0];
    assert_eq!((&period["used"], &period["limit"]), (&json!(3), &json!(10_000)), "{body}");
    assert_eq!((&period["closed"], &period["exceeded"]), (&json!(false), &json!(false)));
    let start = period["period_start"].as_str().unwrap();
    assert!(start.starts_with(period["period_name"].as_str().unwrap()), "{body}");
}

async fn deletion(server: &Server, id: &str) {
    let path = format!("{QUOTAS}/{id}");
    let gone = server.admin("DELETE", &path, "").await;
    assert_eq!((gone.status.as_u16(), gone.text.as_str()), (204, ""));
    let message = format!("quota policy not found: {id}");
    let expected = (404, "SYS_QUOTA_NOT_FOUND".to_owned(), message);
    for (method, path, body) in [
        ("GET", path.clone(), ""),
        ("DELETE", path.clone(), ""),
        ("GET", format!("{path}/usage"), ""),
        ("GET", format!("{path}/history"), ""),
        ("POST", format!("{path}/check"), ""),
        ("POST", format!("{path}/usage/increment"), r#"{"amount":1}"#),
        ("POST", format!("{path}/usage/reset"), r#"{"reason":"x"}"#),
        ("PUT", path.clone(), &standard().to_string()),
    ] {
        let reply = server.admin(method, &path, body).await;
        assert_eq!(error(&reply), expected, "{method} {path}");
        assert_eq!(reply.details(), []);
    }
    // The subject can get a new policy at once, with nothing used.
    let next = server.create_quota(&standard()).await;
    assert_ne!(next, id);
    assert_eq!(server.used(&next).await, 0);
}
