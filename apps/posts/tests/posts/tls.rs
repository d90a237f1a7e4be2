//! TLS and client certificates, with curl.

use std::{path::Path, process::Output, time::Duration};

use headgate_testkit::{CertificateAuthority, find_program, free_port, require};
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::process::{lines, start};

/// Generous: tests share few cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs curl with `arguments` on a path of the service.
async fn curl(curl: &Path, port: u16, path: &str, arguments: &[&str]) -> Output {
    let url = format!("https://localhost:{port}{path}");
    let mut command = Command::new(curl);
    command.args(["--silent", "--show-error", "--max-time", "60"]).args(arguments).arg(url);
    command.output().await.unwrap()
}

/// Starts the service with a certificate for localhost and these variables.
fn serve(folder: &TempDir, ca: &CertificateAuthority, variables: &[(&str, &str)]) -> (u16, Child) {
    ca.issue(&["localhost"]).write(folder.path(), "server");
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let ours = [
        ("POSTS_LISTEN", listen.as_str()),
        ("POSTS_TLS_CERT_FILE", "server.crt"),
        ("POSTS_TLS_KEY_FILE", "server.key"),
    ];
    (port, start(folder, &[&ours, variables].concat()))
}

/// Waits until curl gets a response with these arguments.
async fn until_healthy(program: &Path, port: u16, arguments: &[&str]) {
    let healthy =
        async { while !curl(program, port, "/health", arguments).await.status.success() {} };
    timeout(PATIENCE, healthy).await.expect("a service");
}

#[tokio::test]
async fn posts_are_created_over_tls_and_a_renewed_certificate_is_in_force() {
    let program = require!(find_program("curl"));
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("first");
    let root = ca.write(folder.path());
    let root = ["--cacert", root.to_str().unwrap()];
    let (port, process) = serve(&folder, &ca, &[]);
    until_healthy(&program, port, &root).await;
    for version in ["--http1.1", "--http2"] {
        let nickname = version.trim_start_matches('-');
        let body = format!(r#"{{"post":{{"nickname":"{nickname}","body":"over {nickname}"}}}}"#);
        let header = "content-type: application/json";
        let arguments = [root[0], root[1], version, "--header", header, "--data", &body];
        let created = curl(&program, port, "/api/posts", &arguments).await;
        let text = String::from_utf8(created.stdout).unwrap();
        // The address has its cooldown after the first one.
        let expected = if version == "--http1.1" { "judging" } else { "RATE_LIMITED" };
        assert!(text.contains(expected), "{version}: {text}");
    }
    let mut plain = Command::new(&program);
    plain.args(["--silent", &format!("http://127.0.0.1:{port}/health")]);
    let plain = plain.output().await.unwrap();
    assert_eq!(plain.stdout, b"this port speaks TLS: use https:// in the URL");

    let next = CertificateAuthority::new("second");
    let next_root = folder.path().join("next.crt");
    std::fs::write(&next_root, next.pem()).unwrap();
    next.issue(&["localhost"]).write(folder.path(), "server");
    until_healthy(&program, port, &["--cacert", next_root.to_str().unwrap()]).await;
    assert!(!curl(&program, port, "/health", &root).await.status.success());

    let id = process.id().expect("the same process").to_string();
    assert!(Command::new("kill").arg(id).status().await.unwrap().success());
    let log = lines(&process.wait_with_output().await.unwrap());
    assert!(log.contains(&format!("Listening on https://127.0.0.1:{port}")), "{log}");
    assert!(log.contains("loaded certificates"), "{log}");
}

#[tokio::test]
async fn a_client_certificate_is_required() {
    let program = require!(find_program("curl"));
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("test");
    let root = ca.write(folder.path());
    let root = root.to_str().unwrap();
    let (port, _process) = serve(&folder, &ca, &[("POSTS_TLS_CLIENT_CA_FILE", root)]);
    let client = |name: &str, ca: &CertificateAuthority| {
        let (certificate, key) = ca.issue(&["client.example"]).write(folder.path(), name);
        [certificate, key].map(|path| path.to_str().unwrap().to_owned())
    };
    let [certificate, key] = client("client", &ca);
    let known = ["--cacert", root, "--cert", &certificate, "--key", &key];
    until_healthy(&program, port, &known).await;
    let none = curl(&program, port, "/health", &known[..2]).await;
    assert!(!none.status.success(), "{none:?}");
    let [certificate, key] = client("stranger", &CertificateAuthority::new("other"));
    let stranger = ["--cacert", root, "--cert", &certificate, "--key", &key];
    let stranger = curl(&program, port, "/health", &stranger).await;
    assert!(!stranger.status.success(), "{stranger:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_reported_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("test");
    ca.issue(&["localhost"]).write(folder.path(), "other");
    let (_, process) = serve(&folder, &ca, &[("POSTS_TLS_KEY_FILE", "other.key")]);
    let output = process.wait_with_output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = lines(&output);
    let expected = "headgate-posts: POSTS_TLS_KEY_FILE: other.key is not the key of server.crt";
    assert!(log.contains(expected), "{log}");
}
