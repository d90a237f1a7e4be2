//! TLS on both ports, with curl and OpenSSL as clients.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use headgate_server::Config;
use headgate_testkit::{CertificateAuthority, find_grpcurl, find_program, require};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    process::Command,
    time,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use crate::harness::{RULES, Server};

const LIMIT: Duration = Duration::from_secs(60);

const SERVICE: &str = "k1s0.system.ratelimit.v1.RateLimitService";

const GATEWAY: &str = "spiffe://cluster.local/ns/prod/sa/gateway";

/// A server with certificates of its own authority.
struct Setup {
    folder: TempDir,
    ca: CertificateAuthority,
    server: Server,
}

impl Setup {
    /// Starts with optional client certificates, and these keys.
    async fn start(keys: &[(&str, &str)]) -> Self {
        Self::start_with(None, keys).await
    }

    /// The same, with a configuration file.
    async fn start_with(file: Option<&Path>, keys: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ca = CertificateAuthority::new("test");
        ca.issue(&["127.0.0.1", "localhost"]).write(folder.path(), "tls");
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let certificates =
            format!("[{{cert_file: {}, key_file: {}}}]", path("tls.crt"), path("tls.key"));
        ca.write(folder.path());
        let ca_file = path("ca.crt");
        let tls = [
            ("server.tls.certificates", &*certificates),
            ("server.tls.client_ca_file", &ca_file),
            ("server.tls.client_certificates", "optional"),
        ];
        let keys = [&tls, keys].concat();
        let server = match file {
            None => Server::start(&keys).await,
            Some(file) => Server::start_with_file(file, &keys).await,
        };
        Self { folder, ca, server }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs curl, trusting the authority. Returns its output and messages.
    async fn curl(&self, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new("curl");
        command.arg("--cacert").arg(self.path("ca.crt")).args(["-sS", "-i"]).args(arguments);
        let output = command.output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    /// Runs curl with a client certificate that has this name.
    async fn curl_as(&self, name: &str, arguments: &[&str]) -> String {
        let (cert, key) = self.ca.issue(&[name]).write(self.folder.path(), "client");
        let own = ["--cert", cert.to_str().unwrap(), "--key", key.to_str().unwrap()];
        let (done, text) = self.curl(&[&own, arguments].concat()).await;
        assert!(done, "{text}");
        text
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.server.address)
    }

    async fn get_json(&self, path: &str) -> Value {
        let (done, text) = self.curl(&[&self.url(path)]).await;
        assert!(done, "{text}");
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
    }

    async fn connect(&self, address: SocketAddr) -> TlsStream<TcpStream> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.pem().as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }
}

/// Sends a check over an open connection; returns the status line.
async fn check(stream: &mut TlsStream<TcpStream>) -> std::io::Result<String> {
    let body = r#"{"scope":"user","identifier":"u1","dry_run":true}"#;
    let head = "POST /api/v1/ratelimit/check HTTP/1.1\r\nhost: test\r\n\
                content-type: application/json\r\ncontent-length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 4096];
    let read = stream.read(&mut answer).await?;
    let text = String::from_utf8_lossy(&answer[..read]).into_owned();
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn curl_speaks_http1_and_http2_over_tls() {
    require!(find_program("curl"));
    let setup = Setup::start(&[]).await;
    for (version, status) in [("--http1.1", "HTTP/1.1 200"), ("--http2", "HTTP/2 200")] {
        let (done, text) = setup.curl(&[version, &setup.url("/healthz")]).await;
        assert!(done && text.starts_with(status), "{text}");
    }
    let plain = format!("http://{}/healthz", setup.server.address);
    let (_, text) = setup.curl(&[&plain]).await;
    assert!(text.starts_with("HTTP/1.1 400") && text.contains("use https://"), "{text}");
    let other = CertificateAuthority::new("another");
    other.write(setup.folder.path());
    let (done, text) = setup.curl(&[&setup.url("/healthz")]).await;
    assert!(!done && text.contains("certificate"), "an unknown authority is refused: {text}");
}

#[tokio::test]
async fn openssl_connects_with_tls_1_2_and_1_3_only() {
    require!(find_program("openssl"));
    let setup = Setup::start(&[]).await;
    for (version, works) in
        [("-tls1", false), ("-tls1_1", false), ("-tls1_2", true), ("-tls1_3", true)]
    {
        let mut command = Command::new("openssl");
        command.args(["s_client", version, "-connect", &setup.server.address.to_string()]);
        // OpenSSL itself refuses old versions without this.
        command.args(["-cipher", "DEFAULT:@SECLEVEL=0", "-verify_return_error", "-brief"]);
        command.arg("-CAfile").arg(setup.path("ca.crt")).stdin(std::process::Stdio::null());
        let output = time::timeout(LIMIT, command.output()).await.unwrap().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), works, "{version}: {text}");
    }
    let setup = Setup::start(&[("server.tls.min_version", "1.3")]).await;
    let (done, text) = setup.curl(&["--tls-max", "1.2", &setup.url("/healthz")]).await;
    assert!(!done, "{text}");
}

#[tokio::test]
async fn a_certificate_is_an_actor_with_a_role() {
    require!(find_program("curl"));
    let actors = format!("[{{name: '{}', role: sys_operator}}]", GATEWAY.replace("prod", "*"));
    let token = "[{name: reader, role: sys_auditor, token: 0123456789abcdef}]";
    let keys = [("auth.client_certificates", &*actors), ("auth.tokens", token)];
    let setup = Setup::start(&keys).await;
    let rules = setup.url(RULES);
    let rule = r#"{"scope":"user","identifier_pattern":"a","limit":5,"window_seconds":60}"#;
    let post = ["-H", "content-type: application/json", "-d", rule, &rules];

    let created = setup.curl_as(GATEWAY, &post).await;
    assert!(created.starts_with("HTTP/2 201"), "{created}");
    let log = setup.curl_as(GATEWAY, &[&setup.url("/api/v1/ratelimit/audit")]).await;
    assert!(log.contains(&format!("\"actor\":\"{GATEWAY}\"")), "{log}");

    let (_, without) = setup.curl(&[&rules]).await;
    assert!(without.starts_with("HTTP/2 401"), "{without}");
    let unknown = setup.curl_as("spiffe://cluster.local/ns/prod/sa/other", &[&rules]).await;
    assert!(unknown.starts_with("HTTP/2 401"), "{unknown}");
    let bearer = ["-H", "authorization: Bearer 0123456789abcdef"];
    let with_token = setup.curl_as(GATEWAY, &[&bearer, &post[..]].concat()).await;
    assert!(with_token.starts_with("HTTP/2 403"), "the token decides: {with_token}");
    let origin = ["-H", "origin: https://evil.example"];
    let cross_site = setup.curl_as(GATEWAY, &[&origin, &post[..]].concat()).await;
    assert!(cross_site.starts_with("HTTP/2 403"), "{cross_site}");
    assert!(cross_site.contains("SYS_AUTH_CROSS_SITE"), "{cross_site}");
}

#[tokio::test]
async fn roles_of_certificates_are_live() {
    require!(find_program("curl"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("headgate.yaml");
    let write = |name: &str| {
        let tokens = "[{name: root, role: sys_admin, token: 0123456789abcdef}]";
        let names = format!("[{{name: '{name}', role: sys_auditor}}]");
        let yaml = format!("auth: {{tokens: {tokens}, client_certificates: {names}}}\n");
        fs::write(&file, yaml).unwrap();
    };
    write("other.example");
    let setup = Setup::start_with(Some(&file), &[]).await;
    let rules = setup.url(RULES);
    assert!(setup.curl_as(GATEWAY, &[&rules]).await.starts_with("HTTP/2 401"));
    let reload = async || {
        let bearer = ["-X", "POST", "-H", "authorization: Bearer 0123456789abcdef"];
        let url = setup.url("/api/v1/config/reload");
        let (_, answer) = setup.curl(&[&bearer[..], &[&url]].concat()).await;
        assert!(answer.contains("auth.client_certificates"), "{answer}");
    };
    write(GATEWAY);
    reload().await;
    assert!(setup.curl_as(GATEWAY, &[&rules]).await.starts_with("HTTP/2 200"));
    write("other.example");
    reload().await;
    assert!(setup.curl_as(GATEWAY, &[&rules]).await.starts_with("HTTP/2 401"));
}

#[tokio::test]
async fn grpc_authorizes_certificates_as_rest_does() {
    require!(find_program("curl"));
    let actors = format!("[{{name: '{GATEWAY}', role: sys_auditor}}]");
    let setup = Setup::start(&[("auth.client_certificates", &*actors)]).await;
    let url = |method: &str| format!("https://{}/{SERVICE}/{method}", setup.server.grpc_address);
    // An empty message; gRPC-Web has its status in the body or in headers.
    let message = setup.path("message");
    fs::write(&message, [0; 5]).unwrap();
    let body = format!("@{}", message.display());
    let call =
        ["-H", "content-type: application/grpc-web+proto", "-o", "-", "--data-binary", &body];
    for (name, expected) in [(GATEWAY, "grpc-status: 0"), ("other.example", "grpc-status: 16")] {
        let answer = setup.curl_as(name, &[&call, &[&*url("ListRules")][..]].concat()).await;
        assert!(answer.contains(expected), "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn grpcurl_calls_methods_that_reflection_describes() {
    let grpcurl = require!(find_grpcurl());
    let actors = format!("[{{name: '{GATEWAY}', role: sys_auditor}}]");
    let setup = Setup::start(&[("auth.client_certificates", &*actors)]).await;
    let (cert, key) = setup.ca.issue(&[GATEWAY]).write(setup.folder.path(), "client");
    let ca = setup.path("ca.crt");
    let call = async |own: bool, arguments: &[&str]| {
        let mut command = Command::new(&grpcurl);
        command.arg("-cacert").arg(&ca);
        if own {
            command.arg("-cert").arg(&cert).arg("-key").arg(&key);
        }
        let (options, names) = arguments.split_at(arguments.len() - 1);
        command.args(options).arg(setup.server.grpc_address.to_string()).args(names);
        let output = command.output().await.unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (done, services) = call(false, &["list"]).await;
    assert!(done && services.lines().any(|name| name == SERVICE), "{services}");
    let check = format!("{SERVICE}/CheckRateLimit");
    let question = ["-d", r#"{"rule_id": "user", "subject": "u1"}"#, &check];
    let (done, answer) = call(false, &question).await;
    assert!(done && answer.contains(r#""allowed": true"#), "{answer}");

    // A method that needs a role: the certificate has it.
    let list = format!("{SERVICE}/ListRules");
    let (done, answer) = call(true, &[&list]).await;
    assert!(done, "{answer}");
    let (done, answer) = call(false, &[&list]).await;
    assert!(!done && answer.contains("Unauthenticated"), "{answer}");
}

#[tokio::test]
async fn grpcurl_needs_a_certificate_where_it_is_required() {
    let grpcurl = require!(find_grpcurl());
    let setup = Setup::start(&[("server.tls.client_certificates", "required")]).await;
    let (cert, key) = setup.ca.issue(&["client.example"]).write(setup.folder.path(), "client");
    let [cert, key] = [cert, key].map(|path| path.to_str().unwrap().to_owned());
    let own = ["-cert", &cert, "-key", &key];
    for (own, is_admitted) in [(&own[..], true), (&[], false)] {
        let mut command = Command::new(&grpcurl);
        command.args(["-max-time", "60", "-cacert"]).arg(setup.path("ca.crt")).args(own);
        command.arg(setup.server.grpc_address.to_string()).arg("grpc.health.v1.Health/Check");
        let output = command.output().await.unwrap();
        assert_eq!(output.status.success(), is_admitted, "{output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_under_load() {
    let setup = Arc::new(Setup::start(&[]).await);
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut clients = Vec::new();
    for place in 0..4 {
        let (setup, stop, answered) = (setup.clone(), stop.clone(), answered.clone());
        clients.push(tokio::spawn(async move {
            let mut stream = setup.connect(setup.server.address).await;
            while !stop.load(Relaxed) {
                assert_eq!(check(&mut stream).await.unwrap(), "HTTP/1.1 200 OK");
                answered.fetch_add(1, Relaxed);
                // Half of the clients connect again for each request.
                if place % 2 == 0 {
                    stream = setup.connect(setup.server.address).await;
                }
            }
        }));
    }
    for _ in 0..3 {
        let issued = setup.ca.issue(&["localhost", "127.0.0.1"]);
        let expected = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
        issued.write(setup.folder.path(), "tls");
        let renewed = async {
            loop {
                let stream = setup.connect(setup.server.address).await;
                if stream.get_ref().1.peer_certificates().unwrap()[0] == expected {
                    return;
                }
                time::sleep(Duration::from_millis(50)).await;
            }
        };
        time::timeout(LIMIT, renewed).await.expect("the new certificate");
    }
    let many = async {
        while answered.load(Relaxed) <= 100 && clients.iter().all(|client| !client.is_finished()) {
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    // If they are too few, the last assertion says so.
    let _ = time::timeout(2 * LIMIT, many).await;
    stop.store(true, Relaxed);
    for client in clients {
        client.await.expect("every request is answered");
    }
    assert!(answered.load(Relaxed) > 100, "{answered:?}");
}

#[tokio::test]
async fn a_bad_renewal_is_reported_and_changes_nothing() {
    require!(find_program("curl"));
    let setup = Setup::start(&[]).await;
    assert_eq!(setup.get_json("/readyz").await["checks"].get("tls"), None);
    // Only the key, and at once: the server must not see anything in between.
    let (_, key) = setup.ca.issue(&["127.0.0.1"]).write(setup.folder.path(), "other");
    fs::rename(key, setup.path("tls.key")).unwrap();

    let reported = async {
        loop {
            let ready = setup.get_json("/readyz").await;
            if let Some(warning) = ready["checks"]["tls"].as_str() {
                assert_eq!(ready["status"], "ready");
                return warning.to_owned();
            }
            time::sleep(Duration::from_millis(50)).await;
        }
    };
    let warning = time::timeout(LIMIT, reported).await.expect("a warning");
    assert!(warning.starts_with("warning: failed to reload"), "{warning}");
    assert!(warning.contains("tls.key is not the key of"), "{warning}");
    let (_, metrics) = setup.curl(&[&setup.url("/metrics")]).await;
    let line = |name: &str| {
        let found = metrics.lines().find(|line| line.starts_with(name));
        found.unwrap_or_else(|| panic!("{name} is not in {metrics}"))
    };
    assert!(line("headgate_tls_reload_failures_total").ends_with(" 1"));
    let expiry = line("headgate_tls_certificate_expiry_seconds");
    assert!(expiry.contains("tls.crt\""), "{expiry}");
}

#[test]
fn mistakes_are_reported_with_their_key_and_file() {
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("test");
    let (cert, _) = ca.issue(&["localhost"]).write(folder.path(), "a");
    let (_, key) = ca.issue(&["localhost"]).write(folder.path(), "b");
    let load = |keys: &[(&str, &str)]| {
        let variables = keys.iter().map(|(key, value)| {
            let name = format!("HEADGATE__{}", key.to_ascii_uppercase().replace('.', "__"));
            (name, (*value).to_owned())
        });
        Config::load(None, variables).unwrap_err().to_string()
    };
    let pair = format!("[{{cert_file: {}, key_file: {}}}]", cert.display(), key.display());
    let error = load(&[("server.tls.certificates", &pair)]);
    assert!(error.contains("server.tls.certificates[0].key_file"), "{error}");
    assert!(error.contains("HEADGATE__SERVER__TLS__CERTIFICATES"), "{error}");
    assert!(error.contains("b.key is not the key of"), "{error}");
    let error = load(&[("server.grpc_tls.client_ca_file", "ca.crt")]);
    assert!(error.contains("server.grpc_tls.client_ca_file"), "{error}");
    assert!(error.contains("requires certificates"), "{error}");
    let error = load(&[("auth.client_certificates", "[{name: a.example, role: sys_admin}]")]);
    assert!(error.contains("requires server.tls.client_ca_file"), "{error}");
    let error = load(&[("server.tls.min_version", "1.1"), ("server.unix_socket_mode", "999")]);
    assert!(error.contains("server.tls.min_version") && error.contains("1.2"), "{error}");
    assert!(error.contains("octal digits"), "{error}");
}
