//! Requests through a real Envoy, configured as in the guide.

use std::{fs, net::SocketAddr};

use headgate_testkit::{CertificateAuthority, Envoy, free_port, require};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{counted, metric, start_with};
use crate::harness::{Reply, Server};

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/envoy.md");

/// The guide to TLS.
const TLS_GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/tls.md");

/// The guide's YAML block that contains `word`, without its indent.
fn example(word: &str) -> String {
    example_of(GUIDE, word)
}

fn example_of(guide: &str, word: &str) -> String {
    let guide = fs::read_to_string(guide).unwrap();
    let mut blocks = guide.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.contains(word)).expect("an example");
    // Blocks in lists are indented.
    let indent = if block.starts_with("   ") { "   " } else { "" };
    let lines = block.lines().map(|line| line.strip_prefix(indent).unwrap_or(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// The guide's files, with a year instead of a minute: no window ends during a test.
fn domains(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("edge.yaml"), text.replace("unit: minute", "unit: year")).unwrap();
    folder
}

/// An Envoy, its rate limit server and the service behind it.
struct Setup {
    envoy: Envoy,
    port: u16,
    limiter: Server,
    #[expect(dead_code, reason = "held for its drop")]
    service: Server,
    #[expect(dead_code, reason = "held for its drop")]
    folder: TempDir,
}

impl Setup {
    /// Starts all as in the guide, with these replacements in Envoy's configuration.
    async fn start(domain: &str, changes: &[(&str, &str)]) -> Result<Self, headgate_testkit::Skip> {
        Self::start_with_keys(domain, changes, &[]).await
    }

    /// The same, with these keys of the rate limit server.
    async fn start_with_keys(
        domain: &str,
        changes: &[(&str, &str)],
        keys: &[(&str, &str)],
    ) -> Result<Self, headgate_testkit::Skip> {
        let folder = domains(domain);
        let keys = [&[("envoy.response_headers", "retry_after")], keys].concat();
        let limiter = start_with(folder.path().to_str().unwrap(), &keys).await;
        let service = Server::start(&[]).await;
        let port = free_port();
        let mut config = example("static_resources");
        let ports =
            [(10000, port), (9000, service.address.port()), (50051, limiter.grpc_address.port())];
        for (there, here) in ports {
            let there = format!("port_value: {there}");
            assert!(config.contains(&there), "{there}");
            config = config.replace(&there, &format!("port_value: {here}"));
        }
        // A busy machine is not an outage.
        for (there, here) in [&[("timeout: 0.25s", "timeout: 20s")], changes].concat() {
            assert!(config.contains(there), "{there}");
            config = config.replacen(there, here, 1);
        }
        let envoy =
            tokio::task::spawn_blocking(move || Envoy::start(&config, port)).await.unwrap()?;
        Ok(Self { envoy, port, limiter, service, folder })
    }

    async fn get(&self, user: Option<&str>) -> Reply {
        let address: SocketAddr = ([127, 0, 0, 1], self.port).into();
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::get("/healthz").header("host", "test");
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        let answer = sender.send_request(request.body(Full::<Bytes>::default()).unwrap()).await;
        let (head, body) =
            answer.unwrap_or_else(|error| panic!("{error}: {}", self.envoy.log())).into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        Reply { status: head.status, headers: head.headers, text }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_limited_exactly_and_headers_arrive() {
    let setup = require!(Setup::start(&example("value: banned"), &[]).await);
    for left in ["2", "1", "0"] {
        let reply = setup.get(Some("u1")).await;
        assert_eq!((reply.status.as_u16(), reply.text.as_str()), (200, r#"{"status":"ok"}"#));
        assert_eq!(reply.header("x-ratelimit-remaining"), left);
        assert!(reply.header("x-ratelimit-limit").starts_with("3, 3;w="), "{reply:?}");
        assert_eq!(reply.header("retry-after"), "");
    }
    for _ in 0..3 {
        let reply = setup.get(Some("u1")).await;
        assert_eq!(reply.status, 429, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), "0");
        let (wait, reset) = (reply.header("retry-after"), reply.header("x-ratelimit-reset"));
        let (wait, reset): (u64, u64) = (wait.parse().unwrap(), reset.parse().unwrap());
        // Both are of one answer, and rounded up.
        assert_eq!(wait, reset);
        assert!(reset > 0);
    }
    assert_eq!(setup.get(Some("u2")).await.status, 200);
    assert_eq!(setup.get(Some("banned")).await.status, 429);
    for _ in 0..5 {
        assert_eq!(setup.get(None).await.status, 200);
    }
    assert_eq!(metric(&setup.limiter, &counted("edge", "user", "over_limit")).await, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn shadow_mode_admits_and_counts() {
    let domain = example("value: banned") + "shadow_mode: true\n";
    let setup = require!(Setup::start(&domain, &[]).await);
    for _ in 0..5 {
        assert_eq!(setup.get(Some("u1")).await.status, 200);
    }
    assert_eq!(metric(&setup.limiter, &counted("edge", "user", "shadow_mode")).await, Some(2));
}

/// A limit that another filter chose for the request.
const CHOSEN: &str = r#"http_filters:
                     - name: envoy.filters.http.set_metadata
                       typed_config:
                         "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
                         metadata:
                           - metadata_namespace: plan
                             value: { limit: { requests_per_unit: 1, unit: YEAR } }"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_in_a_descriptor_is_used() {
    let config = [
        ("http_filters:", &CHOSEN.replace("\n   ", "\n")),
        (
            "descriptor_key: user }",
            &"descriptor_key: user }\n                                limit: { dynamic_metadata: { metadata_key: { key: plan, path: [{ key: limit }] } } }".to_owned(),
        ),
    ];
    let config = config.map(|(there, here)| (there, here.as_str()));
    let setup = require!(Setup::start(&example("value: banned"), &config).await);
    let reply = setup.get(Some("u1")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.header("x-ratelimit-limit").starts_with("1, 1;w="), "{reply:?}");
    assert_eq!(setup.get(Some("u1")).await.status, 429);
    assert_eq!(setup.get(Some("u2")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn failure_mode_deny_decides_while_headgate_is_down() {
    for (deny, status) in [("failure_mode_deny: false", 200), ("failure_mode_deny: true", 500)] {
        let config = [("failure_mode_deny: false", deny)];
        let mut setup = require!(Setup::start(&example("value: banned"), &config).await);
        assert_eq!(setup.get(Some("u1")).await.status, 200);
        let gone = std::mem::replace(&mut setup.limiter, Server::start(&[]).await);
        gone.stop().await.unwrap();
        for _ in 0..5 {
            assert_eq!(setup.get(Some("u1")).await.status, status, "{deny}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn envoy_calls_over_mutual_tls_and_is_an_actor() {
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("mesh");
    let name = "spiffe://mesh/ns/edge/sa/envoy";
    let path = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let ca_file = path(ca.write(folder.path()));
    let (cert, key) = ca.issue(&["headgate.example.com"]).write(folder.path(), "server");
    let certificates = format!("[{{cert_file: {}, key_file: {}}}]", path(cert), path(key));
    let actors = format!("[{{name: '{name}', role: sys_auditor}}]");
    let keys = [
        ("server.grpc_tls.certificates", &*certificates),
        ("server.grpc_tls.client_ca_file", &ca_file),
        ("auth.client_certificates", &actors),
        ("envoy.auth", "token"),
    ];
    for (sender, status) in [(name, 429), ("spiffe://mesh/ns/edge/sa/other", 200)] {
        let (cert, key) = ca.issue(&[sender]).write(folder.path(), "client");
        let mut socket = example_of(TLS_GUIDE, "UpstreamTlsContext");
        for (there, here) in [
            ("/certs/tls.crt", path(cert)),
            ("/certs/tls.key", path(key)),
            ("/certs/ca.crt", ca_file.clone()),
        ] {
            assert!(socket.contains(there), "{there}");
            socket = socket.replace(there, &here);
        }
        let indented: String = socket.lines().flat_map(|line| ["      ", line, "\n"]).collect();
        let cluster = format!("    - name: headgate\n{indented}");
        let changes = [("    - name: headgate\n", &*cluster)];
        let domain = example("value: banned");
        let setup = require!(Setup::start_with_keys(&domain, &changes, &keys).await);
        // A caller without a role is refused, and Envoy admits its requests.
        assert_eq!(setup.get(Some("banned")).await.status, status, "{sender}");
    }
}

/// The guide's rules beside the guide's file, and Envoy sends the address too.
#[tokio::test(flavor = "multi_thread")]
async fn rules_over_descriptors_decide_requests_through_envoy() {
    let actions = "- request_headers: { header_name: x-user, descriptor_key: user }";
    let with_address = format!("- remote_address: {{}}\n{}{actions}", " ".repeat(34));
    let setup = require!(
        Setup::start_with_keys(
            &example("value: banned"),
            &[(actions, &with_address)],
            &[("envoy.rules", "true")],
        )
        .await
    );
    let rule = |name: &str, when: serde_json::Value, limit: u64| {
        serde_json::json!({"name": name, "when": when, "per": ["user"], "limit": limit,
            "window_seconds": 8_640_000})
    };
    let local = serde_json::json!({"domain": "edge", "address": {"in": ["127.0.0.0/8"]}});
    setup.limiter.create_rule(&rule("local", local, 2)).await;
    let remote = serde_json::json!({"domain": "edge", "address": {"not_in": ["127.0.0.0/8"]}});
    setup.limiter.create_rule(&rule("remote", remote, 1)).await;
    for (left, status) in [("1", 200), ("0", 200), ("0", 429)] {
        let reply = setup.get(Some("u1")).await;
        assert_eq!(reply.status, status, "{reply:?}");
        assert_eq!(reply.header("x-ratelimit-remaining"), left);
        assert_eq!(reply.header("retry-after").is_empty(), status == 200);
        let limit = reply.header("x-ratelimit-limit");
        assert!(limit.starts_with("2, 2;w=8640000;name=\"local\""), "{limit}");
    }
    assert_eq!(setup.get(Some("u2")).await.status, 200);
    assert_eq!(setup.get(None).await.status, 200);
    let over = counted("edge", "rule:local", "over_limit");
    assert_eq!(metric(&setup.limiter, &over).await, Some(1));
}
