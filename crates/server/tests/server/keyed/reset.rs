//! `DELETE /api/v1/rate-limit/reset`

use headgate_testkit::{Redis, RedisCluster, require};
use serde_json::json;

use super::{ALGORITHMS, backend::Backend, number};

const WINDOWS: [&str; 3] = ["SLIDING_WINDOW", "SLIDING_WINDOW_COUNTER", "FIXED_WINDOW"];

async fn a_reset_covers_one_algorithm_or_all(backend: &Backend) {
    let long = [
        ("rate_limiter.sliding_window.window_size", "8640000"),
        ("rate_limiter.sliding_window_counter.window_size", "8640000"),
        ("rate_limiter.fixed_window.window_size", "8640000"),
    ];
    let server = backend.serve(&long).await;
    let left = async |algorithm: &str| {
        number(&server.remaining(&format!("algorithm={algorithm}&key=u1")).await, "remaining")
    };
    for algorithm in ALGORITHMS {
        server.check_key(&format!("algorithm={algorithm}&key=u1&permits=60")).await;
    }
    assert_eq!(server.reset_key("algorithm=FIXED_WINDOW&key=u1").await.status, 200);
    assert_eq!(left("FIXED_WINDOW").await, 100);
    assert_eq!(left("SLIDING_WINDOW").await, 40);

    let reply = server.reset_key("key=u1").await;
    let expected = json!({"status": "reset", "key": "u1"});
    assert_eq!((reply.status.as_u16(), reply.json()), (200, expected));
    for algorithm in WINDOWS {
        assert_eq!(left(algorithm).await, 100, "{algorithm}");
    }
    if !matches!(backend, Backend::Memory) {
        for algorithm in ALGORITHMS {
            let key = format!("rate_limiter:{}:u1", algorithm.to_lowercase());
            assert_eq!(backend.cli(&["EXISTS", &key]), "0", "{key}");
        }
    }
    // An unused key can be reset, too.
    assert_eq!(server.reset_key("key=nobody").await.status, 200);
}

#[tokio::test]
async fn on_memory() {
    a_reset_covers_one_algorithm_or_all(&Backend::Memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_redis() {
    a_reset_covers_one_algorithm_or_all(&Backend::redis(require!(Redis::start()))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_redis_cluster() {
    a_reset_covers_one_algorithm_or_all(&Backend::Cluster(require!(RedisCluster::start(3, 0))))
        .await;
}

#[tokio::test]
async fn a_reset_is_in_the_audit_log() {
    let server = Backend::Memory.serve(&[]).await;
    server.reset_key("algorithm=TOKEN_BUCKET&key=user:1").await;
    server.reset_key("key=user:2").await;
    let log = server.admin("GET", "/api/v1/ratelimit/audit?action=counter.reset", "").await.json();
    let targets: Vec<&str> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["target"].as_str().unwrap())
        .collect();
    assert_eq!(targets, ["rate_limiter:*:user:2", "rate_limiter:token_bucket:user:1"]);
}
