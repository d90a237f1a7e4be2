//! Searches find what the relay keeps.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio_tungstenite::{connect_async, tungstenite::Message};

use super::harness::{START, Server, keys, say};

const HERE: &str = "198.51.100.1";

/// Publishes notes of somebody through the relay.
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
async fn searches_trends_and_trust_are_about_what_was_published() {
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
