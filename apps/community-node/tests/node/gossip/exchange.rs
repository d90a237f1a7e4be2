//! Events between clients and peers.

use std::time::Duration;

use iroh::SecretKey;
use nostr_sdk::{Event, EventBuilder, JsonUtil as _, Keys, Kind, Tag, Timestamp as At};
use serde_json::json;
use tokio::time;

use super::peer::{TestPeer, node_with};
use crate::relay::{
    denied::deny,
    harness::{Running, SOON, Start, note},
    wire::Wire,
};

async fn is_kept(node: &Running, event: &Event) -> bool {
    let mut wire = Wire::open(node).await;
    let kept = wire.ask("kept", json!({"#t": ["rust"]})).await;
    kept.iter().any(|kept| kept["id"] == json!(event.id))
}

#[tokio::test]
async fn events_go_from_peers_to_clients_and_from_clients_to_peers() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust"]})).await;

    let theirs = note(&keys, "rust", "from a peer", node.now());
    peers[0].tell(theirs.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", theirs]));
    assert!(is_kept(&node, &theirs).await);
    node.counted("gossip_received_total 1").await;
    node.counted(r#"ingest_received_total{service="relay",source="gossip"} 1"#).await;

    let ours = note(&keys, "rust", "from a client", node.now());
    assert_eq!(wire.publish(&ours).await[2], true);
    assert_eq!(peers[0].hear().await, json!(ours));
    // For clients it is a duplicate, whichever came first.
    assert_eq!(wire.next().await, json!(["EVENT", "s", ours]));
    assert_eq!(wire.publish(&theirs).await[3], "duplicate: already have this event");
}

fn tagged(keys: &Keys, kind: Kind, tags: &[&[&str]], at: u64) -> Event {
    let tags = tags.iter().map(|tag| Tag::parse(tag.iter().copied()).unwrap());
    let builder = EventBuilder::new(kind, "").tags(tags).custom_created_at(At::from_secs(at));
    builder.sign_with_keys(keys).unwrap()
}

#[tokio::test]
async fn a_deletion_goes_to_the_topics_of_what_it_deletes() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    let keys = Keys::generate();
    let mut wire = Wire::open(&node).await;
    let (ours, theirs) =
        (note(&keys, "rust", "ours", node.now()), note(&keys, "rust", "theirs", node.now()));
    peers[0].tell(theirs.as_json()).await;
    node.counted("dedupe_misses_total 1").await;
    assert!(is_kept(&node, &theirs).await);
    let id = theirs.id.to_hex();
    let deletion = tagged(&keys, Kind::EventDeletion, &[&["e", &id]], node.now());
    peers[0].tell(deletion.as_json()).await;
    node.counted("dedupe_misses_total 2").await;
    assert!(!is_kept(&node, &theirs).await);
    peers[0].tell(format!(" {}", deletion.as_json())).await;
    node.counted("dedupe_hits_total 1").await;

    wire.publish(&ours).await;
    assert_eq!(peers[0].hear().await, json!(ours));
    let id = ours.id.to_hex();
    let deletion = tagged(&keys, Kind::EventDeletion, &[&["e", &id]], node.now());
    wire.publish(&deletion).await;
    assert_eq!(peers[0].hear().await, json!(deletion), "although it has no topic");
    node.counted("gossip_sent_total 2").await;
}

#[tokio::test]
async fn a_protected_event_is_neither_forwarded_to_peers_nor_accepted_from_them() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    let keys = Keys::generate();
    let tags: [&[&str]; 2] = [&["t", "rust"], &["-"]];
    let protected = tagged(&keys, Kind::TextNote, &tags, node.now());
    peers[0].tell(protected.as_json()).await;
    node.counted(r#"ingest_rejected_total{kind="gossip",reason="invalid",service="relay"} 1"#)
        .await;
    let mut wire = Wire::open(&node).await;
    let challenge = wire.publish(&protected).await[1].as_str().unwrap().to_owned();
    wire.expect("OK").await;
    wire.sign(&node, &keys, &challenge).await;
    assert_eq!(wire.publish(&protected).await[2], true);
    let open = note(&keys, "rust", "for everybody", node.now());
    wire.publish(&open).await;
    assert_eq!(peers[0].hear().await, json!(open), "and not the protected one");
}

#[tokio::test]
async fn events_of_a_denied_author_are_dropped() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    let (denied, other) = (Keys::generate(), Keys::generate());
    deny(&node, &denied.public_key().to_hex()).await;
    peers[0].tell(note(&denied, "rust", "hello", node.now()).as_json()).await;
    let by_author =
        r#"ingest_rejected_total{kind="gossip_author",reason="denied",service="relay"}"#;
    node.counted(&format!("{by_author} 1")).await;

    let event = note(&other, "rust", "hello", node.now());
    peers[0].tell(event.as_json()).await;
    node.counted("dedupe_misses_total 1").await;
    assert!(is_kept(&node, &event).await);
}

#[tokio::test]
async fn two_nodes_act_as_one_relay() {
    let port = headgate_testkit::free_port();
    let secret = SecretKey::from_bytes(&[7; 32]);
    let first = Start::new()
        .variable("CN_IROH_BIND", format!("127.0.0.1:{port}"))
        .variable("CN_IROH_SECRET", "07".repeat(32))
        .variable("CN_GOSSIP_TOPICS", "rust,wasm")
        .on(json!({}))
        .await;
    let second = Start::new()
        .variable("CN_IROH_BIND", "127.0.0.1:0")
        .variable("CN_GOSSIP_TOPICS", "rust")
        .variable("CN_GOSSIP_PEERS", format!("{}@127.0.0.1:{port}", secret.public()))
        .on(json!({}))
        .await;
    let (mut at_first, mut at_second) = (Wire::open(&first).await, Wire::open(&second).await);
    at_second.ask("s", json!({"#t": ["rust"]})).await;
    let keys = Keys::generate();
    // Nothing is forwarded until the nodes are connected.
    let deadline = time::Instant::now() + SOON;
    for n in 0.. {
        assert!(time::Instant::now() < deadline, "the nodes did not connect");
        at_first.publish(&note(&keys, "rust", &n.to_string(), first.now())).await;
        let metrics = second.metrics();
        let mut forwarded = metrics.lines().filter(|line| line.contains("source=\"gossip\"}"));
        if forwarded.any(|line| !line.ends_with(" 0")) {
            break;
        }
        time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(at_second.expect("EVENT").await[1], "s");
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn invalid_messages_are_dropped_without_an_answer() {
    let mut peers = [TestPeer::start().await];
    let node = node_with(&mut peers, json!({})).await;
    let keys = Keys::generate();
    let mut forged = note(&keys, "rust", "hello", node.now());
    forged.content = "hullo".to_owned();
    let elsewhere = note(&keys, "wasm", "of another topic", node.now());
    let future = note(&keys, "rust", "from the future", node.now() + 3_600);
    for message in [
        b"nonsense".to_vec(),
        vec![0xff, 0xfe],
        forged.as_json().into_bytes(),
        elsewhere.as_json().into_bytes(),
        future.as_json().into_bytes(),
    ] {
        peers[0].tell(message).await;
    }
    node.counted(r#"ingest_rejected_total{kind="gossip",reason="invalid",service="relay"} 5"#)
        .await;
    let good = note(&keys, "rust", "hello", node.now());
    let mut wire = Wire::open(&node).await;
    wire.ask("s", json!({"#t": ["rust", "wasm"]})).await;
    peers[0].tell(good.as_json()).await;
    assert_eq!(wire.next().await, json!(["EVENT", "s", good]));
}
