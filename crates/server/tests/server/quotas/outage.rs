//! Outages of Redis, of PostgreSQL, and of both.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use headgate_testkit::require;
use tokio::{task::JoinHandle, time::timeout};

use super::{
    QUOTAS,
    backend::{Backend, until},
    error, policy,
};
use crate::harness::Reply;

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_the_ledger_decides() {
    let backend = require!(Backend::start());
    let server = backend.server_with(&[("quota.reconcile_interval_seconds", "1")]).await;
    let id = server.create_quota(&policy("no-redis", 10)).await;
    assert_eq!(server.increment(&id, 4, None).await.status, 200);
    backend.redis.cli(&["FLUSHALL"]);
    assert_eq!(server.used(&id).await, 4, "a missing counter is made again");
    assert_eq!(server.increment(&id, 2, None).await.json()["used"], 6);

    backend.redis.kill();
    assert_eq!(server.increment(&id, 3, None).await.json()["used"], 9);
    assert_eq!(server.used(&id).await, 9);
    assert_eq!(server.increment(&id, 2, None).await.status, 429);
    assert_eq!(server.increment(&id, 1, None).await.json()["remaining"], 0);

    backend.redis.restart();
    until(async || server.get("/readyz").await.text.contains(r#""status":"ready""#)).await;
    assert_eq!(server.increment(&id, 1, None).await.status, 429, "nothing was forgotten");
    assert_eq!(server.used(&id).await, 10);
    // Something else wrote to the counter: the reconciler corrects it.
    let key = backend.redis.cli(&["KEYS", "quota:*"]);
    backend.redis.cli(&["DEL", &key]);
    until(async || backend.redis.cli(&["EXISTS", &key]) == "1").await;
    let metrics = server.get("/metrics").await.text;
    assert!(metrics.contains("headgate_quota_counter_drift"), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_postgres_increments_fail_and_usage_is_kept() {
    let backend = require!(Backend::start());
    // Short enough to wait for, long enough for a busy machine.
    let server = backend.server_with(&[("database.connect_timeout_seconds", "5")]).await;
    let id = server.create_quota(&policy("no-postgres", 10)).await;
    assert_eq!(server.increment(&id, 4, Some("before")).await.status, 200);
    backend.postgres.stop();
    let refused = server.increment(&id, 1, Some("during")).await;
    let (status, code, _) = error(&refused);
    assert_eq!(status, 503, "{}", refused.text);
    let known = ["SYS_QUOTA_DATABASE_UNAVAILABLE", "SYS_QUOTA_UNCONFIRMED"];
    assert!(known.contains(&code.as_str()), "{code}");
    let refused = server.increment(&id, 1, Some("during")).await;
    assert_eq!(error(&refused).1, "SYS_QUOTA_DATABASE_UNAVAILABLE");
    let written = server.admin("POST", QUOTAS, &policy("more", 1).to_string()).await;
    assert_eq!(error(&written).0, 503, "{}", written.text);

    backend.redis.kill();
    until(async || server.increment(&id, 1, Some("during")).await.status == 502).await;
    let both_down = server.increment(&id, 1, Some("during")).await;
    assert_eq!(error(&both_down).1, "SYS_QUOTA_REDIS_ERROR", "{}", both_down.text);
    assert_eq!(error(&server.quota_usage(&id).await).1, "SYS_QUOTA_REDIS_ERROR");

    backend.redis.restart();
    backend.postgres.start_again();
    until(async || server.increment(&id, 1, Some("during")).await.status == 200).await;
    assert_eq!(server.used(&id).await, 5, "what was refused was not charged");
    let replay = server.increment(&id, 4, Some("before")).await;
    assert_eq!(replay.header("idempotent-replayed"), "true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_of_another_server_is_loaded_at_once() {
    let backend = require!(Backend::start());
    let (one, other) = (backend.server().await, backend.server().await);
    let id = one.create_quota(&policy("shared", 10)).await;
    assert_eq!(other.increment(&id, 1, None).await.status, 200);
    one.admin("PUT", &format!("{QUOTAS}/{id}"), &policy("shared", 1).to_string()).await;
    until(async || other.quota_usage(&id).await.json()["limit"] == 1).await;
    assert_eq!(other.increment(&id, 1, None).await.status, 429);
    one.admin("DELETE", &format!("{QUOTAS}/{id}"), "").await;
    until(async || other.quota_usage(&id).await.status == 404).await;
}

/// Another session holds what `statement` locks until [`let_go`], or for two minutes.
async fn hold(backend: &Arc<Backend>, statement: &str) -> JoinHandle<String> {
    let sql = format!(
        "BEGIN; {statement}; \
         DO $$ BEGIN FOR i IN 1..2400 LOOP \
         EXIT WHEN EXISTS (SELECT FROM pg_class WHERE relname = 'enough'); \
         PERFORM pg_sleep(0.05); END LOOP; END $$; COMMIT"
    );
    let blocked = Arc::clone(backend);
    let holding = tokio::task::spawn_blocking(move || blocked.postgres.psql(&sql));
    let held = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    until(async || backend.postgres.psql(held) == "1").await;
    holding
}

fn let_go(backend: &Backend) {
    backend.postgres.psql("CREATE TABLE enough ()");
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_increments_are_bounded_while_the_ledger_is_slow() {
    let backend = Arc::new(require!(Backend::start()));
    let keys = [("quota.queue_capacity", "1"), ("server.request_timeout_seconds", "600")];
    let server = backend.server_with(&keys).await;
    let id = server.create_quota(&policy("slow", 100)).await;
    assert_eq!(server.increment(&id, 1, None).await.status, 200);
    let holding = hold(&backend, "LOCK TABLE quota.quota_usages").await;
    let mut asking: FuturesUnordered<_> = (0..16).map(|_| server.increment(&id, 1, None)).collect();
    let first = timeout(Duration::from_secs(60), asking.next()).await;
    let first = first.expect("a refusal while the ledger is blocked").unwrap();
    let overloaded = |reply: &Reply| error(reply).1 == "SYS_QUOTA_OVERLOADED";
    assert!(overloaded(&first), "{}", first.text);
    let_go(&backend);
    let mut replies: Vec<Reply> = asking.collect().await;
    replies.push(first);
    holding.await.unwrap();
    let admitted = replies.iter().filter(|reply| reply.status == 200).count() as u64;
    for reply in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!(reply.status, 503, "{}", reply.text);
        // On a busy machine, the ledger is blocked for longer than a statement may take.
        let late = ["SYS_QUOTA_DATABASE_UNAVAILABLE", "SYS_QUOTA_BUSY", "SYS_QUOTA_UNCONFIRMED"];
        if !late.contains(&error(reply).1.as_str()) {
            assert!(overloaded(reply), "{}", reply.text);
            assert_eq!(reply.header("retry-after"), "1");
        }
    }
    assert_eq!(server.used(&id).await, 1 + admitted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_quota_is_busy_and_others_are_charged() {
    let backend = Arc::new(require!(Backend::start()));
    let server = backend.server().await;
    let id = server.create_quota(&policy("locked", 100)).await;
    let other = server.create_quota(&policy("free", 100)).await;
    assert_eq!(server.increment(&id, 1, None).await.status, 200);
    let lock = "SELECT FROM quota.quota_usages WHERE policy_id =";
    let holding = hold(&backend, &format!("{lock} '{id}' FOR UPDATE")).await;
    let busy = server.increment(&id, 1, None).await;
    let (status, code, message) = error(&busy);
    assert_eq!((status, code.as_str()), (503, "SYS_QUOTA_BUSY"), "{}", busy.text);
    assert_eq!(message, "the database is busy with this quota: nothing was changed, try again");
    assert_eq!(busy.header("retry-after"), "1");
    assert_eq!(server.increment(&other, 1, None).await.status, 200);
    assert!(server.get("/readyz").await.text.contains(r#""status":"ready""#));
    let_go(&backend);
    holding.await.unwrap();
    assert_eq!(server.increment(&id, 1, None).await.json()["used"], 2);
}
