//! Configurations of a management server: a real go-control-plane.

use std::{path::Path, process::Command, time::Duration};

use futures_util::StreamExt as _;
use headgate_testkit::{Certificates, ManagementServer, Skip, require};
use serde_json::Value;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::{
    client::{Client, of, request, taking},
    counted, metric,
    refusals::load,
};
use crate::{grpc::client::channel, harness::Server};

/// A domain with a limit per user and year. The unit is a number: the newest release of the Go
/// types has no name for it.
fn limit(domain: &str, requests: u32) -> String {
    format!(
        r#"{{"name": "{domain}", "domain": "{domain}", "descriptors": [
            {{"key": "user", "rateLimit": {{"unit": 6, "requestsPerUnit": {requests}}}}}
        ]}}"#
    )
}

/// Waits until the condition holds: configurations arrive in the background.
async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    tokio::time::timeout(Duration::from_secs(120), async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("{what}"));
}

async fn start_management() -> Result<ManagementServer, Skip> {
    tokio::task::spawn_blocking(ManagementServer::start).await.unwrap()
}

/// Starts a server that follows the management server on `port`.
async fn start(port: u16, keys: &[(&str, &str)]) -> Server {
    start_at(&format!("http://127.0.0.1:{port}"), keys).await
}

async fn start_at(url: &str, keys: &[(&str, &str)]) -> Server {
    Server::start(&[&[("envoy.enabled", "true"), ("envoy.xds.url", url)], keys].concat()).await
}

/// The error of a request.
async fn refusal(client: &Client, domain: &str) -> Status {
    let asked = request(domain, &[of(&[("user", "u")])]);
    client.0.clone().should_rate_limit(asked).await.unwrap_err()
}

/// Restarts the management server without blocking other tasks.
async fn restarted(mut management: ManagementServer) -> ManagementServer {
    let restart = move || {
        management.restart();
        management
    };
    tokio::task::spawn_blocking(restart).await.unwrap()
}

/// The status of `/readyz`, and its field about Envoy.
async fn readiness(server: &Server) -> (u16, String, String) {
    let reply = server.get("/readyz").await;
    let body = reply.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (reply.status.as_u16(), text(&body["status"]), text(&body["checks"]["envoy"]))
}

/// Units left of a user's limit.
async fn remaining(client: &Client, domain: &str) -> u32 {
    client.ask(domain, &[taking(0, &[("user", "u")])]).await.each()[0].1
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_of_the_management_server_are_put_in_force() {
    let management = require!(start_management().await);
    // It is not ready before the first configuration, however long that takes.
    let keys = [("envoy.xds.initial_wait_seconds", "3600")];
    let server = start(management.port(), &keys).await;
    let client = Client::connect(server.grpc_address).await;

    // Nothing is decided before the first configuration, and readiness reports it.
    let (status, word, why) = readiness(&server).await;
    assert_eq!((status, word.as_str()), (503, "starting"));
    let waits = format!(
        "error: waiting for the first configuration from http://127.0.0.1:{}",
        management.port()
    );
    assert!(why.starts_with(&waits), "{why}");
    let connected = "connected, no configuration for node \"default\" yet";
    eventually("connected", async || readiness(&server).await.2.contains(connected)).await;
    assert_eq!(metric(&server, "headgate_envoy_xds_connected").await, Some(0));
    let refused = refusal(&client, "a").await;
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert!(refused.message().contains("check envoy.xds.url"), "{refused:?}");
    let mut health = HealthClient::new(channel(server.grpc_address).await);
    let watched = health.watch(HealthCheckRequest::default()).await.unwrap();
    let mut watched = watched.into_inner().map(|status| status.unwrap().status());
    assert_eq!(watched.next().await, Some(ServingStatus::NotServing));

    management.serve("1", &format!("[{}]", limit("a", 3)));
    eventually("the first configuration", async || management.is_accepted("1")).await;
    assert_eq!(readiness(&server).await, (200, "ready".to_owned(), "ok".to_owned()));
    assert_eq!(watched.next().await, Some(ServingStatus::Serving));
    let checked = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(checked.status(), ServingStatus::Serving);
    assert_eq!(metric(&server, "headgate_envoy_xds_connected").await, Some(1));
    let subscribed = management.heard().into_iter().find(|it| it.event == "subscribed").unwrap();
    assert_eq!((subscribed.node.as_str(), subscribed.version.as_str()), ("default", ""));
    for over in [false, false, false, true] {
        assert_eq!(client.ask("a", &[of(&[("user", "u")])]).await.is_over(), over);
    }
    assert_eq!(metric(&server, &counted("a", "user", "over_limit")).await, Some(1));

    // A raised limit, and another domain; usage stays.
    management.serve("2", &format!("[{}, {}]", limit("a", 10), limit("b", 5)));
    eventually("an update", async || management.is_accepted("2")).await;
    assert_eq!((remaining(&client, "a").await, remaining(&client, "b").await), (7, 5));

    // A removed domain is removed from the metrics, too.
    management.serve("3", &format!("[{}]", limit("b", 6)));
    eventually("a removal", async || management.is_accepted("3")).await;
    assert_eq!((remaining(&client, "a").await, remaining(&client, "b").await), (0, 6));
    assert_eq!(metric(&server, &counted("a", "user", "over_limit")).await, None);
    let loaded = "headgate_envoy_config_loads_total{outcome=\"loaded\"";
    assert_eq!(metric(&server, loaded).await, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_update_is_refused_and_changes_nothing() {
    let management = require!(start_management().await);
    management.serve("1", &format!("[{}]", limit("a", 3)));
    let server = start(management.port(), &[]).await;
    let client = Client::connect(server.grpc_address).await;
    eventually("the first configuration", async || management.is_accepted("1")).await;

    let unit = limit("b", 5).replace("\"unit\": 6", "\"unit\": 0");
    // go-control-plane sends them in another order each time.
    let others: Vec<String> = (0..6).map(|i| unit.replace("\"b\"", &format!("\"b{i}\""))).collect();
    let began = Instant::now();
    management.serve("2", &format!("[{}, {unit}, {}]", limit("a", 9), others.join(", ")));
    let refusals = || management.heard().into_iter().find(|it| it.event == "refused");
    eventually("a refusal", async || refusals().is_some()).await;
    let refusal = refusals().unwrap();
    assert_eq!(refusal.version, "1", "the last version that was accepted");
    let expected = "resource \"b\": descriptors[0].rate_limit.unit: missing; expected one of";
    assert!(refusal.message.contains(expected), "{refusal:?}");
    assert_eq!((remaining(&client, "a").await, remaining(&client, "b").await), (3, 0));
    let (status, word, why) = readiness(&server).await;
    assert_eq!((status, word.as_str()), (200, "degraded"));
    assert!(why.starts_with("error: version \"2\" of http://") && why.contains(expected), "{why}");
    assert_eq!(metric(&server, "headgate_envoy_config_valid").await, Some(0));

    // The server resends it: each is answered after a pause, and all are counted as one.
    let refusals = || management.heard().iter().filter(|it| it.event == "refused").count();
    eventually("two more refusals", async || refusals() >= 3).await;
    assert!(began.elapsed() > Duration::from_secs(3), "answered without a pause");
    let refused = "headgate_envoy_config_loads_total{outcome=\"refused\"";
    assert_eq!(metric(&server, refused).await, Some(1));

    // Two resources of one domain.
    let twice = limit("a", 4).replace("\"name\": \"a\"", "\"name\": \"c\"");
    management.serve("3", &format!("[{}, {twice}]", limit("a", 5)));
    eventually("a duplicate domain", async || {
        readiness(&server).await.2.contains("duplicate domain \"a\"")
    })
    .await;

    management.serve("4", &format!("[{}]", limit("a", 8)));
    eventually("repaired", async || management.is_accepted("4")).await;
    assert_eq!(remaining(&client, "a").await, 8);
    assert_eq!(readiness(&server).await, (200, "ready".to_owned(), "ok".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_configuration_stays_while_the_management_server_is_down() {
    let mut management = require!(start_management().await);
    management.serve("1", &format!("[{}]", limit("a", 3)));
    let server = start(management.port(), &[]).await;
    let client = Client::connect(server.grpc_address).await;
    eventually("the first configuration", async || management.is_accepted("1")).await;
    assert!(!client.ask("a", &[of(&[("user", "u")])]).await.is_over());

    management.kill();
    eventually("reported", async || readiness(&server).await.1 == "degraded").await;
    let (status, _, why) = readiness(&server).await;
    assert_eq!(status, 200);
    assert!(why.contains("is unreachable, the last configuration stays in force"), "{why}");
    assert_eq!(metric(&server, "headgate_envoy_xds_connected").await, Some(0));
    assert!(metric(&server, "headgate_envoy_xds_failures_total").await > Some(0));
    assert_eq!(remaining(&client, "a").await, 2);

    // It comes back with the same configuration.
    let accepted =
        |it: &ManagementServer| it.heard().iter().filter(|heard| heard.event == "accepted").count();
    let before = accepted(&management);
    let mut management = restarted(management).await;
    eventually("the same again", async || accepted(&management) > before).await;
    assert_eq!(readiness(&server).await, (200, "ready".to_owned(), "ok".to_owned()));
    assert_eq!(remaining(&client, "a").await, 2);
    let loaded = "headgate_envoy_config_loads_total{outcome=\"loaded\"";
    assert_eq!(
        metric(&server, loaded).await,
        Some(1),
        "an unchanged configuration is not loaded again"
    );

    // Changed while it was down.
    management.kill();
    management.serve("2", &format!("[{}]", limit("a", 30)));
    let management = restarted(management).await;
    eventually("something new", async || management.is_accepted("2")).await;
    assert_eq!(remaining(&client, "a").await, 29);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_first_configuration_it_becomes_ready_but_decides_nothing() {
    let server =
        start(headgate_testkit::free_port(), &[("envoy.xds.initial_wait_seconds", "1")]).await;
    eventually("ready at last", async || readiness(&server).await.0 == 200).await;
    let (_, word, why) = readiness(&server).await;
    assert_eq!(word, "degraded");
    assert!(why.contains("waiting for the first configuration"), "{why}");
    let client = Client::connect(server.grpc_address).await;
    let refused = refusal(&client, "a").await;
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_too_large_is_not_read() {
    let management = require!(start_management().await);
    let large = limit(&"a".repeat(100_000), 3);
    management.serve("1", &format!("[{large}]"));
    let server = start(management.port(), &[("envoy.xds.max_message_bytes", "65536")]).await;
    eventually("reported", async || readiness(&server).await.2.contains("too large")).await;

    management.serve("2", &format!("[{}]", limit("a", 3)));
    eventually("a smaller one", async || management.is_accepted("2")).await;
    let client = Client::connect(server.grpc_address).await;
    assert_eq!(remaining(&client, "a").await, 3);
}

fn openssl(folder: &Path, arguments: &str, more: &[&str]) -> Result<(), Skip> {
    let mut command = Command::new("openssl");
    command.args(arguments.split(' ')).args(more).current_dir(folder);
    let made = command.output();
    let made =
        made.map_err(|error| Skip { component: "openssl".into(), reason: error.to_string() })?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// Creates an authority, and certificates of the server and of the client.
fn certificates(folder: &Path) -> Result<(), Skip> {
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(
        folder,
        &format!("req -x509 {new_key} -days 2 -subj /CN=authority -keyout ca.key -out ca.crt"),
        &[],
    )?;
    for name in ["server", "client"] {
        let request = format!("req {new_key} -subj /CN={name} -keyout {name}.key -out {name}.csr");
        openssl(folder, &request, &["-addext", "subjectAltName=DNS:management.example"])?;
        let sign = format!(
            "x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out {name}.crt"
        );
        openssl(folder, &sign, &[])?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_mutual() {
    let folder = tempfile::tempdir().unwrap();
    require!(certificates(folder.path()));
    let file = |name: &str| folder.path().join(name);
    let own = Certificates {
        cert: file("server.crt"),
        key: file("server.key"),
        client_ca: file("ca.crt"),
    };
    let management =
        tokio::task::spawn_blocking(move || ManagementServer::start_with_tls(own)).await.unwrap();
    let management = require!(management);
    management.serve("1", &format!("[{}]", limit("a", 3)));
    let url = format!("https://127.0.0.1:{}", management.port());
    let (ca, cert, key) = (file("ca.crt"), file("client.crt"), file("client.key"));
    let keys = [
        ("envoy.xds.ca_file", ca.to_str().unwrap()),
        ("envoy.xds.server_name", "management.example"),
    ];
    // Without a client certificate it is refused.
    let stranger = start_at(&url, &keys).await;
    eventually("refused", async || {
        metric(&stranger, "headgate_envoy_xds_failures_total").await > Some(0)
    })
    .await;
    assert!(!management.is_accepted("1"));

    let own = [
        ("envoy.xds.cert_file", cert.to_str().unwrap()),
        ("envoy.xds.key_file", key.to_str().unwrap()),
    ];
    let server = start_at(&url, &[&keys[..], &own].concat()).await;
    eventually("the first configuration", async || management.is_accepted("1")).await;
    let client = Client::connect(server.grpc_address).await;
    assert_eq!(remaining(&client, "a").await, 3);
}

#[test]
fn contradicting_settings_are_reported() {
    let url = ("envoy.xds.url", "http://127.0.0.1:18000");
    let secure = ("envoy.xds.url", "https://management.example:18001");
    for (keys, problem) in [
        (
            &[url, ("envoy.config_dir", "domains")][..],
            "only one of envoy.config_dir, envoy.config_file and envoy.xds.url",
        ),
        (&[url, ("envoy.xds.ca_file", "ca.crt")], "only used with TLS"),
        (&[secure, ("envoy.xds.cert_file", "a.crt")], "envoy.xds.cert_file needs its private key"),
        (&[secure, ("envoy.xds.key_file", "a.key")], "envoy.xds.key_file needs its certificate"),
        (&[("envoy.xds.url", "127.0.0.1:18000")], "expected a URL such as http://127.0.0.1:18000"),
        (
            &[("envoy.xds.url", "http://u:secret@a:1")],
            "expected a URL such as http://127.0.0.1:18000",
        ),
        (&[url, ("envoy.xds.node_id", "")], "expected 1 to 256 bytes"),
    ] {
        let error = load(&[&[("envoy.enabled", "true")], keys].concat()).unwrap_err();
        assert!(error.contains(problem) && !error.contains("secret"), "{keys:?}: {error}");
    }
}
