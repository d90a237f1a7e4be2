//! Metrics of quotas, and keys of their counters.

use headgate_testkit::require;

use super::{backend::Backend, policy};
use crate::harness::Server;

#[tokio::test]
async fn increments_are_counted_by_outcome() {
    let server = Server::start(&[]).await;
    let id = server.create_quota(&policy("counted", 10)).await;
    server.increment(&id, 9, Some("a")).await;
    server.increment(&id, 9, Some("a")).await;
    server.increment(&id, 8, Some("a")).await;
    server.increment(&id, 2, None).await;
    server.increment(&id, 0, None).await;
    server.increment("quota_unknown", 1, None).await;
    let metrics = server.get("/metrics").await.text;
    let counted = |outcome: &str, count: u32| {
        let line = format!(
            r#"headgate_quota_increments_total{{outcome="{outcome}",service="headgate"}} {count}"#
        );
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    };
    counted("admitted", 1);
    counted("replayed", 1);
    counted("exceeded", 1);
    counted("invalid", 3);
    counted("failed", 0);
    for line in [
        r#"headgate_quota_policies{service="headgate"} 1"#,
        r#"headgate_quota_queue_depth{service="headgate"} 0"#,
        r#"headgate_quota_commit_size_count{service="headgate"} 4"#,
        r#"headgate_quota_commit_failures_total{service="headgate"} 0"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    assert!(!metrics.contains(&id), "no label holds an id");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prefix_of_the_counters_keys_is_the_configured_one() {
    let backend = require!(Backend::start());
    let server = backend.server_with(&[("redis.key_prefix", "budget:")]).await;
    let id = server.create_quota(&policy("prefix", 10)).await;
    server.increment(&id, 3, None).await;
    let keys = backend.redis.cli(&["KEYS", "*"]);
    let month =
        &server.quota_usage(&id).await.json()["period_start"].as_str().unwrap()[..7].to_owned();
    assert_eq!(keys, format!("budget:{id}:{month}"));
}
