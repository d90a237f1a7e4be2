//! A connection that sends one request after the other.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Full};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

use crate::harness::{CHECK, Reply};

pub(super) struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    pub(super) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.expect("a handshake");
        tokio::spawn(connection);
        Self(sender)
    }

    pub(super) async fn check_user(&mut self, user: &str) -> Reply {
        let body = json!({"scope": "user", "identifier": user}).to_string();
        self.post(CHECK, body).await
    }

    pub(super) async fn post(&mut self, path: &str, body: String) -> Reply {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.header("host", "test").body(Full::new(Bytes::from(body)));
        self.0.ready().await.expect("an open connection");
        let answer = self.0.send_request(request.expect("a request")).await.expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8(body.to_vec()).expect("a text");
        Reply { status: head.status, headers: head.headers, text }
    }
}
