//! Events that replace or delete others, expire, or are protected.

use std::time::Duration;

use nostr_sdk::{Event, EventBuilder, Keys, Kind, Tag, Timestamp as At};
use serde_json::{Value, json};

use super::{
    harness::{Running, note},
    wire::Wire,
};

fn event(keys: &Keys, kind: u16, tags: &[&[&str]], at: u64) -> Event {
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    let builder = EventBuilder::new(Kind::from(kind), "").tags(tags);
    builder.custom_created_at(At::from_secs(at)).sign_with_keys(keys).unwrap()
}

async fn found(wire: &mut Wire) -> Vec<Value> {
    let events = wire.ask("found", json!({"#t": ["rust"]})).await;
    wire.send(json!(["CLOSE", "found"])).await;
    events.iter().map(|event| event["id"].clone()).collect()
}

#[tokio::test]
async fn only_the_newest_replaceable_and_addressable_event_is_stored() {
    let node = Running::on(json!({})).await;
    let (keys, now) = (Keys::generate(), node.now());
    let mut wire = Wire::open(&node).await;
    let profile = |age| event(&keys, 0, &[&["t", "rust"]], now - age);
    let article = |name, age| event(&keys, 30_023, &[&["t", "rust"], &["d", name]], now - age);
    let (old, new) = (profile(20), profile(10));
    let (first, second, other) = (article("x", 20), article("x", 5), article("y", 20));
    for event in [&old, &first, &other, &new, &second] {
        assert_eq!(wire.publish(event).await, json!(["OK", event.id, true, ""]));
    }
    for outdated in [old, first] {
        let reason = "duplicate: already have a newer event";
        assert_eq!(wire.publish(&outdated).await, json!(["OK", outdated.id, true, reason]));
    }
    assert_eq!(found(&mut wire).await, [json!(second.id), json!(new.id), json!(other.id)]);
}

#[tokio::test]
async fn only_the_author_can_delete_an_event() {
    let node = Running::on(json!({})).await;
    let (keys, other, now) = (Keys::generate(), Keys::generate(), node.now());
    let mut wire = Wire::open(&node).await;
    let (gone, stays) = (note(&keys, "rust", "gone", now), note(&other, "rust", "stays", now));
    wire.publish(&gone).await;
    wire.publish(&stays).await;
    let (id, of_another) = (gone.id.to_hex(), stays.id.to_hex());
    let deletion = event(&keys, 5, &[&["e", &id], &["e", &of_another], &["k", "1"]], now);
    assert_eq!(wire.publish(&deletion).await, json!(["OK", deletion.id, true, ""]));
    assert_eq!(found(&mut wire).await, [json!(stays.id)]);
    let reason = "blocked: the author has deleted this event";
    assert_eq!(wire.publish(&gone).await, json!(["OK", gone.id, false, reason]));
}

#[tokio::test]
async fn an_expired_event_is_neither_accepted_nor_found() {
    let node = Running::on(json!({})).await;
    let (keys, now) = (Keys::generate(), node.now());
    let mut wire = Wire::open(&node).await;
    let ending = |end: u64| {
        let end = end.to_string();
        event(&keys, 1, &[&["t", "rust"], &["expiration", &end]], now)
    };
    let (late, soon) = (ending(now), ending(now + 10));
    let reason = "invalid: event has expired";
    assert_eq!(wire.publish(&late).await, json!(["OK", late.id, false, reason]));
    assert_eq!(wire.publish(&soon).await[2], true);
    assert_eq!(found(&mut wire).await, [json!(soon.id)]);
    node.clock.advance(Duration::from_secs(10));
    assert!(found(&mut wire).await.is_empty());
}

#[tokio::test]
async fn a_protected_event_is_accepted_from_its_author_only() {
    let node = Running::on(json!({})).await;
    let (keys, other) = (Keys::generate(), Keys::generate());
    let protected = event(&keys, 1, &[&["t", "rust"], &["-"]], node.now());
    let mut wires = [Wire::open(&node).await, Wire::open(&node).await];
    for (wire, signer) in wires.iter_mut().zip([&keys, &other]) {
        let challenge = wire.publish(&protected).await;
        assert_eq!(challenge[0], "AUTH", "authentication is optional, but possible: {challenge}");
        let reason = "auth-required: this event may only be published by its author";
        assert_eq!(wire.next().await, json!(["OK", protected.id, false, reason]));
        let challenge = challenge[1].as_str().unwrap();
        assert_eq!(wire.sign(&node, signer, challenge).await[2], true);
    }
    let [author, stranger] = &mut wires;
    let reason = "restricted: this event may only be published by its author";
    assert_eq!(stranger.publish(&protected).await, json!(["OK", protected.id, false, reason]));
    assert_eq!(author.publish(&protected).await, json!(["OK", protected.id, true, ""]));
}
