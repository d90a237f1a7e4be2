//! Converted limits of limitador.

use std::fs;

use headgate_envoy::{convert_limitador, convert_limitador_to_rules};
use serde_json::json;

use super::{
    client::{Client, of},
    start_with,
};
use crate::harness::{RULES, Server};

/// Like limitador's sandbox: all paths but one, and that one.
const LIMITS: &str = "
- namespace: shop
  max_value: 2
  seconds: 31536000
  conditions: [\"descriptors[0]['method'] == 'GET'\", \"descriptors[0]['path'] != '/json'\"]
- namespace: shop
  max_value: 1
  seconds: 31536000
  conditions: [\"descriptors[0]['method'] == 'POST'\", \"descriptors[0]['path'] != '/json'\"]
- namespace: shop
  max_value: 4
  seconds: 31536000
  conditions: [\"descriptors[0]['method'] == 'GET'\", \"descriptors[0]['path'] == '/json'\"]
- namespace: shop
  max_value: 3
  seconds: 31536000
  conditions: [\"descriptors[0]['user'] != 'root'\"]
  variables: [\"descriptors[0]['user']\"]
- namespace: shop
  max_value: 6
  seconds: 31536000
";

#[tokio::test]
async fn converted_limits_decide_as_in_limitador() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.txt");
    fs::write(&file, LIMITS).unwrap();
    let converted = convert_limitador(&file).unwrap();
    assert!(converted.skipped.is_empty(), "{converted:?}");
    fs::write(folder.path().join("shop.yaml"), &converted.files[0].yaml).unwrap();
    let server = start_with(folder.path().to_str().unwrap(), &[]).await;
    let client = Client::connect(server.grpc_address).await;
    let limit_of = async |entries: &[(&str, &str)]| {
        let answer = client.ask("shop", &[of(entries)]).await;
        let limit = answer.0.statuses[0].current_limit.as_ref().map(|it| it.requests_per_unit);
        limit.map(|limit| (limit, answer.each()[0].1))
    };
    let request = async |method, path| limit_of(&[("method", method), ("path", path)]).await;

    // All paths but one share a counter.
    assert_eq!(request("GET", "/a").await, Some((2, 1)));
    assert_eq!(request("GET", "/b").await, Some((2, 0)));
    assert_eq!(request("POST", "/a").await, Some((1, 0)));
    assert_eq!(request("GET", "/json").await, Some((4, 3)));
    assert_eq!(request("POST", "/json").await, None);
    // Each value of a variable has a counter of its own.
    assert_eq!(limit_of(&[("user", "u1")]).await, Some((3, 2)));
    assert_eq!(limit_of(&[("user", "u2")]).await, Some((3, 2)));
    assert_eq!(limit_of(&[("user", "root")]).await, None);
    assert_eq!(limit_of(&[("generic_key", "every_request")]).await, Some((6, 5)));
}

/// Conditions that files of domains cannot express, and limits that apply together.
const CONDITIONS: &str = r#"
- namespace: shop
  max_value: 9
  seconds: 31536000
- namespace: shop
  max_value: 3
  seconds: 31536000
  name: writes
  conditions:
    - descriptors[0]['req.method'] in ['POST', 'PUT'] && descriptors[0].path.startsWith('/v1/')
    - "!descriptors[0].path.matches('/health$')"
  variables: ["descriptors[0].user"]
- namespace: shop
  max_value: 5
  seconds: 31536000
  conditions: ["descriptors[1].kind == 'batch'"]
"#;

#[tokio::test]
async fn limits_that_are_rules_decide_as_in_limitador() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.yaml");
    fs::write(&file, CONDITIONS).unwrap();
    let converted = convert_limitador_to_rules(&file).unwrap();
    assert_eq!((converted.rules, converted.skipped.len()), (3, 0), "{converted:?}");
    let server = Server::start(&[("envoy.enabled", "true"), ("envoy.rules", "true")]).await;
    let rules: serde_json::Value = yaml(&converted.yaml);
    let reply = server.admin("PUT", RULES, &json!({"rules": rules}).to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let client = Client::connect(server.grpc_address).await;
    let request = async |method, path, user| {
        let entries = [("req.method", method), ("path", path), ("user", user)];
        let answer = client.ask("shop", &[of(&entries), of(&[("kind", "batch")])]).await;
        (answer.is_over(), answer.each()[0].1, answer.each()[1].1)
    };
    assert_eq!(request("POST", "/v1/a", "u1").await, (false, 2, 4));
    assert_eq!(request("PUT", "/v1/b", "u1").await, (false, 1, 3));
    assert_eq!(request("PUT", "/v1/b", "u2").await, (false, 2, 2));
    // Only the limits on all requests and on batches apply.
    assert_eq!(request("GET", "/v1/a", "u1").await, (false, 5, 1));
    assert_eq!(request("POST", "/v1/health", "u1").await, (false, 4, 0));
    // A denied request takes nothing.
    assert_eq!(request("POST", "/v1/health", "u1").await, (true, 4, 0));
}

/// Returns the rules of a converted file, whose values are JSON.
fn yaml(text: &str) -> serde_json::Value {
    let mut rules = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', 'r'])) {
        let (key, value) = line.split_once(": ").unwrap_or((line.trim_end_matches(':'), "{}"));
        if key.starts_with("  - ") {
            rules.push(json!({}));
        }
        let rule = rules.last_mut().unwrap();
        let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
        match key.trim().trim_start_matches("- ") {
            quoted if quoted.starts_with('"') => rule["when"][quoted.trim_matches('"')] = value,
            plain => rule[plain] = value,
        }
    }
    json!(rules)
}
