//! Stored events and subscriptions stay within their memory bounds, whatever their shape.
//!
//! A separate test program, because memory is measured for the whole process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "the tests of the node need more of it")]
#[path = "node/relay/harness.rs"]
mod harness;
#[allow(dead_code, reason = "the tests of the node need more of it")]
#[path = "node/relay/wire.rs"]
mod wire;

use std::alloc::System;

use nostr_sdk::{Event, EventBuilder, JsonUtil as _, Keys, Tag, Timestamp};
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use self::{
    harness::{Running, eventually},
    wire::Wire,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bound of all stored events.
const EVENT_BYTES: usize = 128 << 20;
/// Bound of the subscriptions of one connection.
const SUBSCRIPTION_BYTES: usize = 256 << 10;
/// Buffers of sockets, and other temporary memory.
const ASIDE_BYTES: usize = 1 << 20;

/// Frames in flight.
const ON_THEIR_WAY: u64 = 20;

fn grown(region: &Region<'_, System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// An event with a short topic and a tag of very many empty strings.
fn many_texts(keys: &Keys, n: u64, at: u64) -> Event {
    let mut texts = vec![""; 10_000];
    texts[0] = "x";
    let tags = [Tag::hashtag("rust"), Tag::parse(texts).unwrap()];
    signed(keys, tags, n, at)
}

/// An event with the most topics, all of them unique.
fn many_topics(keys: &Keys, n: u64, at: u64) -> Event {
    signed(keys, (0..200).map(|topic| Tag::hashtag(format!("{n}-{topic}"))), n, at)
}

fn signed(keys: &Keys, tags: impl IntoIterator<Item = Tag>, n: u64, at: u64) -> Event {
    let builder = EventBuilder::text_note(n.to_string()).tags(tags);
    builder.custom_created_at(Timestamp::from_secs(at)).sign_with_keys(keys).unwrap()
}

#[tokio::test]
async fn stored_events_and_subscriptions_stay_within_their_memory_bounds() {
    let node = Running::on(json!({})).await;
    let keys = Keys::generate();
    let region = Region::new(ALLOCATOR);
    // More than would fit if events were stored as parsed, or topics were not counted.
    publish(&node, &region, 400, |n| many_texts(&keys, n, node.now())).await;
    publish(&node, &region, 1_100, |n| many_topics(&keys, n, node.now())).await;
    assert!(grown(&region) > EVENT_BYTES / 2, "much is kept: {}", grown(&region));
    // Memory freed later would hide memory taken then.
    node.stop().await;
    let has_fallen = || grown(&region) < ASIDE_BYTES;
    eventually(has_fallen, || format!("{} bytes are still held", grown(&region))).await;

    let node = Running::on(json!({})).await;
    subscribe(&node, 10).await;

    let node = Running::on(json!({"limits": {"max_event_bytes": 1_048_576}})).await;
    leave_unread(&node, 30).await;
}

async fn publish(
    node: &Running,
    region: &Region<'_, System>,
    count: u64,
    event: impl Fn(u64) -> Event,
) {
    let mut wire = Wire::open(node).await;
    for first in (0..count).step_by(ON_THEIR_WAY as usize) {
        for n in first..first + ON_THEIR_WAY {
            wire.send_text(&format!(r#"["EVENT",{}]"#, event(n).as_json())).await;
        }
        for _ in 0..ON_THEIR_WAY {
            let answer = wire.next().await;
            assert_eq!(answer[2], true, "{answer}");
        }
        let grown = grown(region);
        assert!(grown < EVENT_BYTES + ASIDE_BYTES, "{grown} bytes after {first} events");
    }
}

/// Opens as many subscriptions with short values as possible on each of `count` connections.
async fn subscribe(node: &Running, count: usize) {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut wire = Wire::open(node).await;
        wire.ask("s", json!({"#t": ["rust"]})).await;
        open.push(wire);
    }
    let values: Vec<String> = (10..100).chain(110..220).map(|n| n.to_string()).collect();
    let mut request = vec![json!("REQ"), Value::Null];
    request.extend(vec![json!({"#t": values}); 6]);
    let region = Region::new(ALLOCATOR);
    let mut opened = 0;
    for wire in &mut open {
        for n in 0..20 {
            request[1] = json!(format!("s{n}"));
            wire.send(Value::Array(request.clone())).await;
            let answer = wire.next().await;
            if answer[0] == "CLOSED" {
                assert_eq!(answer[2], "restricted: too many subscriptions");
                break;
            }
            assert_eq!(answer[0], "EOSE", "{answer}");
            opened += 1;
        }
    }
    assert!(opened >= 2 * count, "some are opened: {opened}");
    let grown = grown(&region);
    assert!(grown > count * SUBSCRIPTION_BYTES / 8, "only {grown} bytes by {opened}");
    assert!(grown < count * SUBSCRIPTION_BYTES + ASIDE_BYTES, "{grown} bytes by {opened}");
}

/// Sends the largest events to `count` clients with the most subscriptions, which do not read them.
async fn leave_unread(node: &Running, count: usize) {
    let keys = Keys::generate();
    let mut open = Vec::new();
    for _ in 0..count {
        let mut wire = Wire::open(node).await;
        for n in 0..20 {
            wire.ask(&format!("s{n}"), json!({"#t": ["rust"]})).await;
        }
        open.push(wire);
    }
    let mut writer = Wire::open(node).await;
    let region = Region::new(ALLOCATOR);
    let content = "x".repeat(1_000_000);
    let text = EventBuilder::text_note(content).tag(Tag::hashtag("rust"));
    let text = text.custom_created_at(Timestamp::from_secs(node.now()));
    assert_eq!(writer.publish(&text.sign_with_keys(&keys).unwrap()).await[2], true);
    let pending = &node.node.metrics.ws_pending_bytes;
    // Each client holds one event, which its socket does not accept.
    let all = count as i64 * 1_000_000;
    eventually(|| pending.get() > all, || format!("{} bytes pending", pending.get())).await;
    let grown = grown(&region);
    assert!(grown < 16 * ASIDE_BYTES, "{grown} bytes for {count} clients that do not read");
}
