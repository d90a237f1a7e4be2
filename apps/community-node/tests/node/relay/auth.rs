//! Authentication of clients.

use std::time::Duration;

use nostr_sdk::{EventBuilder, JsonUtil as _, Keys, RelayUrl};
use serde_json::{Value, json};

use super::{
    harness::{Running, Start, note},
    wire::Wire,
};

fn required(more: &Value) -> Value {
    let mut auth = json!({"mode": "required", "grace_seconds": 900, "ws_auth_timeout_seconds": 10});
    for (name, value) in more.as_object().unwrap() {
        auth[name] = value.clone();
    }
    json!({"auth": auth})
}

async fn challenged(wire: &mut Wire) -> String {
    wire.expect("AUTH").await[1].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn nobody_is_asked_while_that_is_off_or_not_yet_enforced() {
    for document in [json!({}), required(&json!({"enforce_at": 4_000_000_000_u64}))] {
        let node = Running::on(document).await;
        let mut wire = Wire::open(&node).await;
        let event = note(&Keys::generate(), "rust", "1", node.now());
        assert_eq!(wire.publish(&event).await, json!(["OK", event.id, true, ""]));
        assert_eq!(wire.ask("s", json!({"#t": ["rust"]})).await.len(), 1);
    }
}

#[tokio::test]
async fn whoever_signs_in_though_nobody_has_to_is_answered() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let challenge = wire.sign(&node, &keys, "anything").await;
    assert_eq!(challenge[0], "AUTH", "{challenge}");
    let refused = wire.expect("OK").await;
    let reason = "auth-required: sign the challenge that was sent just now";
    assert_eq!((&refused[2], &refused[3]), (&json!(false), &json!(reason)));
    let challenge = challenge[1].as_str().unwrap();
    assert_eq!(wire.sign(&node, &keys, challenge).await[2], true);
    node.counted("auth_success_total{service=\"relay\"} 1").await;
    node.counted("ws_unauthenticated_connections 0").await;
}

#[tokio::test]
async fn an_unauthenticated_client_can_do_nothing() {
    let node = Running::on(required(&json!({}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let challenge = challenged(&mut wire).await;
    let event = note(&keys, "rust", "1", node.now());
    assert_eq!(
        wire.publish(&event).await,
        json!(["OK", event.id, false, "auth-required: missing auth"])
    );
    wire.send(json!(["REQ", "s", {"#t": ["rust"]}])).await;
    assert_eq!(wire.next().await, json!(["CLOSED", "s", "auth-required: missing auth"]));
    node.counted("ws_unauthenticated_connections 1").await;

    assert_eq!(wire.sign(&node, &keys, &challenge).await[2], true);
    assert_eq!(wire.publish(&event).await, json!(["OK", event.id, true, ""]));
    assert_eq!(wire.ask("s", json!({"#t": ["rust"]})).await.len(), 1);
    node.counted("ws_unauthenticated_connections 0").await;
    node.counted("ws_connections 1").await;
    node.counted(r#"ingest_rejected_total{kind="event",reason="auth",service="relay"} 1"#).await;
    node.counted(r#"ingest_rejected_total{kind="req",reason="auth",service="relay"} 1"#).await;
}

#[tokio::test]
async fn a_new_connection_must_authenticate_before_the_timeout() {
    let node = Running::on(required(&json!({}))).await;
    let keys = Keys::generate();
    let (mut silent, mut quick) = (Wire::open(&node).await, Wire::open(&node).await);
    challenged(&mut silent).await;
    let challenge = challenged(&mut quick).await;
    assert_eq!(quick.sign(&node, &keys, &challenge).await[2], true);
    node.clock.advance(Duration::from_secs(10));
    assert_eq!(silent.next().await, json!(["NOTICE", "auth-required: timeout"]));
    assert_eq!(silent.next().await, Value::Null, "the connection is closed");
    node.counted("ws_auth_disconnect_total{reason=\"timeout\"} 1").await;
    node.counted("ws_connections 1").await;
    assert!(quick.ask("s", json!({"#t": ["rust"]})).await.is_empty(), "the other connection stays");
}

#[tokio::test]
async fn an_older_connection_must_authenticate_before_the_grace_period_ends() {
    let mut node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    wire.ask("before", json!({"#t": ["rust"]})).await;
    let enforce_at = node.now() + 60;
    node.put(required(&json!({"enforce_at": enforce_at})));
    let event = note(&Keys::generate(), "rust", "1", node.now());
    assert_eq!(wire.publish(&event).await[2], true, "not yet enforced");
    wire.expect("EVENT").await;

    node.clock.advance(Duration::from_secs(60));
    challenged(&mut wire).await;
    assert_eq!(wire.publish(&event).await[3], "auth-required: missing auth");
    // Far beyond the timeout of new connections.
    node.clock.advance(Duration::from_secs(899));
    let mut new = Wire::open(&node).await;
    challenged(&mut new).await;
    assert_eq!(
        wire.publish(&event).await[3],
        "auth-required: missing auth",
        "it is still connected"
    );

    node.clock.advance(Duration::from_secs(1));
    assert_eq!(wire.next().await, json!(["NOTICE", "auth-required: deadline reached"]));
    assert_eq!(wire.next().await, Value::Null);
    node.counted("ws_auth_disconnect_total{reason=\"deadline\"} 1").await;
    assert_eq!(
        new.publish(&event).await[3],
        "auth-required: missing auth",
        "its timeout is not over"
    );
    node.clock.advance(Duration::from_secs(9));
    assert_eq!(new.next().await, json!(["NOTICE", "auth-required: timeout"]));
}

#[tokio::test]
async fn a_client_with_a_challenge_is_sent_it_again_when_authentication_is_required() {
    let mut node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let given = wire.sign(&node, &keys, "anything").await;
    wire.expect("OK").await;
    node.put(required(&json!({})));
    let asked = wire.expect("AUTH").await;
    assert_eq!(asked, given, "the challenge stays the same");
    assert_eq!(wire.sign(&node, &keys, asked[1].as_str().unwrap()).await[2], true);
}

#[tokio::test]
async fn a_client_that_authenticates_within_the_grace_period_stays() {
    let mut node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    let enforce_at = node.now() + 1;
    node.put(required(&json!({"enforce_at": enforce_at})));
    node.clock.advance(Duration::from_secs(1));
    let challenge = challenged(&mut wire).await;
    assert_eq!(wire.sign(&node, &keys, &challenge).await[2], true);
    node.clock.advance(Duration::from_secs(500));
    assert!(wire.ask("t", json!({"#t": ["rust"]})).await.is_empty());
    node.counted("ws_unauthenticated_connections 0").await;
}

#[tokio::test]
async fn a_signature_for_another_relay_or_challenge_is_refused() {
    let node = Running::on(required(&json!({}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let challenge = challenged(&mut wire).await;
    let other = "invalid: challenge or relay is not this one";
    assert_eq!(wire.sign(&node, &keys, "another").await[3], other);
    wire.send(json!(["AUTH", "x"])).await;
    assert_eq!(wire.next().await, json!(["NOTICE", "invalid: not an authentication event"]));
    node.clock.advance(Duration::from_secs(5));
    let event = note(&keys, "rust", "1", node.now());
    assert_eq!(wire.publish(&event).await[2], false, "it is still unauthenticated");
    assert_eq!(wire.sign(&node, &keys, &challenge).await[2], true);
    node.counted("auth_failure_total{service=\"relay\"} 2").await;
}

#[tokio::test]
async fn a_signature_must_be_for_the_public_url() {
    let called = "wss://node.example/relay";
    let start = Start::new().variable("CN_PUBLIC_URL", called);
    let node = start.on(required(&json!({}))).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let challenge = challenged(&mut wire).await;
    let refused = wire.sign(&node, &keys, &challenge).await;
    assert_eq!(refused[3], "invalid: challenge or relay is not this one");
    let auth = EventBuilder::auth(&challenge, RelayUrl::parse(called).unwrap());
    let auth = auth.sign_with_keys(&keys).unwrap();
    wire.send_text(&format!(r#"["AUTH",{}]"#, auth.as_json())).await;
    assert_eq!(wire.next().await, json!(["OK", auth.id, true, ""]));
}
