//! Searches in the relay's stored events.

use futures_util::{SinkExt, StreamExt};
use hyper::Request;
use serde_json::{Value, json};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use sqlx::{Connection, SqliteConnection};

use super::harness::{START, Server, keys, say};

const HERE: &str = "198.51.100.1";

/// Publishes a user's notes through the relay.
async fn publish(server: &Server, whose: u8, notes: &[(&str, &str)]) {
    let (mut socket, _) = connect_async(server.relay_url()).await.unwrap();
    for (topic, content) in notes {
        let event = say(&keys(whose), content, &[["t", topic]], START);
        let frame = json!(["EVENT", event]).to_string();
        socket.send(Message::text(frame)).await.unwrap();
        let reply: Value = loop {
            let text = socket.next().await.unwrap().unwrap().into_text().unwrap();
            let reply: Value = serde_json::from_str(&text).unwrap();
            if reply[0] == "OK" {
                break reply;
            }
        };
        assert_eq!(reply[2], true, "{reply}");
    }
}

#[tokio::test]
async fn searches_trends_and_trust_cover_published_events() {
    let server = Server::start().await;
    let notes = [("rust", "Ferris says hello"), ("rust", "borrowed"), ("go", "hello, gopher")];
    publish(&server, 7, &notes).await;
    publish(&server, 8, &[("rust", "goodbye")]).await;

    let ada = server.client(1, HERE).await;
    let found = ada.get("/v1/search?q=HELLO").await.json();
    let contents: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|item| &item["content"]).collect();
    assert_eq!(contents, ["hello, gopher", "Ferris says hello"], "the newest first");
    let author = keys(7).public_key().to_hex();
    assert_eq!(found["items"][0]["pubkey"], author.as_str());
    assert_eq!(found["items"][0]["topics"], json!(["go"]));
    let one = ada.get("/v1/search?q=hello&limit=1").await.json();
    assert_eq!(one["items"].as_array().unwrap().len(), 1);

    let trends = ada.get("/v1/trending").await.json();
    let expected = json!([{"topic": "rust", "notes": 3}, {"topic": "go", "notes": 1}]);
    assert_eq!(trends["items"], expected);
    let trust = ada.get(&format!("/v1/trust/{author}")).await.json();
    assert_eq!(trust, json!({"pubkey": author, "notes": 3, "reports": 0}));
}

#[tokio::test]
async fn notes_of_a_denied_author_are_neither_found_nor_counted() {
    let server = Server::start().await;
    publish(&server, 7, &[("rust", "hello from a spammer")]).await;
    publish(&server, 8, &[("rust", "hello")]).await;
    let spammer = keys(7).public_key().to_hex();
    let entry = json!({"subject": spammer, "reason": "spam"}).to_string();
    server.admin(Request::put("/v1/admin/denylist"), &entry).await.is(200);

    let ada = server.client(1, HERE).await;
    let found = ada.get("/v1/search?q=hello").await.json();
    let contents: Vec<_> =
        found["items"].as_array().unwrap().iter().map(|item| &item["content"]).collect();
    assert_eq!(contents, ["hello"]);
    let trends = ada.get("/v1/trending").await.json();
    assert_eq!(trends["items"], json!([{"topic": "rust", "notes": 1}]));
    let trust = ada.get(&format!("/v1/trust/{spammer}")).await.json();
    assert_eq!(trust["notes"], 0);
}

#[tokio::test]
async fn searches_have_a_strict_limit_of_their_own() {
    let server = Server::start().await;
    server.configure("user-api", json!({"rate_limit": {"search_per_minute": 2}})).await;
    let (ada, bob) = (server.client(1, HERE).await, server.client(2, HERE).await);
    ada.get("/v1/search?q=a").await.is(200);
    ada.get("/v1/search?q=b").await.is(200);
    ada.get("/v1/search?q=c").await.is_limited();
    ada.get_from("198.51.100.2", "/v1/search?q=d").await.is_limited();
    bob.get("/v1/search?q=e").await.is_limited();
    bob.get_from("198.51.100.2", "/v1/search?q=f").await.is(200);
    ada.get("/v1/trending").await.is(200);
}

#[tokio::test]
async fn an_address_has_one_search_at_a_time() {
    let server = Server::start().await;
    let (ada, bob) = (server.client(1, HERE).await, server.client(2, "198.51.100.2").await);
    // Both have their quotas; from now on charging blocks.
    ada.get("/v1/search?q=a").await.is(200);
    bob.get("/v1/search?q=a").await.is(200);
    let url = format!("sqlite://{}", server.file().display());
    let mut console = SqliteConnection::connect(&url).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut console).await.unwrap();

    let first = Box::pin(ada.get("/v1/search?q=b"));
    let second = Box::pin(ada.get("/v1/search?q=c"));
    let elsewhere = Box::pin(bob.get("/v1/search?q=d"));
    let (refused, _, waiting) = futures_util::future::select_all([first, second, elsewhere]).await;
    refused.is_limited();
    assert_eq!(refused.header("retry-after"), Some("1"));
    sqlx::raw_sql("ROLLBACK").execute(&mut console).await.unwrap();
    for reply in futures_util::future::join_all(waiting).await {
        reply.is(200);
    }
    let metrics = server.get("/metrics").await.text;
    let line = r#"rate_limited_total{class="search",limit="in_flight",service="user-api"} 1"#;
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test]
async fn a_search_looks_at_so_much_text_and_no_more() {
    let server = Server::start().await;
    let limits = json!({"max_event_bytes": 1_048_576});
    server.configure("relay", json!({"limits": limits})).await;
    let long = "x".repeat(1_000_000);
    // 8 MiB are scanned: the newest nine, of which the last begins within them.
    let contents: Vec<String> = (0..11).map(|n| format!("Needle {n} {long}")).collect();
    let notes: Vec<_> = contents.iter().map(|content| ("rust", content.as_str())).collect();
    publish(&server, 7, &notes).await;
    let ada = server.client(1, HERE).await;
    let found = ada.get("/v1/search?q=NEEDLE&limit=100").await.json();
    let found: Vec<_> = found["items"].as_array().unwrap().iter().collect();
    assert_eq!(found.len(), 9);
    let oldest = found[8]["content"].as_str().unwrap();
    assert!(oldest.starts_with("Needle 2 "), "{}", &oldest[..10]);
}
