//! Clients and authors that the operator denies.

use nostr_sdk::Keys;
use serde_json::{Value, json};

use super::{
    harness::{Running, Start, note, put_denied},
    wire::Wire,
};

const DENIED: &str = "blocked: access is denied by the operator";

/// Writes an entry like another node, and waits until this one applies it.
pub(crate) async fn deny(node: &Running, subject: &str) {
    put_denied(&node.node, subject).await;
    let loaded = node.node.database.denylist().load().await.unwrap().entries.len();
    node.counted(&format!("denylist_entries {loaded}")).await;
}

#[tokio::test]
async fn connections_of_a_denied_address_are_closed_and_refused() {
    let start = Start::new().variable("CN_TRUSTED_PROXIES", "127.0.0.1");
    let node = start.on(json!({})).await;
    let open =
        async |address: &str| Wire::try_open(node.address, &[("x-forwarded-for", address)]).await;
    let mut denied = open("203.0.113.7").await.ok().unwrap();
    let mut other = open("198.51.100.7").await.ok().unwrap();
    denied.ask("s", json!({"#t": ["rust"]})).await;

    deny(&node, "203.0.113.0/24").await;
    assert_eq!(denied.next().await, json!(["NOTICE", DENIED]));
    assert_eq!(denied.next().await, Value::Null);
    let refused = open("203.0.113.99").await.err().unwrap();
    assert_eq!(refused.status(), 403);
    assert!(other.ask("s", json!({"#t": ["rust"]})).await.is_empty());
    node.counted(r#"ingest_rejected_total{kind="conn",reason="denied",service="relay"} 2"#).await;
}

#[tokio::test]
async fn a_denied_key_cannot_publish_authenticate_or_stay_connected() {
    let node = Running::on(json!({})).await;
    let (keys, other) = (Keys::generate(), Keys::generate());
    let mut signed_in = Wire::open(&node).await;
    let challenge = signed_in.sign(&node, &keys, "").await[1].as_str().unwrap().to_owned();
    signed_in.expect("OK").await;
    assert_eq!(signed_in.sign(&node, &keys, &challenge).await[2], true);

    deny(&node, &keys.public_key().to_hex()).await;
    assert_eq!(signed_in.next().await, json!(["NOTICE", DENIED]));
    assert_eq!(signed_in.next().await, Value::Null);

    let mut wire = Wire::open(&node).await;
    let event = note(&keys, "rust", "hello", node.now());
    assert_eq!(wire.publish(&event).await, json!(["OK", event.id, false, DENIED]));
    let allowed = note(&other, "rust", "hello", node.now());
    assert_eq!(wire.publish(&allowed).await[2], true);
    let challenge = wire.sign(&node, &keys, "").await[1].as_str().unwrap().to_owned();
    wire.expect("OK").await;
    let refused = wire.sign(&node, &keys, &challenge).await;
    assert_eq!((&refused[2], &refused[3]), (&json!(false), &json!(DENIED)));
    assert_eq!(wire.next().await, Value::Null);
}

#[tokio::test]
async fn earlier_events_of_a_denied_author_are_not_shown() {
    let node = Running::on(json!({})).await;
    let (keys, other) = (Keys::generate(), Keys::generate());
    let mut wire = Wire::open(&node).await;
    let allowed = note(&other, "rust", "hello", node.now() - 60);
    assert_eq!(wire.publish(&allowed).await[2], true);
    for n in 0..3 {
        let event = note(&keys, "rust", &format!("spam {n}"), node.now());
        assert_eq!(wire.publish(&event).await[2], true);
    }
    assert_eq!(wire.ask("all", json!({"#t": ["rust"]})).await.len(), 4);

    deny(&node, &keys.public_key().to_hex()).await;
    assert_eq!(wire.ask("all", json!({"#t": ["rust"]})).await, [json!(allowed)]);
    let newest = wire.ask("newest", json!({"#t": ["rust"], "limit": 1})).await;
    assert_eq!(newest, [json!(allowed)], "hidden events do not count towards the limit");
}
