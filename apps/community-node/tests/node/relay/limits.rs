//! Rate limits of clients.

use nostr_sdk::Keys;
use serde_json::{Value, json};

use super::{
    harness::{Running, note},
    wire::Wire,
};

pub(super) fn ws(limits: &Value) -> Value {
    json!({"rate_limit": {"ws": limits}})
}

pub(super) fn about(topic: &str) -> Value {
    json!({"#t": [topic]})
}

/// Returns true if a frame is a rate-limit refusal.
pub(super) fn waits(frame: &Value) -> bool {
    let reason = frame.as_array().and_then(|frame| frame.last()).and_then(Value::as_str);
    reason.is_some_and(|reason| reason.starts_with("rate-limited: "))
}

#[tokio::test]
async fn one_event_a_minute() {
    let node = Running::on(ws(&json!({"events_per_minute": 1}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let [first, second] = ["1", "2"].map(|text| note(&keys, "rust", text, node.now()));
    assert_eq!(wire.publish(&first).await, json!(["OK", first.id, true, ""]));
    let refused = wire.publish(&second).await;
    assert_eq!((&refused[1], &refused[2]), (&json!(second.id), &json!(false)), "{refused}");
    assert!(waits(&refused), "{refused}");
    // A refused event is not stored.
    let kept = wire.ask("all", about("rust")).await;
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0]["id"], json!(first.id));
}

#[tokio::test]
async fn one_subscription_a_minute() {
    let node = Running::on(ws(&json!({"reqs_per_minute": 1}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    assert!(wire.ask("first", about("rust")).await.is_empty());
    wire.send(json!(["REQ", "second", about("rust")])).await;
    let closed = wire.next().await;
    assert_eq!((&closed[0], &closed[1]), (&json!("CLOSED"), &json!("second")));
    assert!(waits(&closed), "{closed}");
    let notice = wire.expect("NOTICE").await;
    assert!(waits(&notice), "{notice}");
    // It was not opened: only the first subscription receives events.
    let event = note(&keys, "rust", "1", node.now());
    wire.publish(&event).await;
    assert_eq!(wire.next().await[1], "first");
    wire.send(json!(["CLOSE", "first"])).await;
    let other = note(&keys, "rust", "2", node.now());
    assert_eq!(wire.publish(&other).await[0], "OK", "and no subscription receives it");
}

/// Low limits, and the default limit of invalid frames.
pub(super) fn few() -> Value {
    ws(&json!({"events_per_minute": 3, "reqs_per_minute": 3, "invalid_by_ip": 30}))
}

#[tokio::test]
async fn events_and_subscriptions_do_not_slow_each_other() {
    let node = Running::on(few()).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    for n in 0..50 {
        let answer = wire.publish(&note(&keys, "rust", &n.to_string(), node.now())).await;
        assert_eq!(answer[2], n < 3, "{answer}");
    }
    for n in 0..3 {
        let found = wire.ask(&format!("s{n}"), json!({"#t": ["rust"], "limit": 3})).await;
        assert_eq!(found.len(), 3);
    }

    let node = Running::on(few()).await;
    let mut wire = Wire::open(&node).await;
    for n in 0..50 {
        wire.send(json!(["REQ", "s", about("none")])).await;
        let answer = wire.next().await;
        assert_eq!(answer[0], if n < 3 { "EOSE" } else { "CLOSED" });
        if n >= 3 {
            wire.expect("NOTICE").await;
        }
    }
    for n in 0..3 {
        let answer = wire.publish(&note(&keys, "rust", &n.to_string(), node.now())).await;
        assert_eq!(answer[2], true, "{answer}");
    }
}

#[tokio::test]
async fn backfill_has_a_stricter_limit_than_new_events() {
    let node = Running::on(ws(&json!({"backfill_by_ip": 1}))).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("past", about("rust")).await;
    wire.send(json!(["REQ", "again", about("rust")])).await;
    let closed = wire.expect("CLOSED").await;
    assert!(waits(&closed) && closed[1] == "again", "{closed}");
    wire.expect("NOTICE").await;
    wire.ask("to come", json!({"#t": ["rust"], "since": node.now()})).await;
    wire.ask("only new", json!({"#t": ["rust"], "limit": 0})).await;
    node.counted(r#"ingest_rejected_total{kind="backfill",reason="ratelimit",service="relay"} 1"#)
        .await;
}

#[tokio::test]
async fn a_denied_backfill_is_not_charged_as_a_subscription() {
    let limits = json!({"reqs_per_minute": 10, "backfill_by_ip": 2, "invalid_by_ip": 30});
    let node = Running::on(ws(&limits)).await;
    let (mut wire, mut other) = (Wire::open(&node).await, Wire::open(&node).await);
    for n in 0..40 {
        wire.send(json!(["REQ", "past", about("rust")])).await;
        wire.expect(if n < 2 { "EOSE" } else { "CLOSED" }).await;
        if n >= 2 {
            wire.expect("NOTICE").await;
        }
    }
    let to_come = json!({"#t": ["rust"], "since": node.now()});
    for n in 0..7 {
        other.ask(&n.to_string(), to_come.clone()).await;
    }
    // The tenth unit is held by the connection whose backfill was denied.
    other.send(json!(["REQ", "more", to_come])).await;
    assert!(waits(&other.expect("CLOSED").await));
    wire.ask("to come", to_come.clone()).await;
    wire.send(json!(["REQ", "more", to_come])).await;
    assert!(waits(&wire.expect("CLOSED").await));
}

#[tokio::test]
async fn an_address_has_one_budget_across_connections() {
    let node = Running::on(ws(&json!({"events_per_minute": 2}))).await;
    let keys = [Keys::generate(), Keys::generate(), Keys::generate()];
    let mut taken = 0;
    for keys in &keys {
        let mut wire = Wire::open(&node).await;
        let answer = wire.publish(&note(keys, "rust", "hello", node.now())).await;
        taken += usize::from(answer[2] == true);
    }
    assert_eq!(taken, 2);
}

#[tokio::test]
async fn an_authenticated_client_is_limited_by_key_and_by_address() {
    let document = json!({
        "auth": {"mode": "required"},
        "rate_limit": {"ws": {"event_by_pubkey": 2, "event_by_ip": 3}},
    });
    let node = Running::on(document).await;
    let (alice, bob) = (Keys::generate(), Keys::generate());
    let mut by_alice = Vec::new();
    // A second connection has no new budget for the key.
    for n in 0..2 {
        let mut wire = signed_in(&node, &alice).await;
        for m in 0..2 {
            let event = note(&alice, "rust", &format!("{n}{m}"), node.now());
            by_alice.push(wire.publish(&event).await[2] == true);
        }
    }
    assert_eq!(by_alice, [true, true, false, false], "two by key");
    // Another key has no new budget for the address; denials by key were not charged to it.
    let mut wire = signed_in(&node, &bob).await;
    let mut by_bob = Vec::new();
    for n in 0..2 {
        let event = note(&bob, "rust", &n.to_string(), node.now());
        by_bob.push(wire.publish(&event).await[2] == true);
    }
    assert_eq!(by_bob, [true, false], "three by address");
}

#[tokio::test]
async fn backfill_is_limited_by_key_too() {
    let document = json!({
        "auth": {"mode": "required"}, "rate_limit": {"ws": {"backfill_by_pubkey": 1}},
    });
    let node = Running::on(document).await;
    let (alice, bob) = (Keys::generate(), Keys::generate());
    signed_in(&node, &alice).await.ask("past", about("rust")).await;
    let mut again = signed_in(&node, &alice).await;
    again.send(json!(["REQ", "again", about("rust")])).await;
    assert!(waits(&again.expect("CLOSED").await), "another connection has no new budget");
    signed_in(&node, &bob).await.ask("past", about("rust")).await;
}

async fn signed_in(node: &Running, keys: &Keys) -> Wire {
    let mut wire = Wire::open(node).await;
    let challenge = wire.expect("AUTH").await;
    let answer = wire.sign(node, keys, challenge[1].as_str().unwrap()).await;
    assert_eq!(answer[2], true, "{answer}");
    wire
}

#[tokio::test]
async fn too_many_invalid_frames_end_the_connection() {
    let node = Running::on(ws(&json!({"invalid_by_ip": 3}))).await;
    let mut wire = Wire::open(&node).await;
    for _ in 0..3 {
        wire.send_text("nonsense").await;
        let notice = wire.expect("NOTICE").await;
        assert_eq!(notice[1], "invalid: not an array that begins with a message type");
    }
    wire.send_text("nonsense").await;
    assert_eq!(wire.next().await, json!(["NOTICE", "rate-limited: too many invalid frames"]));
    assert_eq!(wire.next().await, Value::Null, "the connection is closed");
    node.counted(r#"ingest_rejected_total{kind="invalid",reason="invalid",service="relay"} 4"#)
        .await;
    node.counted(r#"ingest_rejected_total{kind="invalid",reason="ratelimit",service="relay"} 1"#)
        .await;
    // A new connection continues the count of the old one.
    let mut wire = Wire::open(&node).await;
    wire.send_text("nonsense").await;
    assert_eq!(wire.next().await[1], "rate-limited: too many invalid frames");
}

#[tokio::test]
async fn attempts_to_authenticate_are_limited() {
    let document = json!({
        "auth": {"mode": "required"}, "rate_limit": {"ws": {"invalid_by_ip": 2}},
    });
    let node = Running::on(document).await;
    let mut wire = Wire::open(&node).await;
    wire.expect("AUTH").await;
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let answer = wire.sign(&node, &Keys::generate(), "not the challenge").await;
        assert_eq!((&answer[0], &answer[2]), (&json!("OK"), &json!(false)));
        reasons.push(answer[3].as_str().unwrap().to_owned());
    }
    assert_eq!(reasons[1], "invalid: challenge or relay is not this one");
    assert!(reasons[2].starts_with("rate-limited: "), "{reasons:?}");
    node.counted(r#"ingest_rejected_total{kind="auth",reason="ratelimit",service="relay"} 1"#)
        .await;
}

#[tokio::test]
async fn a_new_document_applies_to_open_connections() {
    let mut node = Running::on(ws(&json!({"events_per_minute": 1}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let event = note(&keys, "rust", "1", node.now());
    assert_eq!(wire.publish(&event).await[2], true);
    assert_eq!(wire.publish(&event).await[2], false);
    node.put(ws(&json!({"events_per_minute": 10_000})));
    until_taken(&mut wire, &event, &json!(true)).await;
    node.put(ws(&json!({"events_per_minute": 1})));
    until_taken(&mut wire, &event, &json!(false)).await;
    node.put(json!({"rate_limit": {"enabled": false, "ws": {"events_per_minute": 1}}}));
    until_taken(&mut wire, &event, &json!(true)).await;
    for _ in 0..20 {
        assert_eq!(
            wire.publish(&event).await,
            json!(["OK", event.id, true, "duplicate: already have this event"])
        );
    }
}

/// Another task applies the document.
pub(super) async fn until_taken(wire: &mut Wire, event: &nostr_sdk::Event, taken: &Value) {
    for _ in 0..1_000 {
        if wire.publish(event).await[2] == *taken {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the document is not in force");
}

#[tokio::test]
async fn repeat_offenders_wait_longer_if_penalties_are_on() {
    let limits = |penalty: Value| json!({"rate_limit": {"ws": {"events_per_minute": 1}, "penalty": penalty}});
    let mut node = Running::on(limits(json!({"first_seconds": 100}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    assert_eq!(wire.publish(&note(&keys, "rust", "1", node.now())).await[2], true);
    let refused = wire.publish(&note(&keys, "rust", "2", node.now())).await;
    assert_eq!(refused[3], "rate-limited: retry in 100 s");
    assert!(wire.ask("s", about("rust")).await.len() == 1, "other kinds have no penalty");
    node.put(limits(Value::Null));
    let refused = wire.publish(&note(&keys, "rust", "2", node.now())).await;
    assert!(waits(&refused) && refused[3] != "rate-limited: retry in 100 s", "{refused}");
}
