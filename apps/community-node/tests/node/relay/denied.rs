//! Whom the operator denies, on the relay.

use headgate::Clock as _;
use headgate_quota::Author;
use headgate_service_config::DenyUpdate;
use nostr_sdk::Keys;
use serde_json::{Value, json};

use super::{
    harness::{Running, Start, note},
    wire::Wire,
};

const DENIED: &str = "blocked: access is denied by the operator";

/// Writes an entry as another node would, and waits until this one has found it.
pub(crate) async fn deny(node: &Running, subject: &str) {
    let update =
        DenyUpdate { subject: subject.to_owned(), reason: "spam".to_owned(), expires_at: None };
    let author =
        Author { actor: "admin".to_owned(), request_id: "1".to_owned(), at: node.clock.now() };
    node.node.database.denylist().put(&update, &author).await.unwrap();
    let loaded = node.node.database.denylist().load().await.unwrap().entries.len();
    node.counted(&format!("denylist_entries {loaded}")).await;
}

#[tokio::test]
async fn an_open_connection_of_a_denied_address_is_let_go_and_no_other_is_opened() {
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
async fn a_denied_key_neither_publishes_nor_signs_in_nor_stays() {
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
