//! Limits for keys with a prefix.

use super::number;
use crate::harness::{Reply, Server};

const OVERRIDES: &str = "[{prefix: 'api_key:', token_bucket: {capacity: 1000, refill_rate: 100}}, \
     {prefix: 'api_key:free:', token_bucket: {capacity: 5}}, \
     {prefix: 'ip:', sliding_window: {max_requests: 20, window_size: 1m}}]";

fn limit(reply: &Reply) -> (u64, String) {
    (number(reply, "remaining") + 1, reply.header("ratelimit-policy").to_owned())
}

#[tokio::test]
async fn the_longest_prefix_decides() {
    let server = Server::start(&[("rate_limiter.overrides", OVERRIDES)]).await;
    let table = [
        ("TOKEN_BUCKET", "user:1", 100, 10),
        ("TOKEN_BUCKET", "api_key:1", 1000, 10),
        ("TOKEN_BUCKET", "api_key:free:1", 5, 1),
        ("TOKEN_BUCKET", "api_key", 100, 10),
        ("TOKEN_BUCKET", "ip:10.0.0.1", 100, 10),
        ("SLIDING_WINDOW", "ip:10.0.0.1", 20, 60),
        ("SLIDING_WINDOW", "api_key:1", 100, 60),
    ];
    for (algorithm, key, most, window) in table {
        let reply = server.check_key(&format!("algorithm={algorithm}&key={key}")).await;
        let policy = format!("\"{}\";q={most};w={window}", algorithm.to_lowercase());
        assert_eq!(limit(&reply), (most, policy), "{algorithm} {key}");
    }
    // The maximum number of permits is that of the override.
    let reply = server.check_key("key=api_key:free:2&permits=6").await;
    assert_eq!(reply.json()["message"], "permits must be from 1 to 5 here, got 6");
    assert_eq!(server.check_key("key=api_key:2&permits=1000").await.status, 200);
    // A client without a key has the limit of its address.
    let reply = server.check_key("algorithm=SLIDING_WINDOW").await;
    assert_eq!(number(&reply, "remaining"), 19);
}
