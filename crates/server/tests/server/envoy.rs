//! `envoy.service.ratelimit.v3`, as Envoy sees it: with the proxy itself, and with what it says.

mod client;
mod hits;
mod limitador;
mod metadata;
mod proxy;
mod refusals;
mod reload;
mod semantics;
mod settings;
mod stores;
mod upstream;
mod xds;

use crate::harness::Server;

/// The fixtures: every case that the configuration format has.
const DOMAINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server/envoy/domains");

/// A server that answers Envoy by the fixtures, and tells clients when to come back.
async fn start(keys: &[(&str, &str)]) -> Server {
    let told = [("envoy.response_headers", "retry_after")];
    start_with(DOMAINS, &[&told, keys].concat()).await
}

async fn start_with(folder: &str, keys: &[(&str, &str)]) -> Server {
    let own = [("envoy.enabled", "true"), ("envoy.config_dir", folder)];
    Server::start(&[&own, keys].concat()).await
}

/// The same, that was asked once.
pub(crate) async fn asked() -> Server {
    let server = start(&[]).await;
    let client = client::Client::connect(server.grpc_address).await;
    client.ask("mail", &[client::of(&[("mailbox", "m1")])]).await;
    server
}

/// The value of a metric whose line begins so.
async fn metric(server: &Server, line: &str) -> Option<u64> {
    let text = server.get("/metrics").await.text;
    let line = text.lines().find(|found| found.starts_with(line))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The name of a rule's number.
fn counted(domain: &str, rule: &str, outcome: &str) -> String {
    format!(
        "headgate_envoy_descriptors_total{{domain=\"{domain}\",outcome=\"{outcome}\",rule=\"{rule}\""
    )
}
