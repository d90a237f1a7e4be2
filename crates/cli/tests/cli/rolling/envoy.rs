//! Two servers behind a real Envoy, configured as in the guide. A check without response is an
//! error for the client.

use std::{fs, net::SocketAddr, path::Path};

use headgate_testkit::{Envoy, free_port, require, wait_until};
use tempfile::TempDir;

use super::{LIMIT, Load, handover::calling};
use crate::harness::{Server, http};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/envoy.md");

/// The guide's YAML block that contains `word`, without its indent.
fn example(word: &str) -> String {
    let guide = fs::read_to_string(GUIDE).unwrap();
    let mut blocks = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains(word)).expect("an example");
    let indent = block.len() - block.trim_start().len();
    let lines = block.lines().map(|line| line.get(indent..).unwrap_or_default());
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn indented(text: &str, spaces: usize) -> String {
    let indent = " ".repeat(spaces);
    text.lines().flat_map(|line| [&*indent, line, "\n"]).collect()
}

/// The guide's first example with the service and cluster of its example about restarts.
fn config(ports: &[(u16, u16)]) -> String {
    let mut config = example("static_resources");
    let service = "rate_limit_service:\n";
    let start = config.find(service).unwrap();
    let end = start + config[start..].find("- name: envoy.filters.http.router").unwrap();
    let column = start - config[..start].rfind('\n').unwrap() - 1;
    let next = end - config[..end].rfind('\n').unwrap() - 1;
    let better = example("retry_policy");
    assert!(better.starts_with(service), "{better}");
    let better = indented(&better, column);
    config.replace_range(start..end, &format!("{}{}", better.trim_start(), " ".repeat(next)));

    let cluster = config.find("    - name: headgate\n").unwrap();
    config.truncate(cluster);
    config.push_str(&indented(&example("health_checks"), 4));
    let changes = [
        ("failure_mode_deny: false", "failure_mode_deny: true"),
        // Generous timeouts for busy machines.
        ("timeout: 0.25s", "timeout: 20s"),
        ("max_interval: 0.25s", "max_interval: 20s"),
        ("      timeout: 1s", "      timeout: 20s"),
    ];
    changed(config, ports, &changes)
}

/// Listens for gRPC, and passes calls on to the guide's cluster.
const PROXY: &str = r#"
static_resources:
  listeners:
    - address: { socket_address: { address: 127.0.0.1, port_value: 10000 } }
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: grpc
                codec_type: HTTP2
                route_config:
                  virtual_hosts:
                    - name: all
                      domains: ["*"]
                      routes:
                        - match: { prefix: "/" }
                          route: { cluster: headgate, timeout: 60s }
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
"#;

fn proxy(ports: &[(u16, u16)]) -> String {
    let config = format!("{PROXY}{}", indented(&example("health_checks"), 4));
    changed(config, ports, &[("      timeout: 1s", "      timeout: 20s")])
}

/// Replaces ports and texts, which must all be there.
fn changed(mut config: String, ports: &[(u16, u16)], texts: &[(&str, &str)]) -> String {
    let ports = ports
        .iter()
        .map(|(there, here)| (format!("port_value: {there}"), format!("port_value: {here}")));
    let texts = texts.iter().map(|(there, here)| ((*there).to_owned(), (*here).to_owned()));
    for (there, here) in ports.chain(texts) {
        assert!(config.contains(&there), "{there}");
        config = config.replace(&there, &here);
    }
    config
}

/// Two rate limit servers, the service behind Envoy and the ports.
struct Setup {
    ports: [u16; 2],
    servers: [Server; 2],
    folder: TempDir,
    service: Server,
    front: u16,
}

impl Setup {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let limits = "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: {unit: year, \
                      requests_per_unit: 1000000000}\n";
        fs::write(folder.path().join("edge.yaml"), limits).unwrap();
        let service = Server::start(&[("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000000")]);
        let ports = [free_port(), free_port()];
        let servers = ports.map(|port| limiter(port, folder.path()));
        Self { ports, servers, folder, service, front: free_port() }
    }

    fn config(&self) -> String {
        let service = address(self.service.url()).port();
        let [one, other] = self.ports;
        config(&[(10000, self.front), (9000, service), (50051, one), (50052, other)])
    }

    fn load(&self) -> Load {
        Load::start(([127, 0, 0, 1], self.front).into(), 12)
    }

    /// Restarts a server and waits until Envoy sends it requests, which `metric` counts.
    fn restart(&mut self, which: usize, load: &Load, metric: &str) {
        self.servers[which] = limiter(self.ports[which], self.folder.path());
        let is_back = || has_requests(&self.servers[which], metric) || load.is_over();
        assert!(wait_until(LIMIT, is_back), "Envoy sends no requests");
    }
}

fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().unwrap()
}

fn limiter(port: u16, domains: &Path) -> Server {
    Server::start(&[
        ("HEADGATE__SERVER__GRPC_PORT", &port.to_string()),
        // Envoy asks every second; on a busy machine, the answers take longer.
        ("HEADGATE__SERVER__SHUTDOWN_DELAY_SECONDS", "15"),
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000000"),
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__CONFIG_DIR", domains.to_str().unwrap()),
    ])
}

/// Requests of Envoy's rate limit filter.
const FILTERED: &str = "headgate_envoy_requests_total";
/// Checks that clients have sent.
const CHECKED: &str = "headgate_decisions_total";

/// Returns true if `metric` has counted requests since its start.
fn has_requests(server: &Server, metric: &str) -> bool {
    let metrics = http(server, "GET /metrics", &[], "");
    let allowed = format!("{metric}{{outcome=\"allowed\"");
    metrics.lines().any(|line| line.starts_with(&allowed) && !line.ends_with(" 0"))
}

#[test]
fn servers_behind_envoy_restart_in_turn_without_an_error() {
    let mut setup = Setup::start();
    // Without retries: Envoy must not send requests to a server that is about to exit.
    let config = setup.config();
    let retried = "num_retries: 3";
    assert!(config.contains(retried));
    let config = config.replace(retried, "num_retries: 0");
    let _envoy = require!(Envoy::start(&config, setup.front));
    let load = setup.load();
    load.answered(100);
    for which in [0, 1] {
        assert_eq!(setup.servers[which].stop("-TERM").code(), Some(0));
        load.answered(100);
        setup.restart(which, &load, FILTERED);
        load.answered(100);
    }
    assert_eq!(load.stop(), Vec::<String>::new());
}

#[test]
fn grpc_calls_through_envoy_survive_restarts_in_turn() {
    let mut setup = Setup::start();
    let [one, other] = setup.ports;
    // Envoy does not retry: no call may be refused or lost.
    let config = proxy(&[(10000, setup.front), (50051, one), (50052, other)]);
    let _envoy = require!(Envoy::start(&config, setup.front));
    let load = calling(SocketAddr::from(([127, 0, 0, 1], setup.front)));
    load.answered(100);
    for which in [0, 1] {
        assert_eq!(setup.servers[which].stop("-TERM").code(), Some(0));
        load.answered(100);
        setup.restart(which, &load, CHECKED);
        load.answered(100);
    }
    assert_eq!(load.stop(), Vec::<String>::new());
}

#[test]
fn killing_a_server_behind_envoy_causes_no_error() {
    let mut setup = Setup::start();
    let _envoy = require!(Envoy::start(&setup.config(), setup.front));
    let load = setup.load();
    load.answered(100);
    for which in [0, 1] {
        setup.servers[which].stop("-KILL");
        load.answered(100);
        setup.restart(which, &load, FILTERED);
        load.answered(100);
    }
    assert_eq!(load.stop(), Vec::<String>::new());
}
