//! `envoy.service.ratelimit.v3`: requests through a real Envoy, and from a client of our own.

pub(crate) mod client;
mod hits;
mod limitador;
mod metadata;
mod proxy;
mod refusals;
mod reload;
mod rules;
mod semantics;
mod settings;
mod stores;
mod upstream;
mod xds;

use crate::harness::Server;

/// Fixtures: every case of the configuration format.
const DOMAINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/envoy/domains");

/// Starts a server with the fixtures that adds `retry-after`.
async fn start(keys: &[(&str, &str)]) -> Server {
    let headers = [("envoy.response_headers", "retry_after")];
    start_with(DOMAINS, &[&headers, keys].concat()).await
}

async fn start_with(folder: &str, keys: &[(&str, &str)]) -> Server {
    let own = [("envoy.enabled", "true"), ("envoy.config_dir", folder)];
    Server::start(&[&own, keys].concat()).await
}

/// Starts a server with the fixtures and sends one request.
pub(crate) async fn asked() -> Server {
    let server = start(&[]).await;
    let client = client::Client::connect(server.grpc_address).await;
    client.ask("mail", &[client::of(&[("mailbox", "m1")])]).await;
    server
}

/// The value of the metric whose line starts with `line`.
async fn metric(server: &Server, line: &str) -> Option<u64> {
    let text = server.get("/metrics").await.text;
    let line = text.lines().find(|found| found.starts_with(line))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The start of the line of a rule's counter.
fn counted(domain: &str, rule: &str, outcome: &str) -> String {
    format!(
        "headgate_envoy_descriptors_total{{domain=\"{domain}\",outcome=\"{outcome}\",rule=\"{rule}\""
    )
}
