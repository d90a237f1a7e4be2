//! Ends of cooldowns.

use std::time::Duration;

use crate::{harness::Server, on_every_store};

on_every_store!(
    a_cooldown_ends_after_exactly_five_minutes,
    the_next_post_starts_the_next_cooldown,
    waiting_for_retry_after_is_enough,
);

async fn a_cooldown_ends_after_exactly_five_minutes(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.clock.advance(Duration::from_secs(299));
    let reply = server.post("192.0.2.1", "太郎", "次の投稿").await;
    reply.is_limited();
    assert_eq!(reply.retry_after(), Some(1));
    server.clock.advance(Duration::from_secs(1));
    // On DynamoDB the expired items still exist: only their time counts.
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

async fn waiting_for_retry_after_is_enough(server: Server) {
    server.post("192.0.2.1", "太郎", "最初の投稿").await.is_created();
    server.clock.advance(Duration::from_millis(123_456));
    let reply = server.post("192.0.2.1", "次郎", "次の投稿").await;
    reply.is_limited();
    assert_eq!(reply.retry_after(), Some(177));
    server.clock.advance(Duration::from_secs(177));
    server.post("192.0.2.1", "次郎", "次の投稿").await.is_created();
}
