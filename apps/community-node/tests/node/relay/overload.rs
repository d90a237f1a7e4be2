//! Clients that ignore denials.

use std::time::Duration;

use headgate_community_node::relay::Timing;
use nostr_sdk::{JsonUtil as _, Keys};
use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::{
    harness::{Running, Start, note},
    limits::{about, few, until_taken, waits, ws},
    wire::Wire,
};

#[tokio::test]
async fn a_flood_of_one_kind_does_not_limit_other_kinds_of_its_address() {
    let mut node = Running::on(few()).await;
    let keys = Keys::generate();
    let (mut loud, mut quiet) = (Wire::open(&node).await, Wire::open(&node).await);
    quiet.ask("s", about("rust")).await;
    for n in 0..50 {
        loud.publish(&note(&keys, "wasm", &n.to_string(), node.now())).await;
    }
    let event = note(&keys, "rust", "1", node.now());
    assert!(waits(&quiet.publish(&event).await), "they share an address");
    quiet.ask("t", about("rust")).await;
    node.put(ws(&json!({})));
    until_taken(&mut loud, &event, &json!(true)).await;
    assert_eq!(quiet.expect("EVENT").await[2]["id"], json!(event.id), "it is still connected");
}

#[tokio::test]
async fn a_client_that_ignores_denials_is_dropped_unread_and_stays_connected() {
    let mut node = Running::on(few()).await;
    let event = note(&Keys::generate(), "rust", "hello", node.now());
    let mut wire = Wire::open(&node).await;
    let frame = format!(r#"["EVENT",{}]"#, event.as_json());
    for _ in 0..203 {
        wire.send_text(&frame).await;
    }
    for n in 0..123 {
        let answer = wire.expect("OK").await;
        assert_eq!(answer[2], n < 3, "{answer}");
    }
    let last_word = "rate-limited: too many frames that have to wait: more are dropped";
    assert_eq!(wire.next().await, json!(["NOTICE", last_word]));
    assert_eq!(wire.ask("s", about("rust")).await.len(), 1, "no further answers about events");
    node.counted(r#"ingest_rejected_total{kind="event",reason="ratelimit",service="relay"} 200"#)
        .await;
    node.clock.advance(Duration::from_secs(60));
    assert_eq!(wire.publish(&event).await[2], true, "a new minute");
    node.put(ws(&json!({})));
    until_taken(&mut wire, &event, &json!(true)).await;

    let node = Running::on(few()).await;
    let mut wire = Wire::open(&node).await;
    for _ in 0..203 {
        wire.send(json!(["REQ", "s", about("none")])).await;
    }
    for n in 0..123 {
        wire.expect(if n < 3 { "EOSE" } else { "CLOSED" }).await;
        if n >= 3 {
            wire.expect("NOTICE").await;
        }
    }
    assert_eq!(wire.next().await, json!(["NOTICE", last_word]));
    assert_eq!(wire.publish(&event).await[2], true, "no further answers about subscriptions");
}

#[tokio::test]
async fn too_many_closes_are_denied_but_not_invalid() {
    let node = Running::on(ws(&json!({"reqs_per_minute": 1, "invalid_by_ip": 1}))).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("s", about("rust")).await;
    for n in 0..10 {
        wire.send(json!(["CLOSE", "s"])).await;
        if n >= 2 {
            assert!(waits(&wire.expect("NOTICE").await));
        }
    }
    node.counted(r#"ingest_rejected_total{kind="other",reason="ratelimit",service="relay"} 8"#)
        .await;
    let event = note(&Keys::generate(), "rust", "1", node.now());
    assert_eq!(wire.publish(&event).await[2], true);
}

#[tokio::test]
async fn pongs_to_our_pings_are_not_counted() {
    let start = Start::new().timing(|timing| Timing { ping: Duration::from_millis(20), ..timing });
    let node = start.on(ws(&json!({"reqs_per_minute": 1, "invalid_by_ip": 1}))).await;
    let mut wire = Wire::open(&node).await;
    for _ in 0..10 {
        wire.pinged().await;
    }
    let event = note(&Keys::generate(), "rust", "1", node.now());
    assert_eq!(wire.publish(&event).await[2], true, "no answers about pongs");
    // Unsolicited pongs are counted.
    for _ in 0..100 {
        wire.send_message(Message::Pong(Vec::new().into())).await;
    }
    assert!(waits(&wire.expect("NOTICE").await));
}
