//! Stored events and new ones.

use nostr_sdk::{EventBuilder, Keys, Kind, Tag, Timestamp as At};
use serde_json::json;

use super::{
    harness::{Running, note},
    wire::Wire,
};

#[tokio::test]
async fn stored_events_come_newest_first_then_eose_then_new_events() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut writer = Wire::open(&node).await;
    for age in [20, 0, 10, 30] {
        writer.publish(&note(&keys, "rust", &format!("{age} s old"), node.now() - age)).await;
    }
    writer.publish(&note(&keys, "wasm", "something else", node.now())).await;

    let mut reader = Wire::open(&node).await;
    let kept = reader.ask("s", json!({"#t": ["rust"]})).await;
    let contents: Vec<_> = kept.iter().map(|event| event["content"].as_str().unwrap()).collect();
    assert_eq!(contents, ["0 s old", "10 s old", "20 s old", "30 s old"]);

    writer.publish(&note(&keys, "wasm", "not asked for", node.now())).await;
    let new = note(&keys, "rust", "new", node.now());
    writer.publish(&new).await;
    let told = reader.next().await;
    assert_eq!(told, json!(["EVENT", "s", new]));

    reader.send(json!(["CLOSE", "s"])).await;
    assert!(reader.ask("other", json!({"#t": ["none"]})).await.is_empty());
    writer.publish(&note(&keys, "rust", "nobody listens", node.now())).await;
    let other = note(&keys, "none", "somebody listens", node.now());
    writer.publish(&other).await;
    assert_eq!(reader.next().await, json!(["EVENT", "other", other]));
}

#[tokio::test]
async fn a_duplicate_event_is_not_broadcast_again() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let (mut writer, mut reader) = (Wire::open(&node).await, Wire::open(&node).await);
    reader.ask("s", json!({"#t": ["rust"]})).await;
    let (first, second) =
        (note(&keys, "rust", "1", node.now()), note(&keys, "rust", "2", node.now()));
    assert_eq!(writer.publish(&first).await, json!(["OK", first.id, true, ""]));
    assert_eq!(
        writer.publish(&first).await,
        json!(["OK", first.id, true, "duplicate: already have this event"])
    );
    assert_eq!(writer.publish(&second).await, json!(["OK", second.id, true, ""]));
    assert_eq!(reader.next().await[2]["id"], json!(first.id));
    assert_eq!(reader.next().await[2]["id"], json!(second.id));
}

#[tokio::test]
async fn each_event_is_delivered_once_whether_stored_or_new() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut writer = Wire::open(&node).await;
    let events: Vec<_> = (0..60).map(|n| note(&keys, "rust", &n.to_string(), node.now())).collect();
    let (address, sent) = (node.address, events.clone());
    // A subscriber arrives while events are published.
    let reading = tokio::spawn(async move {
        let mut reader = Wire::try_open(address, &[]).await.unwrap_or_else(|_| panic!("admitted"));
        let mut found = reader.ask("s", json!({"#t": ["rust"]})).await;
        while found.len() < sent.len() {
            found.push(reader.next().await[2].clone());
        }
        found
    });
    for event in &events {
        writer.publish(event).await;
    }
    let mut found: Vec<String> = reading
        .await
        .unwrap()
        .iter()
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect();
    found.sort();
    let mut expected: Vec<String> = events.iter().map(|event| event.id.to_hex()).collect();
    expected.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_ephemeral_event_is_broadcast_and_not_stored() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let (mut writer, mut reader) = (Wire::open(&node).await, Wire::open(&node).await);
    reader.ask("s", json!({"#t": ["rust"]})).await;
    let builder = EventBuilder::new(Kind::Custom(20_001), "typing").tag(Tag::hashtag("rust"));
    let builder = builder.custom_created_at(At::from_secs(node.now()));
    let event = builder.sign_with_keys(&keys).unwrap();
    assert_eq!(writer.publish(&event).await[2], true);
    assert_eq!(reader.next().await, json!(["EVENT", "s", event]));
    assert!(writer.ask("s", json!({"#t": ["rust"]})).await.is_empty());
}

#[tokio::test]
async fn a_connection_is_closed_when_the_node_stops() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    node.stop().await;
    assert!(wire.next().await.is_null());
}
