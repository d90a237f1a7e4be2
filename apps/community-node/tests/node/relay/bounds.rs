//! Bounds of frames, and answers to invalid ones.

use headgate_community_node::relay::Bounds;
use nostr_sdk::{EventBuilder, Keys, Kind, Tag, Timestamp as At};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{
    harness::{Running, Start, note},
    wire::Wire,
};

const DAY: u64 = 86_400;

async fn notice(wire: &mut Wire, frame: Value) -> String {
    wire.send(frame).await;
    wire.expect("NOTICE").await[1].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_subscription_out_of_bounds_is_closed_and_not_counted_as_invalid() {
    // One invalid frame ends the connection.
    let node = Running::on(json!({"rate_limit": {"ws": {"invalid_by_ip": 1}}})).await;
    let now = node.now();
    let mut wire = Wire::open(&node).await;
    let values: Vec<String> = (0..201).map(|n| format!("t{n}")).collect();
    let one = json!({"#t": ["rust"]});
    let eleven = vec![one.clone(); 11];
    let cases = [
        (vec![], "invalid: at least one filter is required"),
        (vec![json!(7)], "invalid: not a filter"),
        (vec![json!({"kinds": [1]})], "invalid: a #t filter is required"),
        (vec![one.clone(), json!({"kinds": [1]})], "invalid: a #t filter is required"),
        (eleven, "invalid: more than 10 filters"),
        (vec![json!({"#t": values})], "invalid: a filter has more than 200 values"),
        (
            vec![json!({"#t": ["a"], "since": now, "until": now - 1})],
            "invalid: since is after until",
        ),
        (
            vec![json!({"#t": ["a"], "since": now - 31 * DAY})],
            "invalid: since is more than 30 days ago",
        ),
        (
            vec![json!({"#t": ["a"], "since": now - 8 * DAY})],
            "invalid: more than 7 days between since and until",
        ),
    ];
    let count = cases.len();
    for (filters, reason) in cases {
        let mut frame = vec![json!("REQ"), json!("s")];
        frame.extend(filters);
        wire.send(Value::Array(frame)).await;
        assert_eq!(wire.next().await, json!(["CLOSED", "s", reason]));
        assert_eq!(wire.next().await, json!(["NOTICE", reason]));
    }
    assert!(wire.ask("s", one).await.is_empty(), "the connection still works");
    let labels = r#"kind="req",reason="invalid",service="relay""#;
    node.counted(&format!("ingest_rejected_total{{{labels}}} {count}")).await;
}

#[tokio::test]
async fn replacing_a_subscription_by_an_invalid_one_closes_it() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;
    wire.send(json!(["REQ", "s", {"kinds": [1]}])).await;
    wire.expect("CLOSED").await;
    wire.expect("NOTICE").await;
    let event = note(&keys, "rust", "nobody listens", node.now());
    assert_eq!(wire.publish(&event).await, json!(["OK", event.id, true, ""]));
}

#[tokio::test]
async fn invalid_frames_are_answered_with_the_reason_and_the_connection_stays() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    let one = json!({"#t": ["rust"]});
    let cases = [
        (json!(["REQ"]), "invalid: a subscription id of 1 to 64 bytes is required"),
        (json!(["REQ", "", one]), "invalid: a subscription id of 1 to 64 bytes is required"),
        (
            json!(["REQ", "x".repeat(65), one]),
            "invalid: a subscription id of 1 to 64 bytes is required",
        ),
        (json!(["CLOSE"]), "invalid: a subscription id of 1 to 64 bytes is required"),
        (json!(["COUNT", "s", one]), "unsupported: message type"),
        (json!({"REQ": "s"}), "invalid: not an array that begins with a message type"),
        (json!(["EVENT"]), "invalid: not an event"),
        (json!(["EVENT", {"kind": 1}]), "invalid: not an event"),
    ];
    for (frame, reason) in cases {
        assert_eq!(notice(&mut wire, frame.clone()).await, reason, "{frame}");
    }
    wire.send_message(Message::binary(vec![1, 2, 3])).await;
    assert_eq!(wire.next().await, json!(["NOTICE", "unsupported: binary message"]));
    assert!(wire.ask("s", one).await.is_empty(), "the connection still works");
}

#[tokio::test]
async fn an_event_out_of_bounds_is_refused_by_its_id() {
    let node = Running::on(json!({"limits": {"max_event_bytes": 2_000, "max_tags": 3}})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let tagged = |topics: &[&str]| {
        let tags = topics.iter().map(|topic| Tag::hashtag(*topic));
        EventBuilder::text_note("hello").tags(tags).sign_with_keys(&keys).unwrap()
    };
    let auth = EventBuilder::new(Kind::Authentication, "").tag(Tag::hashtag("rust"));
    let mut forged = note(&keys, "rust", "hello", node.now());
    forged.content = "hullo".to_owned();
    let cases = [
        (
            note(&keys, "rust", &"x".repeat(2_000), node.now()),
            "invalid: event is larger than 2000 bytes",
        ),
        (tagged(&["a", "b", "c", "d"]), "invalid: event has more than 3 tags"),
        (tagged(&[]), "invalid: event names no topic: a t tag is required"),
        (
            note(&keys, "rust", "", node.now() + 3_600),
            "invalid: created_at is too far in the future",
        ),
        (
            note(&keys, "rust", "", node.now() - 31 * DAY),
            "invalid: created_at is more than 30 days ago",
        ),
        (auth.sign_with_keys(&keys).unwrap(), "invalid: an authentication event belongs into AUTH"),
        (forged, "invalid: id or signature does not match the event"),
    ];
    for (event, reason) in cases {
        assert_eq!(wire.publish(&event).await, json!(["OK", event.id, false, reason]));
    }
    assert_eq!(wire.publish(&tagged(&["a", "b", "c"])).await[2], true);
    node.counted(r#"ingest_rejected_total{kind="event",reason="invalid",service="relay"} 7"#).await;
}

#[tokio::test]
async fn a_frame_larger_than_any_event_ends_the_connection() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    wire.send_text(&" ".repeat(32_768 + 65_536 + 1)).await;
    assert_eq!(wire.next().await, Value::Null);
    node.counted("ws_connections 0").await;
}

#[tokio::test]
async fn a_connection_has_a_bounded_number_of_subscriptions() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    for n in 0..20 {
        wire.ask(&format!("s{n}"), json!({"#t": ["rust"]})).await;
    }
    wire.send(json!(["REQ", "one more", {"#t": ["rust"]}])).await;
    assert_eq!(
        wire.next().await,
        json!(["CLOSED", "one more", "restricted: too many subscriptions"])
    );
    wire.ask("s0", json!({"#t": ["wasm"]})).await;
    wire.send(json!(["CLOSE", "s1"])).await;
    wire.ask("one more", json!({"#t": ["rust"]})).await;
}

#[tokio::test]
async fn a_subscription_that_is_too_large_by_itself_is_refused_as_such() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    let values: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    let filter = json!({"#t": values, "#e": values, "#p": values, "#a": values});
    let mut request = vec![json!("REQ"), json!("large")];
    request.extend(vec![filter; 10]);
    wire.send(Value::Array(request)).await;
    let reason = "restricted: the subscription takes more than 256 KiB of memory";
    assert_eq!(wire.next().await, json!(["CLOSED", "large", reason]));
    wire.ask("small", json!({"#t": ["rust"]})).await;
}

#[tokio::test]
async fn the_memory_of_all_subscriptions_is_bounded() {
    let start =
        Start::new().bounds(Bounds { max_subscription_bytes: 100_000, ..Bounds::default() });
    let node = start.on(json!({})).await;
    let values: Vec<String> = (0..200).map(|n| format!("topic {n}")).collect();
    let large = json!({"#t": values});
    let mut wires = [Wire::open(&node).await, Wire::open(&node).await];
    let mut opened = 0;
    let refused = loop {
        let name = format!("s{opened}");
        wires[0].send(json!(["REQ", name, large])).await;
        let answer = wires[0].next().await;
        if answer[0] == "CLOSED" {
            break answer;
        }
        assert_eq!(answer, json!(["EOSE", name]));
        opened += 1;
    };
    let reason = "error: the relay has too many subscriptions, try again later";
    assert_eq!(refused, json!(["CLOSED", format!("s{opened}"), reason]));
    wires[1].send(json!(["REQ", "other", large])).await;
    assert_eq!(wires[1].next().await, json!(["CLOSED", "other", reason]));
    // One takes the place of another, by its name or after it was closed.
    assert!(opened >= 2, "{opened}");
    wires[0].ask("s0", large.clone()).await;
    wires[0].send(json!(["CLOSE", "s0"])).await;
    wires[0].ask("s1", large.clone()).await;
    wires[1].ask("other", large).await;
    drop(wires);
    node.counted("ws_subscription_bytes 0").await;
}

#[tokio::test]
async fn no_more_events_are_sent_than_the_limit() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    for n in 0..5 {
        let event = EventBuilder::text_note(n.to_string()).tag(Tag::hashtag("rust"));
        let event = event.custom_created_at(At::from_secs(node.now() - n));
        wire.publish(&event.sign_with_keys(&keys).unwrap()).await;
    }
    assert_eq!(wire.ask("a", json!({"#t": ["rust"], "limit": 2})).await.len(), 2);
    assert!(wire.ask("b", json!({"#t": ["rust"], "limit": 0})).await.is_empty(), "only new events");
    assert_eq!(wire.ask("c", json!({"#t": ["rust"], "limit": 9_999})).await.len(), 5);
}
