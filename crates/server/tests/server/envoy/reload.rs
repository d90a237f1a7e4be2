//! Changed files.

use std::{fs, time::Duration};

use super::{
    client::{Client, of},
    counted, metric, start_with,
};
use crate::harness::Server;

fn limit(domain: &str, requests: u32) -> String {
    format!(
        "domain: {domain}\ndescriptors:\n  - key: user\n    rate_limit: {{unit: year, requests_per_unit: {requests}}}\n"
    )
}

/// Waits until the condition holds: files are reloaded in the background.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    tokio::time::timeout(Duration::from_secs(120), async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{what}"));
}

async fn readiness(server: &Server) -> (String, String) {
    let body = server.get("/readyz").await.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (text(&body["status"]), text(&body["checks"]["envoy"]))
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_files_are_loaded_and_invalid_ones_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // A file that is half written would be refused, and counted.
    let write = |name: &str, text: &str| {
        let draft = folder.path().join(".draft");
        fs::write(&draft, text)
            .and_then(|()| fs::rename(&draft, folder.path().join(name)))
            .unwrap();
    };
    write("a.yaml", &limit("a", 10));
    write("notes.txt", "not for us");
    write(".hidden.yaml", "nor this");
    let server =
        start_with(folder.path().to_str().unwrap(), &[("envoy.reload_interval_seconds", "1")])
            .await;
    let client = Client::connect(server.grpc_address).await;
    let remaining = async |domain: &str| {
        let answer = client.ask(domain, &[super::client::taking(0, &[("user", "u")])]).await;
        answer.each()[0].1
    };
    client.ask("a", &[of(&[("user", "u")])]).await;
    assert_eq!(readiness(&server).await, ("ready".to_owned(), "ok".to_owned()));
    assert_eq!(metric(&server, "headgate_envoy_config_valid").await, Some(1));

    // A raised limit, and another domain; usage stays.
    write("a.yaml", &limit("a", 20));
    write("b.yaml", &limit("b", 5));
    eventually("a raised limit", async || remaining("a").await == 19).await;
    eventually("another domain", async || remaining("b").await == 5).await;

    // An invalid file: everything stays in force, and readiness reports it.
    write("a.yaml", "domain: a\ndescriptors:\n  - kee: user\n");
    eventually("degraded", async || readiness(&server).await.0 == "degraded").await;
    let (_, error) = readiness(&server).await;
    assert!(error.starts_with("error: ") && error.contains("a.yaml:3"), "{error}");
    assert!(error.contains("unknown key; known here: key, value, rate_limit"), "{error}");
    assert_eq!((remaining("a").await, remaining("b").await), (19, 5));
    assert_eq!(metric(&server, "headgate_envoy_config_valid").await, Some(0));
    let refused = "headgate_envoy_config_loads_total{outcome=\"refused\"";
    assert_eq!(metric(&server, refused).await, Some(1));

    // Two files of one domain.
    write("a.yaml", &limit("b", 7));
    eventually("a duplicate domain", async || {
        readiness(&server).await.1.contains("duplicate domain \"b\"")
    })
    .await;

    // Repaired; a removed domain is removed from the metrics, too.
    write("a.yaml", &limit("a", 30));
    fs::remove_file(folder.path().join("b.yaml")).unwrap();
    // The first file may be read before the second is removed.
    eventually("repaired", async || {
        readiness(&server).await.0 == "ready" && remaining("b").await == 0
    })
    .await;
    assert_eq!(remaining("a").await, 29);
    assert!(metric(&server, &counted("a", "user", "within_limit")).await.is_some());
    assert_eq!(metric(&server, &counted("b", "user", "within_limit")).await, None);
}
