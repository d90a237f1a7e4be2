//! Third-party clients: `nostr-sdk`, nostr-tools on Node.js, aionostr on Python.

use std::path::Path;

use headgate_testkit::{NostrClient, require};
use nostr_sdk::{
    Alphabet, Client, ClientOptions, Filter, Keys, Kind, RelayMessage, RelayPoolNotification,
    SingleLetterTag, SubscriptionId,
};
use serde_json::json;
use tokio::{process::Command, time};

use super::harness::{Running, SOON, note};

async fn connected(node: &Running, keys: &Keys) -> Client {
    let client = Client::builder().signer(keys.clone()).opts(ClientOptions::new()).build();
    client.add_relay(node.url()).await.unwrap();
    let output = client.try_connect(SOON).await;
    assert!(output.failed.is_empty(), "{output:?}");
    client
}

fn about(topic: &str) -> Filter {
    Filter::new().kind(Kind::TextNote).custom_tag(SingleLetterTag::lowercase(Alphabet::T), topic)
}

/// The relay's reason.
fn refusal(output: &nostr_sdk::prelude::Output<nostr_sdk::EventId>) -> &str {
    output.failed.values().next().expect("a refusal")
}

async fn message(
    notifications: &mut tokio::sync::broadcast::Receiver<RelayPoolNotification>,
    wanted: impl Fn(&RelayMessage<'static>) -> bool,
) -> RelayMessage<'static> {
    let found = async {
        loop {
            if let RelayPoolNotification::Message { message, .. } =
                notifications.recv().await.unwrap()
                && wanted(&message)
            {
                return message;
            }
        }
    };
    time::timeout(SOON, found).await.expect("a message")
}

#[tokio::test]
async fn an_event_reaches_subscribers_and_later_queries() {
    let node = Running::on(json!({})).await;
    let (writer, reader) = (Keys::generate(), Keys::generate());
    let (alice, bob) = (connected(&node, &writer).await, connected(&node, &reader).await);

    let mut heard = bob.notifications();
    let subscription = bob.subscribe(about("rust"), None).await.unwrap().val;
    let eose = |message: &RelayMessage<'static>| matches!(message, RelayMessage::EndOfStoredEvents(id) if **id == subscription);
    message(&mut heard, eose).await;

    let event = note(&writer, "rust", "hello", node.now());
    let output = alice.send_event(&event).await.unwrap();
    assert_eq!(output.success.len(), 1, "{output:?}");
    let told = |message: &RelayMessage<'static>| matches!(message, RelayMessage::Event { .. });
    let RelayMessage::Event { event: told, .. } = message(&mut heard, told).await else {
        unreachable!()
    };
    assert_eq!(*told, event);

    let carol = connected(&node, &Keys::generate()).await;
    let found = carol.fetch_events(about("rust"), SOON).await.unwrap();
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [event]);
    assert!(carol.fetch_events(about("wasm"), SOON).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_rate_limited_event_is_refused_with_a_reason_the_client_understands() {
    let node = Running::on(json!({"rate_limit": {"ws": {"events_per_minute": 1}}})).await;
    let keys = Keys::generate();
    let client = connected(&node, &keys).await;

    let first = client.send_event(&note(&keys, "rust", "1", node.now())).await.unwrap();
    assert_eq!(first.success.len(), 1, "{first:?}");
    let second = client.send_event(&note(&keys, "rust", "2", node.now())).await.unwrap();
    assert!(refusal(&second).contains("rate-limited: retry in "), "{second:?}");
    // Reading has a budget of its own.
    let found = client.fetch_events(about("rust"), SOON).await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn a_rate_limited_subscription_is_closed_with_a_reason_the_client_understands() {
    let node = Running::on(json!({"rate_limit": {"ws": {"reqs_per_minute": 1}}})).await;
    let keys = Keys::generate();
    let client = connected(&node, &keys).await;
    let mut heard = client.notifications();

    client.subscribe(about("rust"), None).await.unwrap();
    message(&mut heard, |message| matches!(message, RelayMessage::EndOfStoredEvents(_))).await;
    let second = SubscriptionId::new("second");
    client.subscribe_with_id(second.clone(), about("wasm"), None).await.unwrap();
    let closed =
        message(&mut heard, |message| matches!(message, RelayMessage::Closed { .. })).await;
    let RelayMessage::Closed { subscription_id, message: reason } = closed else { unreachable!() };
    assert_eq!(*subscription_id, second);
    assert!(reason.starts_with("rate-limited: retry in "), "{reason}");
    let notice = message(&mut heard, |message| matches!(message, RelayMessage::Notice(_))).await;
    assert!(matches!(notice, RelayMessage::Notice(text) if text.starts_with("rate-limited: ")));
    // Writing has a budget of its own.
    let output = client.send_event(&note(&keys, "rust", "1", node.now())).await.unwrap();
    assert_eq!(output.success.len(), 1, "{output:?}");
}

#[tokio::test]
async fn a_client_answers_the_challenge_by_itself() {
    let node = Running::on(json!({"auth": {"mode": "required"}})).await;
    let keys = Keys::generate();
    let client = connected(&node, &keys).await;
    let output = client.send_event(&note(&keys, "rust", "1", node.now())).await.unwrap();
    assert_eq!(output.success.len(), 1, "{output:?}");
    node.counted("auth_success_total{service=\"relay\"} 1").await;
    node.counted("ws_unauthenticated_connections 0").await;
}

#[tokio::test]
async fn a_client_goes_on_after_a_subscription_out_of_bounds_is_closed() {
    let node = Running::on(json!({})).await;
    let client = connected(&node, &Keys::generate()).await;
    let mut heard = client.notifications();
    let no_topic = Filter::new().kind(Kind::TextNote);
    client.subscribe(no_topic.clone(), None).await.unwrap();
    let closed =
        message(&mut heard, |message| matches!(message, RelayMessage::Closed { .. })).await;
    let RelayMessage::Closed { message: reason, .. } = closed else { unreachable!() };
    assert_eq!(reason, "invalid: a #t filter is required");
    // Without a `CLOSED` it would wait for an end that never comes.
    let fetched = time::timeout(SOON / 2, client.fetch_events(no_topic, 10 * SOON));
    assert!(fetched.await.expect("no hang").is_ok_and(|events| events.is_empty()));
    assert!(client.fetch_events(about("rust"), SOON).await.unwrap().is_empty());
}

/// Runs a script against a new node; the script has the assertions.
async fn run(client: NostrClient, script: &str) {
    let node = Running::on(json!({})).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/node/relay/clients");
    let mut command = Command::from(client.script(&folder.join(script)));
    let output = command.arg(node.url()).kill_on_drop(true).output();
    let output = time::timeout(10 * SOON, output).await.expect("the script to end").unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.ends_with("is content\n"), "{stdout}\n{stderr}");
}

#[tokio::test]
async fn nostr_tools_gets_an_answer_to_every_request() {
    run(require!(NostrClient::nostr_tools()), "nostr-tools.mjs").await;
}

#[tokio::test]
async fn aionostr_gets_an_answer_to_every_request() {
    run(require!(NostrClient::aionostr()), "aionostr_client.py").await;
}
