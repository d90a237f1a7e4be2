//! `GET /api/v1/events`

use serde_json::json;

use super::support::{EVENTS, exhausted, increment, list, policy, types};
use crate::harness::Server;

const BOTH: [&str; 2] = ["QUOTA_THRESHOLD_REACHED", "QUOTA_EXCEEDED"];

#[tokio::test]
async fn each_event_is_listed_once_and_in_order() {
    let server = Server::start(&[]).await;
    assert_eq!(list(&server, "").await, json!({"events": [], "next": "0"}));
    let id = policy(&server, "tenant-abc", 10).await;
    for amount in [7, 1, 2] {
        assert_eq!(increment(&server, &id, amount).await.status, 200);
    }
    for _ in 0..3 {
        assert_eq!(increment(&server, &id, 1).await.status, 429);
    }

    let listed = list(&server, "").await;
    assert_eq!(types(&listed), BOTH);
    let reached = &listed["events"][0];
    let day = reached["reached_at"].as_str().unwrap().split_once('T').unwrap().0;
    assert_eq!(reached["event_id"], format!("{id}:{day}:threshold"));
    let names = ["usage_percent", "alert_threshold_percent", "used", "limit"];
    assert_eq!(
        names.map(|field| &reached[field]),
        [&json!(80.0), &json!(80), &json!(8), &json!(10)]
    );
    let exceeded = &listed["events"][1];
    let names = ["quota_id", "subject_type", "subject_id", "period"];
    assert_eq!(
        names.map(|field| exceeded[field].as_str().unwrap()),
        [&id, "tenant", "tenant-abc", "daily"]
    );
    assert_eq!((&exceeded["used"], &exceeded["usage_percent"]), (&json!(10), &json!(null)));
    assert!(exceeded["exceeded_at"].as_str() < exceeded["reset_at"].as_str());
}

#[tokio::test]
async fn a_cursor_continues_after_the_last_page() {
    let server = Server::start(&[]).await;
    let (one, other) = (exhausted(&server, "one").await, exhausted(&server, "other").await);
    let mut after = "0".to_owned();
    let mut seen = Vec::new();
    loop {
        let listed = list(&server, &format!("after={after}&limit=1")).await;
        let next = listed["next"].as_str().unwrap().to_owned();
        if next == after {
            break;
        }
        let event = &listed["events"][0];
        seen.push((event["quota_id"].as_str().unwrap().to_owned(), types(&listed)[0].to_owned()));
        after = next;
    }
    let expected =
        [&one, &other].into_iter().flat_map(|id| BOTH.map(|kind| (id.clone(), kind.into())));
    assert_eq!(seen, expected.collect::<Vec<_>>());

    let of_one = list(&server, &format!("quota_id={other}")).await;
    assert_eq!(types(&of_one), BOTH);
    assert_eq!(of_one["events"][0]["quota_id"], other);
    assert_eq!(types(&list(&server, "event_type=QUOTA_EXCEEDED").await), [BOTH[1]; 2]);
    // The cursor advances to the end even if no event matches.
    assert_eq!(list(&server, "quota_id=quota_none").await["next"], after);
}

#[tokio::test]
async fn all_invalid_parameters_are_reported_at_once() {
    let server = Server::start(&[]).await;
    let query = "after=x&limit=0&event_type=QUOTA_GONE&quota_id=%20";
    let reply = server.admin("GET", &format!("{EVENTS}?{query}"), "").await;
    assert_eq!(reply.status, 400);
    let error = &reply.json()["error"];
    assert_eq!(error["code"], "SYS_QUOTA_VALIDATION_ERROR");
    let details = error["details"].as_array().unwrap();
    let fields: Vec<_> = details.iter().map(|detail| detail["field"].as_str().unwrap()).collect();
    assert_eq!(fields, ["after", "quota_id", "event_type", "limit"]);
    for query in ["after=-1", "limit=101", "limit=many"] {
        let reply = server.admin("GET", &format!("{EVENTS}?{query}"), "").await;
        assert_eq!(reply.status, 400, "{query}");
    }
    assert_eq!(server.get(EVENTS).await.status, 401);
}
