//! The relay information document.

use headgate_service_config::ServiceConfig;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{harness::Running, wire::Wire};

/// Head and body of a response.
async fn ask(node: &Running, method: &str, headers: &str) -> (String, String) {
    let mut socket = TcpStream::connect(node.address).await.unwrap();
    let request =
        format!("{method} /relay HTTP/1.1\r\nhost: node\r\nconnection: close\r\n{headers}\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[tokio::test]
async fn the_information_document_has_features_and_limits_for_any_web_page() {
    let node = Running::on(json!({"limits": {"max_event_bytes": 2_000, "max_tags": 7}})).await;
    for accepted in ["application/nostr+json", "text/html, Application/Nostr+JSON;q=0.9"] {
        let (head, body) = ask(&node, "GET", &format!("accept: {accepted}\r\n")).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: application/nostr+json"), "{head}");
        assert!(head.contains("access-control-allow-origin: *"), "{head}");
        let document: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(document["name"], "Headgate community node");
        assert_eq!(document["supported_nips"], json!([1, 9, 11, 40, 42, 70]));
        let limits = &document["limitation"];
        assert_eq!(
            (&limits["max_message_length"], &limits["max_event_tags"], &limits["max_limit"]),
            (&json!(67_536), &json!(7), &json!(1_000))
        );
        assert_eq!(limits["auth_required"], false);
    }
    let (head, _) = ask(&node, "GET", "accept: application/json\r\n").await;
    assert!(head.starts_with("HTTP/1.1 426") && head.contains("upgrade: websocket"), "{head}");
}

#[tokio::test]
async fn the_information_document_follows_the_operators_descriptor() {
    let mut node = Running::on(json!({})).await;
    node.put(json!({"auth": {"mode": "required"}}));
    for (version, descriptor) in
        [(1, json!({"name": "Nook"})), (2, json!({"description": "Small"}))]
    {
        node.node.bootstrap.apply(Ok(Some(ServiceConfig {
            service: "bootstrap".to_owned(),
            version,
            config: json!({"descriptor": descriptor}),
            updated_at: headgate::Timestamp::from_micros(0),
            updated_by: "test".to_owned(),
        })));
        let (_, body) = ask(&node, "GET", "accept: application/nostr+json\r\n").await;
        let document: Value = serde_json::from_str(&body).unwrap();
        let usual = json!("Headgate community node");
        assert_eq!(document["name"], *descriptor.get("name").unwrap_or(&usual));
        assert_eq!(document.get("description"), descriptor.get("description"));
        assert_eq!(document["limitation"]["auth_required"], true);
    }
}

#[tokio::test]
async fn cors_allows_any_origin() {
    let node = Running::on(json!({})).await;
    let headers = "origin: https://app.example\r\naccess-control-request-method: GET\r\n";
    let (head, _) = ask(&node, "OPTIONS", headers).await;
    assert!(head.starts_with("HTTP/1.1 204"), "{head}");
    for header in [
        "access-control-allow-origin: *",
        "access-control-allow-headers: *",
        "access-control-allow-methods: GET, HEAD, OPTIONS",
    ] {
        assert!(head.contains(header), "{head}");
    }
}

#[tokio::test]
async fn requesting_the_information_document_counts_as_a_connection() {
    let node = Running::on(json!({"rate_limit": {"ws": {"conns_per_minute": 2}}})).await;
    let (head, _) = ask(&node, "GET", "accept: application/nostr+json\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let _wire = Wire::open(&node).await;
    let (head, _) = ask(&node, "GET", "accept: application/nostr+json\r\n").await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
}
