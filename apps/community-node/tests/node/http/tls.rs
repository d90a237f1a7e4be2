//! TLS of the node's listeners: curl for HTTP, a WebSocket client for the relay.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{SinkExt as _, StreamExt as _};
use headgate_testkit::{CertificateAuthority, find_program, free_port, require};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject as _},
    },
};
use tokio_tungstenite::{client_async, tungstenite::Message};

use super::{
    harness::{PASSWORD, PATIENCE},
    process::start,
};

/// A node with a certificate for localhost, and curl.
struct Setup {
    curl: PathBuf,
    folder: TempDir,
    address: SocketAddr,
    metrics: SocketAddr,
    _process: Child,
}

impl Setup {
    fn start(curl: PathBuf, ca: &CertificateAuthority) -> Self {
        let folder = tempfile::tempdir().unwrap();
        ca.issue(&["localhost"]).write(folder.path(), "node");
        let [address, metrics] = [(); 2].map(|()| SocketAddr::from(([127, 0, 0, 1], free_port())));
        let process = start(
            &folder,
            &[
                ("CN_LISTEN", &address.to_string()),
                ("CN_METRICS_LISTEN", &metrics.to_string()),
                ("CN_TLS_CERT_FILE", "node.crt"),
                ("CN_TLS_KEY_FILE", "node.key"),
                ("CN_ADMIN_PASSWORD", PASSWORD),
            ],
        );
        Self { curl, folder, address, metrics, _process: process }
    }

    /// Response to a request over TLS, with its headers; `None` if there is none.
    async fn get(&self, root: &Path, to: SocketAddr, path: &str, more: &[&str]) -> Option<String> {
        let mut command = Command::new(&self.curl);
        command.args(["--silent", "--include", "--max-time", "30", "--cacert"]).arg(root);
        command.args(more).arg(format!("https://localhost:{}{path}", to.port()));
        let output = command.output().await.unwrap();
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    }

    /// Waits until a client that trusts `root` gets a response.
    async fn until_trusted(&self, root: &Path) -> String {
        let trusted = async {
            loop {
                if let Some(answer) = self.get(root, self.address, "/healthz", &[]).await {
                    return answer;
                }
            }
        };
        timeout(PATIENCE, trusted).await.expect("a response")
    }
}

/// Subscribes at the relay over TLS. Returns its first message.
async fn subscribe(address: SocketAddr, ca: &CertificateAuthority) -> String {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let (mut socket, _) = client_async("wss://localhost/relay", stream).await.unwrap();
    let request = r##"["REQ","s",{"kinds":[1],"#t":["rust"],"limit":1}]"##;
    socket.send(Message::text(request)).await.unwrap();
    let message = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    message.to_text().unwrap().to_owned()
}

#[tokio::test]
async fn every_listener_speaks_tls_and_a_renewed_certificate_is_in_force() {
    let curl = require!(find_program("curl"));
    let (first, second) = (CertificateAuthority::new("first"), CertificateAuthority::new("second"));
    let node = Setup::start(curl, &first);
    let root = first.write(node.folder.path());
    let health = node.until_trusted(&root).await;
    assert!(health.contains(r#""certificates":"ok""#), "{health}");
    let metrics = node.get(&root, node.metrics, "/metrics", &[]).await.unwrap();
    assert!(metrics.contains(r#"tls_certificate_expiry_seconds{certificate="node.crt"} "#));

    let message = subscribe(node.address, &first).await;
    assert!(
        message.starts_with(r#"["EOSE","s""#) || message.starts_with(r#"["AUTH""#),
        "{message}"
    );

    let password = format!(r#"{{"password":"{PASSWORD}"}}"#);
    let json = "content-type: application/json";
    let login = ["--header", json, "--data", &password];
    let login = node.get(&root, node.address, "/v1/admin/login", &login).await.unwrap();
    let cookie = login.lines().find(|line| line.starts_with("set-cookie: cn_admin_session="));
    assert!(cookie.unwrap().trim_end().ends_with("; Secure"), "{login}");

    let next_root = node.folder.path().join("next.crt");
    std::fs::write(&next_root, second.pem()).unwrap();
    second.issue(&["localhost"]).write(node.folder.path(), "node");
    node.until_trusted(&next_root).await;
    assert_eq!(node.get(&root, node.address, "/healthz", &[]).await, None);
    subscribe(node.address, &second).await;
    assert!(node.get(&next_root, node.metrics, "/metrics", &[]).await.is_some());
}

#[tokio::test]
async fn a_bad_renewal_keeps_the_certificate_and_degrades_health() {
    let curl = require!(find_program("curl"));
    let ca = CertificateAuthority::new("test");
    let node = Setup::start(curl, &ca);
    let root = ca.write(node.folder.path());
    node.until_trusted(&root).await;
    std::fs::write(node.folder.path().join("node.crt"), "not a certificate").unwrap();
    let warned =
        async { while !node.until_trusted(&root).await.contains(r#""certificates":"warning""#) {} };
    timeout(PATIENCE, warned).await.expect("a warning");
    assert!(node.until_trusted(&root).await.contains(r#""status":"degraded""#));
}
