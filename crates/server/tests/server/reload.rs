//! `POST /api/v1/config/reload`: receivers of events, Envoy's settings, and refusals.

mod envoy;
mod metering;
mod schedule;
mod sign_in;

use std::{fs, slice, time::Duration};

use headgate_testkit::{Postgres, require};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::{
    envoy::client::{Answer, Client, of, request},
    events::{
        receiver::{Answer as Response, Receiver},
        support::exhausted,
    },
    harness::{Reply, Server},
};

const RELOAD: &str = "/api/v1/config/reload";
const SECRET: &str = "a-secret-of-the-receiver";

/// A server whose configuration file the test changes.
struct Reloadable {
    server: Server,
    folder: TempDir,
}

impl Reloadable {
    async fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headgate.yaml");
        fs::write(&file, yaml).unwrap();
        Self { server: Server::start_with_file(&file, &[]).await, folder }
    }

    fn write(&self, yaml: &str) {
        fs::write(self.folder.path().join("headgate.yaml"), yaml).unwrap();
    }

    async fn try_reload(&self, yaml: &str) -> Reply {
        self.write(yaml);
        self.server.admin("POST", RELOAD, "").await
    }

    /// Replaces the file and reloads with this token.
    async fn reload_with(&self, token: &str, yaml: &str) -> Reply {
        self.write(yaml);
        self.server.with_token(Some(token), "POST", RELOAD, "").await
    }

    /// Replaces the file and reloads; returns the changed keys that are in force.
    async fn reload(&self, yaml: &str) -> Vec<String> {
        let reply = self.try_reload(yaml).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let applied = reply.json()["applied"].as_array().unwrap().clone();
        applied.iter().map(|change| change["key"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_are_added_changed_and_removed() {
    let [first, second] = [Receiver::start(&[]).await, Receiver::start(&[]).await];
    let webhooks = |receiver: &Receiver| format!("webhooks: {}\n", receiver.config(SECRET, ""));
    let server = Reloadable::start("").await;
    exhausted(&server.server, "before").await;

    // Events that happened before are delivered, too.
    assert_eq!(server.reload(&webhooks(&first)).await, ["webhooks"]);
    assert_eq!(first.until(|got| got.len() == 2).await.len(), 2);

    let only = webhooks(&second).replace("}]", ", events: [QUOTA_EXCEEDED]}]");
    server.reload(&only).await;
    exhausted(&server.server, "after").await;
    let got = second.until(|got| got.len() == 2).await;
    assert!(got.iter().all(|one| one.header("x-headgate-event") == "QUOTA_EXCEEDED"));
    assert_eq!(first.until(|_| true).await.len(), 2, "it is not a receiver any more");

    let listed = server.server.admin("GET", "/api/v1/events?deliveries=true", "").await.json();
    let sinks = |listed: &Value| listed["events"][0]["deliveries"].as_array().map_or(0, Vec::len);
    assert_eq!(sinks(&listed), 1, "{listed}");
    server.reload("").await;
    let listed = server.server.admin("GET", "/api/v1/events?deliveries=true", "").await.json();
    assert_eq!(sinks(&listed), 0, "{listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_does_not_delay_its_successor_for_long() {
    let [silent, next] = [Receiver::start(&[Response::Silence]).await, Receiver::start(&[]).await];
    let webhooks = |receiver: &Receiver| {
        let config = receiver.config(SECRET, ", timeout_seconds: 60");
        format!("webhooks: {config}\n")
    };
    let server = Reloadable::start(&webhooks(&silent)).await;
    exhausted(&server.server, "tenant").await;
    silent.until(|got| got.len() == 1).await;
    server.reload(&webhooks(&next)).await;
    next.until(|got| got.len() == 2).await;
}

#[tokio::test]
async fn envoys_folder_and_settings_are_live() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (folder, requests) in folders.iter().zip([1, 2]) {
        let domain = format!(
            "domain: d\ndescriptors:\n  - key: user\n    rate_limit: {{unit: year, \
             requests_per_unit: {requests}}}\n"
        );
        fs::write(folder.path().join("d.yaml"), domain).unwrap();
    }
    let yaml = |folder: usize, more: &str| {
        format!(
            "envoy: {{enabled: true, config_dir: {}{more}}}\n",
            folders[folder].path().display()
        )
    };
    let server = Reloadable::start(&yaml(0, "")).await;
    let client = Client::connect(server.server.grpc_address).await;
    let user = of(&[("user", "u1")]);
    let is_over = async || client.ask("d", slice::from_ref(&user)).await.is_over();
    assert!(!is_over().await);
    assert!(is_over().await);

    assert_eq!(server.reload(&yaml(1, "")).await, ["envoy.config_dir"]);
    assert!(!is_over().await, "another folder, another limit; the first request counts");
    assert!(is_over().await);
    server.reload(&yaml(1, ", shadow_mode: true")).await;
    assert!(!is_over().await);
    server.reload(&yaml(1, ", auth: token")).await;
    let asked = client.0.clone().should_rate_limit(request("d", slice::from_ref(&user))).await;
    let status = asked.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unauthenticated);
    server.reload(&yaml(1, ", dynamic_metadata: true, response_headers: all")).await;
    let Answer(response) = client.ask("d", slice::from_ref(&user)).await;
    assert!(response.dynamic_metadata.is_some());
    assert!(!response.response_headers_to_add.is_empty());

    // Another source needs a restart, and without it there would be none.
    let reply = server.try_reload("envoy: {enabled: true, xds: {url: 'http://127.0.0.1:1'}}\n");
    let reply = reply.await;
    assert_eq!(reply.status, 422, "{}", reply.text);
    assert!(reply.text.contains("restart the server to apply envoy.xds.url"), "{}", reply.text);
    assert!(is_over().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_recorded_changes_nothing() {
    let postgres = require!(Postgres::start());
    let yaml = |requests: u32| {
        format!(
            "database: {{url: '{}'}}\nrate_limiter: {{sliding_window: {{max_requests: {requests}}}}}\n",
            postgres.url()
        )
    };
    let server = Reloadable::start(&yaml(5)).await;
    let limit = async || {
        let path = "/api/v1/rate-limit/remaining?algorithm=SLIDING_WINDOW&key=u1";
        server.server.get(path).await.json()["remaining"].clone()
    };
    postgres.stop();
    let reply = server.try_reload(&yaml(9)).await;
    assert_eq!(reply.status, 503, "{}", reply.text);
    assert_eq!(limit().await, 5);
    postgres.start_again();
    // A connection takes long on a busy machine.
    let recorded = async { while server.try_reload(&yaml(9)).await.status != 200 {} };
    timeout(Duration::from_secs(120), recorded).await.expect("a reload that is on record");
    assert_eq!(limit().await, 9);
    let audit = server.server.admin("GET", "/api/v1/ratelimit/audit", "").await.json();
    assert_eq!(audit["entries"][0]["action"], "config.reload");
    assert_eq!(
        audit["entries"][0]["after"],
        json!({"rate_limiter.sliding_window.max_requests": 9})
    );
}
