//! A client that sends any frame.

use std::net::SocketAddr;

use futures_util::{SinkExt as _, StreamExt as _};
use nostr_sdk::{Event, EventBuilder, JsonUtil as _, Keys, RelayUrl};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error, Message, client::IntoClientRequest as _, http::Response},
};

use super::harness::{Running, SOON};

/// An open connection.
pub(crate) struct Wire(WebSocketStream<MaybeTlsStream<TcpStream>>);

// === impl Wire ===

impl Wire {
    pub(crate) async fn open(node: &Running) -> Self {
        Self::try_open(node.address, &[]).await.expect("an admitted connection")
    }

    /// Opens a connection with more headers, or returns the response.
    pub(crate) async fn try_open(
        address: SocketAddr,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, Box<Response<Option<Vec<u8>>>>> {
        let mut request = format!("ws://{address}/relay").into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        match connect_async(request).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.send_message(Message::text(text)).await;
    }

    pub(crate) async fn send_message(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    /// Queues a message without flushing.
    pub(crate) async fn feed(&mut self, message: Message) {
        self.0.feed(message).await.unwrap();
    }

    pub(crate) async fn flush(&mut self) {
        self.0.flush().await.unwrap();
    }

    pub(crate) async fn publish(&mut self, event: &Event) -> Value {
        self.send_text(&format!(r#"["EVENT",{}]"#, event.as_json())).await;
        self.next().await
    }

    /// Subscribes, and returns the stored events.
    pub(crate) async fn ask(&mut self, id: &str, filter: Value) -> Vec<Value> {
        self.send(json!(["REQ", id, filter])).await;
        let mut events = Vec::new();
        loop {
            let frame = self.next().await;
            if frame == json!(["EOSE", id]) {
                return events;
            }
            assert_eq!((&frame[0], &frame[1]), (&json!("EVENT"), &json!(id)), "{frame}");
            events.push(frame[2].clone());
        }
    }

    /// The next frame; null once the connection is closed.
    pub(crate) async fn next(&mut self) -> Value {
        loop {
            let message = time::timeout(SOON, self.0.next()).await.expect("a response");
            match message {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(_) | Err(_)) | None => return Value::Null,
            }
        }
    }

    /// Waits for a ping, and answers it.
    pub(crate) async fn pinged(&mut self) {
        let message = time::timeout(SOON, self.0.next()).await.expect("a ping");
        assert!(matches!(message, Some(Ok(Message::Ping(_)))), "{message:?}");
        self.0.flush().await.unwrap();
    }

    /// The next frame, which must be of this kind.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        let frame = self.next().await;
        assert_eq!(frame[0], kind, "{frame}");
        frame
    }

    /// Authenticates with the relay's challenge.
    pub(crate) async fn sign(&mut self, node: &Running, keys: &Keys, challenge: &str) -> Value {
        let url = RelayUrl::parse(&node.url()).unwrap();
        let event = EventBuilder::auth(challenge, url).sign_with_keys(keys).unwrap();
        self.send_text(&format!(r#"["AUTH",{}]"#, event.as_json())).await;
        self.next().await
    }
}
