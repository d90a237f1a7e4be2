//! Penalties of repeat offenders.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Reply, Server};

const HERE: &str = "198.51.100.1";

fn limits(penalty: &Value) -> Value {
    json!({"rate_limit": {"public_per_minute": 2, "penalty": penalty}})
}

fn retry_after(reply: &Reply) -> u64 {
    reply.is(429);
    reply.header("retry-after").unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_penalty_is_switched_on_and_off_while_the_node_runs() {
    let server = Server::start().await;
    let penalty = json!({"first_seconds": 100, "max_seconds": 300});
    server.configure("user-api", limits(&penalty)).await;
    let ask = async || server.get_from(HERE, "/v1/policies/current").await;
    ask().await.is(200);
    ask().await.is(200);
    assert_eq!(retry_after(&ask().await), 100, "longer than the limit itself");
    server.clock.advance(Duration::from_secs(60));
    assert_eq!(retry_after(&ask().await), 40, "an early retry does not extend it");
    server.get_from("198.51.100.2", "/v1/policies/current").await.is(200);
    let limited = server.get("/metrics").await.text;
    let line = r#"rate_limited_total{class="public",limit="penalty",service="user-api"} 1"#;
    assert!(limited.contains(line), "{limited}");

    server.configure("user-api", limits(&Value::Null)).await;
    ask().await.is(200);
    ask().await.is(200);
    assert_eq!(retry_after(&ask().await), 30, "the limit itself, which has refilled");
}

#[tokio::test]
async fn invalid_penalties_are_refused() {
    let server = Server::start().await;
    for (penalty, pointer) in [
        (json!({"first_seconds": 0}), "/rate_limit/penalty/first_seconds"),
        (json!({"first_seconds": 60, "max_seconds": 30}), "/rate_limit/penalty/max_seconds"),
        (json!({"frist_seconds": 60}), "/rate_limit/penalty/frist_seconds"),
        (json!(60), "/rate_limit/penalty"),
    ] {
        let config = json!({"config_json": {"rate_limit": {"penalty": penalty}}});
        for service in ["user-api", "relay"] {
            let reply = server.put(service, &config).await;
            reply.is_refused(400, "INVALID_CONFIG");
            assert_eq!(reply.json()["details"]["problems"][0]["pointer"], pointer);
        }
    }
}
