//! Concurrent posts.

use std::{sync::Arc, time::Duration};

use headgate_testkit::{DynamoDb, require};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::{task::JoinSet, time::timeout};

use crate::{
    harness::{self, Reply, Server},
    on_every_store,
};

on_every_store!(
    of_64_posts_from_one_address_one_is_made,
    of_64_posts_by_one_nickname_one_is_made,
    of_64_posts_that_say_the_same_one_is_made,
);

/// Address, nickname and body of each of 64 posts.
type Author = fn(usize) -> (String, String, String);

async fn at_once(server: Server, author: Author) -> (Arc<Server>, Vec<Reply>) {
    let server = Arc::new(server);
    let replies = at_once_on(&[Arc::clone(&server)], author).await;
    (server, replies)
}

/// Distributes the posts over the servers.
async fn at_once_on(servers: &[Arc<Server>], author: Author) -> Vec<Reply> {
    let mut posts = JoinSet::new();
    for i in 0..64 {
        let server = Arc::clone(&servers[i % servers.len()]);
        let (address, nickname, body) = author(i);
        posts.spawn(async move { server.post(&address, &nickname, &body).await });
    }
    let replies = posts.join_all().await;
    let created = replies.iter().filter(|reply| reply.status == 201).count();
    assert_eq!(created, 1);
    replies
}

fn address(i: usize) -> String {
    format!("198.51.100.{i}")
}

async fn of_64_posts_from_one_address_one_is_made(server: Server) {
    let author = |i| ("192.0.2.1".to_owned(), format!("名前{i}"), format!("投稿 {i} 番"));
    let (server, replies) = at_once(server, author).await;
    replies.iter().filter(|reply| reply.status != 201).for_each(Reply::is_limited);
    // Losing took nothing else: the nicknames are free at other addresses.
    let mut free = 0;
    for i in 0..64 {
        let reply = server.post(&address(i), &format!("名前{i}"), &format!("別の {i} 番")).await;
        free += usize::from(reply.status == 201);
    }
    assert_eq!(free, 63);
}

async fn of_64_posts_by_one_nickname_one_is_made(server: Server) {
    let author = |i| (address(i), "太郎".to_owned(), format!("投稿 {i} 番"));
    let (_, replies) = at_once(server, author).await;
    replies.iter().filter(|reply| reply.status != 201).for_each(Reply::is_limited);
}

async fn of_64_posts_that_say_the_same_one_is_made(server: Server) {
    let author = |i| (address(i), format!("名前{i}"), "同じ投稿".to_owned());
    at_once(server, author).await;
}

#[tokio::test]
async fn of_64_posts_on_two_services_one_is_made() {
    let dynamodb = require!(harness::dynamodb().await);
    let first = Server::on_dynamodb(&dynamodb).await;
    let tables = [("POSTS_DATABASE", "dynamodb"), ("DYNAMODB_TABLE_PREFIX", first.prefix())];
    let second = Server::cooldowns_on(dynamodb.endpoint(), &tables).await;
    let author = |i| ("192.0.2.1".to_owned(), format!("名前{i}"), format!("投稿 {i} 番"));
    let replies = at_once_on(&[Arc::new(first), Arc::new(second)], author).await;
    replies.iter().filter(|reply| reply.status != 201).for_each(Reply::is_limited);
}

/// Number of successes of 64 concurrent posts from one address.
async fn made_of_64(server: &Arc<Server>, address: &str, round: usize) -> usize {
    let mut posts = JoinSet::new();
    for i in 0..64 {
        let (server, address) = (Arc::clone(server), address.to_owned());
        posts.spawn(async move {
            let (nickname, body) = (format!("名前{round}-{i}"), format!("投稿 {round}-{i} 番"));
            server.post(&address, &nickname, &body).await
        });
    }
    let replies = posts.join_all().await;
    replies.iter().filter(|reply| reply.status != 201).for_each(Reply::is_limited);
    replies.iter().filter(|reply| reply.status == 201).count()
}

/// With the default timeout, which a busy DynamoDB exceeds, and with one that is always exceeded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_store_waives_no_cooldown() {
    let dynamodb = require!(harness::dynamodb().await);
    for (timeout, rounds) in [("500", 20), ("1", 10)] {
        let variables = [("DYNAMODB_TIMEOUT_MS", timeout)];
        let server = Arc::new(Server::cooldowns_on(dynamodb.endpoint(), &variables).await);
        for round in 0..rounds {
            let address = format!("192.0.2.{round}");
            assert_eq!(made_of_64(&server, &address, round).await, 1, "{timeout} ms, {round}");
        }
        // No cooldown has ended.
        assert_eq!(made_of_64(&server, "192.0.2.0", rounds).await, 0, "{timeout} ms");
        server.clock.advance(Duration::from_secs(300));
        assert_eq!(made_of_64(&server, "192.0.2.0", rounds + 1).await, 1, "{timeout} ms");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_stops_midway_waives_no_cooldown() {
    let dynamodb = require!(tokio::task::spawn_blocking(DynamoDb::start).await.unwrap());
    let dynamodb = Arc::new(dynamodb);
    let variables = [("DYNAMODB_TIMEOUT_MS", "500")];
    let server = Arc::new(Server::cooldowns_on(&dynamodb.endpoint(), &variables).await);
    assert_eq!(made_of_64(&server, "192.0.2.1", 0).await, 1);
    let stopping = Arc::clone(&dynamodb);
    let stopping = tokio::task::spawn_blocking(move || stopping.stop());
    let mut made = [0; 2];
    for round in 1..6 {
        made[0] += made_of_64(&server, "192.0.2.1", round).await;
        made[1] += made_of_64(&server, "192.0.2.2", round).await;
    }
    stopping.await.unwrap();
    made[1] += made_of_64(&server, "192.0.2.2", 6).await;
    assert_eq!(made, [0, 1], "the first posted before, the second once while it stopped");
    server.clock.advance(Duration::from_secs(300));
    assert_eq!(made_of_64(&server, "192.0.2.1", 7).await, 1);
}

/// A post that cannot be saved, because its table is missing.
async fn a_failed_save_costs_nothing(server: Server) {
    let options = SqliteConnectOptions::new().filename(server.database());
    let mut database = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("ALTER TABLE posts RENAME TO away").execute(&mut database).await.unwrap();
    for _ in 0..3 {
        let reply = server.post("192.0.2.1", "太郎", "テスト投稿").await;
        reply.is_refused(500, "INTERNAL_ERROR", "サーバーでエラーが発生しました");
    }
    sqlx::query("ALTER TABLE away RENAME TO posts").execute(&mut database).await.unwrap();
    server.post("192.0.2.1", "太郎", "テスト投稿").await.is_created();
    server.post("192.0.2.1", "太郎", "次の投稿").await.is_limited();
}

#[tokio::test]
async fn a_failed_save_costs_nothing_in_memory() {
    a_failed_save_costs_nothing(Server::embedded().await).await;
}

#[tokio::test]
async fn a_failed_save_costs_nothing_in_dynamodb() {
    let dynamodb = require!(harness::dynamodb().await);
    a_failed_save_costs_nothing(Server::cooldowns_on(dynamodb.endpoint(), &[]).await).await;
}

#[tokio::test]
async fn hanging_up_does_not_bypass_the_cooldown() {
    let server = Server::embedded().await;
    let options = SqliteConnectOptions::new().filename(server.database());
    let mut database = SqliteConnection::connect_with(&options).await.unwrap();
    // A post waits for a lock for five seconds only, and requests may take as long on a busy
    // machine. One that has waited for too long costs nothing: another author tries.
    for author in 0..20 {
        if is_saved_without_its_client(&server, &mut database, &address(author)).await {
            return;
        }
    }
    panic!("no post was saved after its client hung up");
}

/// Hangs up while a post waits for a lock that the test holds. Returns false if it was not saved.
async fn is_saved_without_its_client(
    server: &Server,
    database: &mut SqliteConnection,
    address: &str,
) -> bool {
    let (nickname, body) = (format!("名前 {address}"), format!("投稿 {address}"));
    // Invalid, so that it takes nothing.
    let ask = async || server.post(address, "", "").await.retry_after();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut *database).await.unwrap();
    let mut hanging = Box::pin(server.post(address, &nickname, &body));
    let reserved = async { while ask().await.is_none_or(|seconds| seconds > 30) {} };
    let other = tokio::select! {
        reply = &mut hanging => reply,
        () = reserved => server.post(address, "次郎", "次の投稿").await,
    };
    drop(hanging);
    sqlx::query("COMMIT").execute(&mut *database).await.unwrap();
    if other.status == 500 {
        return false;
    }
    // While a post is being saved, no other is admitted.
    other.is_limited();
    let decided = async {
        loop {
            match ask().await {
                Some(1..=30) => {}
                decided => return decided,
            }
        }
    };
    let decided = timeout(Duration::from_secs(120), decided).await.expect("to be saved, or not");
    assert!(decided.is_none_or(|seconds| seconds == 300), "{decided:?}");
    decided.is_some()
}
