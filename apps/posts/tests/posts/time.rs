//! When a cooldown ends.

use std::time::Duration;

use crate::{harness::Server, on_every_store};

on_every_store!(
    after_five_minutes_and_not_a_second_earlier,
    the_next_post_starts_the_next_cooldown,
    who_waits_as_told_is_admitted,
);

async fn after_five_minutes_and_not_a_second_earlier(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.clock.advance(Duration::from_secs(299));
    let reply = server.post("192.0.2.1", "太郎", "次の投稿").await;
    reply.is_limited();
    assert_eq!(reply.retry_after(), Some(1));
    server.clock.advance(Duration::from_secs(1));
    // On DynamoDB the expired items are still there: only their time tells.
    server.post("192.0.2.1", "太郎", "次の投稿").await.is_created();
}

async fn the_next_post_starts_the_next_cooldown(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.clock.advance(Duration::from_secs(400));
    server.post("192.0.2.1", "太郎", "次の投稿").await.is_created();
    server.clock.advance(Duration::from_secs(299));
    server.post("192.0.2.1", "太郎", "三番目の投稿").await.is_limited();
    server.clock.advance(Duration::from_secs(1));
    server.post("192.0.2.1", "太郎", "三番目の投稿").await.is_created();
}

async fn who_waits_as_told_is_admitted(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.clock.advance(Duration::from_millis(123_456));
    let reply = server.post("192.0.2.1", "次郎", "次の投稿").await;
    reply.is_limited();
    assert_eq!(reply.retry_after(), Some(177));
    server.clock.advance(Duration::from_secs(177));
    server.post("192.0.2.1", "次郎", "次の投稿").await.is_created();
}
