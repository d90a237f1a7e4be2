//! Converted limits of limitador.

use std::fs;

use headgate_envoy::convert_limitador;

use super::{
    client::{Client, of},
    start_with,
};

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
