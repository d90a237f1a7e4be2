//! Settings and files of Envoy's requests.

use std::{fs, slice, time::Duration};

use headgate_testkit::free_port;
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

use super::Reloadable;
use crate::envoy::client::{Client, of};

const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a domain that limits the keys `small` and `large`.
fn domain(small: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, small);
    folder
}

fn write(folder: &TempDir, small: u32) {
    let text = format!(
        "domain: d\ndescriptors:\n\
         - {{key: small, rate_limit: {{unit: year, requests_per_unit: {small}}}}}\n\
         - {{key: large, rate_limit: {{unit: year, requests_per_unit: 100}}}}\n"
    );
    fs::write(folder.path().join("d.yaml"), text).unwrap();
}

fn yaml(folder: &TempDir, more: &str) -> String {
    format!("envoy: {{enabled: true, config_dir: {}{more}}}\n", folder.path().display())
}

#[tokio::test]
async fn what_a_denied_request_consumes() {
    let folder = domain(1);
    let server = Reloadable::start(&yaml(&folder, "")).await;
    let client = Client::connect(server.server.grpc_address).await;
    let both = [of(&[("small", "a")]), of(&[("large", "a")])];
    let left = async || client.ask("d", &both).await.each()[1].1;
    assert_eq!((left().await, left().await, left().await), (99, 99, 99));
    server.reload(&yaml(&folder, ", denied_consumes: all")).await;
    assert_eq!((left().await, left().await), (98, 97));
    server.reload(&yaml(&folder, ", denied_consumes: none")).await;
    assert_eq!((left().await, left().await), (97, 97));
}

#[tokio::test]
async fn quota_mode() {
    let folder = domain(0);
    let server = Reloadable::start(&yaml(&folder, "")).await;
    let client = Client::connect(server.server.grpc_address).await;
    let both = [of(&[("small", "a")]), of(&[("large", "a")])];
    let is_over = async || client.ask("d", &both).await.is_over();
    assert!(is_over().await);
    server.reload(&yaml(&folder, ", quota_mode: true")).await;
    assert!(!is_over().await, "one of its limits has room");
    server.reload(&yaml(&folder, "")).await;
    assert!(is_over().await);
}

#[tokio::test]
async fn failure_mode() {
    let folder = domain(1);
    let redis = format!(
        "redis: {{url: 'redis://127.0.0.1:{}', connect_timeout_seconds: 1}}\n",
        free_port()
    );
    let yaml = |mode: &str| format!("{redis}{}", yaml(&folder, &format!(", fail_mode: {mode}")));
    let server = Reloadable::start(&yaml("open")).await;
    let client = Client::connect(server.server.grpc_address).await;
    let small = of(&[("small", "a")]);
    let is_over = async || client.ask("d", slice::from_ref(&small)).await.is_over();
    assert_eq!((is_over().await, is_over().await), (false, false));
    server.reload(&yaml("closed")).await;
    assert!(is_over().await);
    server.reload(&yaml("capped")).await;
    assert_eq!((is_over().await, is_over().await), (false, true));
}

#[tokio::test]
async fn one_file_instead_of_a_folder_and_the_interval_of_reading_it() {
    let (folder, other) = (domain(1), domain(2));
    let server = Reloadable::start(&yaml(&folder, ", reload_interval_seconds: 3600")).await;
    let client = Client::connect(server.server.grpc_address).await;
    let limit = async || {
        let answer = client.ask("d", &[of(&[("small", "a")])]).await;
        answer.0.statuses[0].current_limit.as_ref().unwrap().requests_per_unit
    };
    assert_eq!(limit().await, 1);
    let file = other.path().join("d.yaml");
    let yaml = |interval: u32| {
        format!(
            "envoy: {{enabled: true, config_file: {}, reload_interval_seconds: {interval}}}\n",
            file.display()
        )
    };
    server.reload(&yaml(3600)).await;
    assert_eq!(limit().await, 2);
    server.reload(&yaml(1)).await;
    write(&other, 3);
    let read = async {
        while limit().await != 3 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, read).await.expect("the changed file");
}

#[tokio::test]
async fn rules_over_descriptors() {
    let folder = domain(5);
    let server = Reloadable::start(&yaml(&folder, "")).await;
    let rule = serde_json::json!({"name": "r", "per": ["small"], "limit": 1,
        "window_seconds": 8_640_000});
    server.server.create_rule(&rule).await;
    let client = Client::connect(server.server.grpc_address).await;
    let left = async || client.ask("d", &[of(&[("small", "a")])]).await.each()[0];
    assert_eq!(left().await, (false, 4));
    server.reload(&yaml(&folder, ", rules: true")).await;
    assert_eq!((left().await, left().await), ((false, 0), (true, 0)));
    server.reload(&yaml(&folder, "")).await;
    assert_eq!(left().await, (false, 2));
}
