//! DynamoDB is away: posts go on.

use std::time::Duration;

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

/// Each may be posted at any time, if nobody counts.
async fn post_all(server: &Server, log: &Log, posts: usize) {
    for i in 0..posts {
        let begun = Instant::now();
        server.post("10.0.0.1", "太郎", &format!("投稿 {i} 番")).await.is_created();
        let took = begun.elapsed();
        assert!(took < TIMEOUT * 2, "post {i} waited for more than one time-out: {took:?}");
        let [line] = log.errors().try_into().expect("one line for each post");
        assert!(line.contains("ip#f5047344122f0dee"), "{line}");
        assert!(line.contains("nick#3e63216aec8dbdf6"), "{line}");
        assert!(!line.contains("10.0.0.1") && !line.contains("太郎"), "{line}");
    }
}

#[tokio::test]
async fn without_dynamodb_posts_are_made_and_each_is_logged_once() {
    let dynamodb = require!(dynamodb().await);
    let (log, _guard) = Log::start();
    let server = impatient(&dynamodb).await;
    dynamodb.stop();
    post_all(&server, &log, 10).await;
}

#[tokio::test]
async fn a_dynamodb_that_hangs_delays_few_posts_and_is_asked_again() {
    let dynamodb = require!(dynamodb().await);
    let (log, _guard) = Log::start();
    let server = impatient(&dynamodb).await;
    // What the first request needs longer for is no part of this.
    server.post("10.0.0.9", "次郎", "最初の投稿").await.is_created();
    log.errors();

    dynamodb.pause();
    post_all(&server, &log, 5).await;
    // By now it is left alone: these wait for nothing.
    let begun = Instant::now();
    post_all(&server, &log, 15).await;
    assert!(begun.elapsed() < TIMEOUT * 3, "{:?}", begun.elapsed());

    dynamodb.resume();
    // It may need a moment; once it counts, the next post is one too many.
    let counted = async {
        for i in 100.. {
            server.clock.advance(Duration::from_secs(1));
            let reply = server.post("10.0.0.1", "太郎", &format!("投稿 {i} 番")).await;
            if reply.status != 201 {
                return reply.is_limited();
            }
        }
    };
    timeout(Duration::from_secs(30), counted).await.expect("to be counted again");
}
