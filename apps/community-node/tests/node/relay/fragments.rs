//! One message in many frames.

use nostr_sdk::{JsonUtil as _, Keys};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{
    Message,
    protocol::frame::{
        Frame,
        coding::{Data, OpCode},
    },
};

use super::{
    harness::{Running, note},
    wire::Wire,
};

/// Sends a message in this number of frames.
async fn send(wire: &mut Wire, text: &str, frames: usize) {
    let size = text.len().div_ceil(frames).max(1);
    let mut pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
    pieces.resize(frames, &[]);
    for (n, piece) in pieces.into_iter().enumerate() {
        let kind = if n == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(piece.to_vec(), OpCode::Data(kind), n + 1 == frames);
        wire.feed(Message::Frame(frame)).await;
    }
    wire.flush().await;
}

#[tokio::test]
async fn a_message_in_several_frames_is_accepted_and_each_frame_counts() {
    let limits = json!({"rate_limit": {"ws": {"reqs_per_minute": 10, "invalid_by_ip": 5}}});
    let node = Running::on(limits).await;
    let mut wire = Wire::open(&node).await;
    let ask = json!(["REQ", "s", {"#t": ["rust"]}]).to_string();
    // 15 other frames a minute: the first message takes 10, the second one too many.
    send(&mut wire, &ask, 11).await;
    assert_eq!(wire.next().await, json!(["EOSE", "s"]));
    send(&mut wire, &ask, 7).await;
    let closed = wire.expect("CLOSED").await;
    assert_eq!(closed[1], "s");
    assert!(closed[2].as_str().unwrap().starts_with("rate-limited: retry in "), "{closed}");
    assert_eq!(wire.next().await, json!(["NOTICE", closed[2]]));
    node.counted(r#"ingest_rejected_total{kind="other",reason="ratelimit",service="relay"} 1"#)
        .await;
    // A message in one frame has the budget of its kind.
    assert!(wire.ask("t", json!({"#t": ["rust"]})).await.is_empty());
}

#[tokio::test]
async fn a_message_in_too_many_frames_is_refused_by_its_id_or_else_by_a_notice() {
    let limits = json!({"rate_limit": {"ws": {"reqs_per_minute": 1, "invalid_by_ip": 5}}});
    let node = Running::on(limits).await;
    let mut wire = Wire::open(&node).await;
    let event = note(&Keys::generate(), "rust", "hello", node.now());
    let is_limited = |reason: &Value| reason.as_str().unwrap().starts_with("rate-limited: retry");
    // Six other frames a minute.
    send(&mut wire, &format!(r#"["EVENT",{}]"#, event.as_json()), 8).await;
    let refused = wire.expect("OK").await;
    assert_eq!((&refused[1], &refused[2]), (&json!(event.id), &json!(false)));
    assert!(is_limited(&refused[3]), "{refused}");
    send(&mut wire, &format!(r#"["AUTH",{}]"#, event.as_json()), 8).await;
    let refused = wire.expect("OK").await;
    assert_eq!((&refused[1], &refused[2]), (&json!(event.id), &json!(false)));
    for nameless in [r#"["CLOSE","s"]"#, r#"["EVENT",{}]"#, "nonsense"] {
        send(&mut wire, nameless, 8).await;
        let notice = wire.expect("NOTICE").await;
        assert!(is_limited(&notice[1]), "{notice}");
    }
    // As a single frame it is within its budget.
    assert_eq!(wire.publish(&event).await[2], true);
}

#[tokio::test]
async fn a_message_in_thousands_of_frames_ends_the_connection() {
    let node = Running::on(json!({})).await;
    let mut wire = Wire::open(&node).await;
    send(&mut wire, "[]", 2_048 + 1_400).await;
    assert_eq!(wire.next().await, Value::Null);
    node.counted("ws_connections 0").await;
}
