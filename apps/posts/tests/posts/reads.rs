//! Requests to DynamoDB.

use std::{
    collections::BTreeMap,
    mem,
    sync::{Arc, Mutex},
};

use headgate_testkit::require;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
};

use crate::harness::{self, Server};

/// Number of requests by operation.
type Counts = BTreeMap<String, usize>;

/// A proxy that counts operations.
#[derive(Clone)]
struct Counting {
    upstream: String,
    requests: Arc<Mutex<String>>,
}

impl Counting {
    async fn pass_on(self, client: TcpStream) {
        let server = TcpStream::connect(&self.upstream).await.expect("DynamoDB");
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            self.requests.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            if to_server.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    }

    /// Starts it; returns its URL.
    async fn start(self) -> String {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(self.clone().pass_on(client));
            }
        });
        endpoint
    }

    /// Operations since the last call.
    fn counts(&self) -> Counts {
        let requests = mem::take(&mut *self.requests.lock().unwrap());
        let mut counts = Counts::new();
        for request in requests.split("DynamoDB_20120810.").skip(1) {
            let end = request.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(request.len());
            *counts.entry(request[..end].to_owned()).or_default() += 1;
        }
        counts
    }
}

fn counts(expected: &[(&str, usize)]) -> Counts {
    expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[tokio::test]
async fn a_check_is_at_most_two_reads() {
    let dynamodb = require!(harness::dynamodb().await);
    let upstream = dynamodb.endpoint().trim_start_matches("http://").to_owned();
    let counting = Counting { upstream, requests: Arc::default() };
    let endpoint = counting.clone().start().await;
    let server = Server::cooldowns_on(&endpoint, &[]).await;
    assert!(counting.counts().contains_key("CreateTable"));

    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    // Reserve and commit, each of which reads what it changes.
    assert_eq!(counting.counts(), counts(&[("BatchGetItem", 2), ("TransactWriteItems", 2)]));
    server.post("192.0.2.1", "太郎", "次の投稿").await.is_limited();
    assert_eq!(counting.counts(), counts(&[]), "this process admitted that post itself");
    server.post("192.0.2.2", "次郎", "短").await;
    assert_eq!(counting.counts(), counts(&[("BatchGetItem", 1)]));

    let tables = [("DYNAMODB_TABLE_PREFIX", server.prefix()), ("POSTS_CREATE_TABLES", "false")];
    let other = Server::cooldowns_on(&endpoint, &tables).await;
    other.post("192.0.2.1", "太郎", "次の投稿").await.is_limited();
    // The denial, and the peek that explains it.
    assert_eq!(counting.counts(), counts(&[("BatchGetItem", 2)]));
}
