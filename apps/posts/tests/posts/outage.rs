//! Outages of DynamoDB: posts go on, and so do cooldowns.

use std::{ops::Range, time::Duration};

use headgate::StoreError;
use headgate_testkit::{CapturedLog, DynamoDb, Skip, require};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::harness::Server;

const TIMEOUT: Duration = Duration::from_secs(1);

const DUPLICATE: &str = "同じ内容の投稿があります";

/// A DynamoDB for one test.
async fn dynamodb() -> Result<DynamoDb, Skip> {
    spawn_blocking(DynamoDb::start).await.expect("no panic")
}

async fn impatient(dynamodb: &DynamoDb) -> Server {
    Server::cooldowns_on(&dynamodb.endpoint(), &[("DYNAMODB_TIMEOUT_MS", "1000")]).await
}

/// Posts once as each of these new authors: each post succeeds, and is logged once. Returns the
/// lines.
async fn post_all(server: &Server, log: &CapturedLog, authors: Range<u8>) -> Vec<String> {
    let mut lines = Vec::new();
    for i in authors {
        let (address, nickname) = (format!("10.0.0.{i}"), format!("太郎{i}"));
        let begun = Instant::now();
        server.post(&address, &nickname, &format!("投稿 {i} 番")).await.is_created();
        let took = begun.elapsed();
        // One timeout, and what a busy machine adds; without one, a request may take 30 seconds.
        assert!(took < TIMEOUT * 20, "post {i} waited for more than the timeout: {took:?}");
        let [line] = log.take_errors().try_into().expect("one line for each post");
        assert!(line.contains("store of cooldowns failed"), "{line}");
        assert!(line.contains("ip#") && line.contains("nick#"), "{line}");
        assert!(!line.contains(&address) && !line.contains("太郎"), "{line}");
        lines.push(line);
    }
    lines
}

#[tokio::test]
async fn without_dynamodb_posts_succeed_and_each_is_logged_once() {
    let dynamodb = require!(dynamodb().await);
    let log = CapturedLog::start("info");
    let server = impatient(&dynamodb).await;
    dynamodb.stop();
    post_all(&server, &log, 1..11).await;

    // During an outage each process still admits an author once.
    for (address, nickname) in [("10.0.0.1", "次郎"), ("10.0.1.1", "太郎1")] {
        let reply = server.post(address, nickname, "二番目の投稿").await;
        reply.is_limited();
        assert_eq!(reply.retry_after(), Some(300));
    }
    server.clock.advance(Duration::from_secs(300));
    server.post("10.0.0.1", "太郎1", "二番目の投稿").await.is_created();
}

#[tokio::test]
async fn a_hanging_dynamodb_delays_few_posts_and_is_retried() {
    let dynamodb = require!(dynamodb().await);
    let log = CapturedLog::start("info");
    let server = impatient(&dynamodb).await;
    // The first request, which takes longer, is not measured.
    server.post("10.0.0.250", "次郎", "最初の投稿").await.is_created();
    log.take_errors();

    dynamodb.pause();
    post_all(&server, &log, 1..6).await;
    // The circuit breaker is open: these do not wait for a timeout each.
    let open = StoreError::BreakerOpen.to_string();
    for line in post_all(&server, &log, 6..21).await {
        assert!(line.contains(&open), "{line}");
    }

    dynamodb.resume();
    // It may take a moment; once the store counts again, a post logs nothing.
    let counted = async {
        for i in 0.. {
            server.clock.advance(Duration::from_secs(1));
            let (address, nickname) = (format!("10.1.{}.{}", i / 256, i % 256), format!("花子{i}"));
            server.post(&address, &nickname, &format!("後の投稿 {i}")).await;
            if log.take_errors().is_empty() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(120), counted).await.expect("the store to count again");
}

#[tokio::test]
async fn a_denial_by_dynamodb_outlasts_its_outage() {
    let dynamodb = require!(dynamodb().await);
    // Nothing waits for it once the server is gone; before, a busy machine must not be an outage.
    let patient = ("DYNAMODB_TIMEOUT_MS", "30000");
    let here = Server::cooldowns_on(&dynamodb.endpoint(), &[patient]).await;
    let beside = [patient, ("DYNAMODB_TABLE_PREFIX", here.prefix())];
    let elsewhere = Server::cooldowns_on(&dynamodb.endpoint(), &beside).await;
    elsewhere.post("10.0.0.1", "太郎", "最初の投稿").await.is_created();
    // One by its address, one by its nickname, one by its content.
    here.post("10.0.0.1", "次郎", "二番目の投稿").await.is_limited();
    here.post("10.0.0.2", "太郎", "三番目の投稿").await.is_limited();
    here.post("10.0.0.3", "花子", "最初の投稿").await.is_refused(
        422,
        "DUPLICATE_CONTENT",
        DUPLICATE,
    );

    dynamodb.stop();
    for (address, nickname) in [("10.0.0.1", "三郎"), ("10.0.0.4", "太郎")] {
        let reply = here.post(address, nickname, "次の投稿").await;
        reply.is_limited();
        assert_eq!(reply.retry_after(), Some(300));
    }
    here.post("10.0.0.3", "花子", "最初の投稿").await.is_refused(
        422,
        "DUPLICATE_CONTENT",
        DUPLICATE,
    );
    // What was denied with them is free, and so are others.
    here.post("10.0.0.5", "次郎", "四番目の投稿").await.is_created();
    here.post("10.0.0.3", "花子", "五番目の投稿").await.is_created();
    here.clock.advance(Duration::from_secs(300));
    here.post("10.0.0.1", "三郎", "六番目の投稿").await.is_created();
}
