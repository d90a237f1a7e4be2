//! DynamoDB is away: posts go on, and so do cooldowns.

use std::{ops::Range, time::Duration};

use headgate_testkit::{DynamoDb, Skip, require};
use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout},
};

use crate::{harness::Server, logs::Log};

const TIMEOUT: Duration = Duration::from_secs(1);

/// A DynamoDB of the test's own.
async fn dynamodb() -> Result<DynamoDb, Skip> {
    spawn_blocking(DynamoDb::start).await.expect("no panic")
}

async fn impatient(dynamodb: &DynamoDb) -> Server {
    Server::cooldowns_on(&dynamodb.endpoint(), &[("DYNAMODB_TIMEOUT_MS", "1000")]).await
}

/// One post of each of these authors, who are new: each is made, and logged once.
async fn post_all(server: &Server, log: &Log, authors: Range<u8>) {
    for i in authors {
        let (address, nickname) = (format!("10.0.0.{i}"), format!("太郎{i}"));
        let begun = Instant::now();
        server.post(&address, &nickname, &format!("投稿 {i} 番")).await.is_created();
        let took = begun.elapsed();
        assert!(took < TIMEOUT * 2, "post {i} waited for more than one time-out: {took:?}");
        let [line] = log.errors().try_into().expect("one line for each post");
        assert!(line.contains("does not answer"), "{line}");
        assert!(line.contains("ip#") && line.contains("nick#"), "{line}");
        assert!(!line.contains(&address) && !line.contains("太郎"), "{line}");
    }
}

#[tokio::test]
async fn without_dynamodb_posts_are_made_and_each_is_logged_once() {
    let dynamodb = require!(dynamodb().await);
    let (log, _guard) = Log::start();
    let server = impatient(&dynamodb).await;
    dynamodb.stop();
    post_all(&server, &log, 1..11).await;

    // An outage is no reason not to wait: each process lets an author post once.
    for (address, nickname) in [("10.0.0.1", "次郎"), ("10.0.1.1", "太郎1")] {
        let reply = server.post(address, nickname, "二番目の投稿").await;
        reply.is_limited();
        assert_eq!(reply.retry_after(), Some(300));
    }
    server.clock.advance(Duration::from_secs(300));
    server.post("10.0.0.1", "太郎1", "二番目の投稿").await.is_created();
}

#[tokio::test]
async fn a_dynamodb_that_hangs_delays_few_posts_and_is_asked_again() {
    let dynamodb = require!(dynamodb().await);
    let (log, _guard) = Log::start();
    let server = impatient(&dynamodb).await;
    // What the first request needs longer for is no part of this.
    server.post("10.0.0.250", "次郎", "最初の投稿").await.is_created();
    log.errors();

    dynamodb.pause();
    post_all(&server, &log, 1..6).await;
    // By now it is left alone: these wait for nothing.
    let begun = Instant::now();
    post_all(&server, &log, 6..21).await;
    assert!(begun.elapsed() < TIMEOUT * 3, "{:?}", begun.elapsed());

    dynamodb.resume();
    // It may need a moment; once it counts, a post leaves no line.
    let counted = async {
        for i in 0.. {
            server.clock.advance(Duration::from_secs(1));
            let nickname = format!("花子{i}");
            server.post(&format!("10.1.0.{i}"), &nickname, &format!("後の投稿 {i}")).await;
            if log.errors().is_empty() {
                return;
            }
        }
    };
    timeout(Duration::from_secs(30), counted).await.expect("to be counted again");
}
