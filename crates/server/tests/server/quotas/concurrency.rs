//! Concurrent increments.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use headgate_testkit::require;

use super::{backend::Backend, policy};
use crate::harness::Server;

/// 32 clients, spread over `servers`, use exactly the limit.
async fn never_pass_the_limit(servers: &[&Server]) {
    const LIMIT: u64 = 100;
    let id = servers[0].create_quota(&policy("rivals", LIMIT)).await;
    let client = async |client: usize| {
        let mut admitted = 0;
        for turn in 0..8 {
            let amount = 1 + (client + turn) as u64 % 3;
            let reply = servers[client % servers.len()].increment(&id, amount, None).await;
            match reply.status.as_u16() {
                200 => admitted += amount,
                429 => {}
                other => panic!("{other}: {}", reply.text),
            }
        }
        admitted
    };
    let admitted: u64 = join_all((0..32).map(client)).await.into_iter().sum();
    // The remainder may be less than any request asks for.
    assert!((LIMIT - 2..=LIMIT).contains(&admitted), "{admitted}");
    for server in servers {
        assert_eq!(server.used(&id).await, admitted);
    }
}

/// A request that is sent 16 times concurrently is charged once, and answered 16 times.
async fn charged_once(servers: &[&Server]) {
    let id = servers[0].create_quota(&policy("repeated", 100)).await;
    let send = |i: usize| servers[i % servers.len()].increment(&id, 7, Some("the same"));
    let replies = join_all((0..16).map(send)).await;
    let answers: BTreeSet<String> = replies.iter().map(|reply| reply.text.clone()).collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(replies.iter().all(|reply| reply.status == 200));
    let replayed = replies.iter().filter(|it| it.header("idempotent-replayed") == "true");
    assert_eq!(replayed.count(), 15);
    assert_eq!(servers[0].used(&id).await, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_default() {
    let server = Server::start(&[]).await;
    never_pass_the_limit(&[&server]).await;
    charged_once(&[&server]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_two_servers_on_postgres_and_redis() {
    let backend = require!(Backend::start());
    let (one, other) = (backend.server().await, backend.server().await);
    never_pass_the_limit(&[&one, &other]).await;
    charged_once(&[&one, &other]).await;
    let keys = backend.redis.cli(&["KEYS", "quota:*"]);
    assert!(keys.lines().all(|key| key.starts_with("quota:quota_")), "{keys}");
    assert!(keys.lines().count() >= 2, "{keys}");
    for key in keys.lines() {
        let left: i64 = backend.redis.cli(&["TTL", key]).parse().unwrap();
        assert!(left > 0, "{key} stays for ever");
    }
}
