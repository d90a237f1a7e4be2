//! Headgate behind a TLS proxy, which forwards gRPC-Web like any HTTP.

use std::{fs, path::Path, process::Command};

use headgate_testkit::{free_port, require};

use super::gateway::Gateway;
use crate::harness::Server;

/// Creates a self-signed certificate.
fn certificate(folder: &Path, name: &str) {
    let subject = format!("/CN={name}");
    let alternative = format!("subjectAltName=DNS:{name}");
    let arguments = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-subj",
        &subject,
        "-addext",
        &alternative,
    ];
    let output = Command::new("openssl").args(arguments).current_dir(folder).output();
    let output = output.expect("openssl runs");
    assert!(output.status.success(), "{output:?}");
    assert!(fs::exists(folder.join("cert.pem")).unwrap());
}

#[tokio::test]
async fn the_certificate_is_checked_against_the_name() {
    require!(headgate_testkit::find_program("openssl"));
    let server = Server::start(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    certificate(folder.path(), "headgate.test");
    let (path, port, target) = (folder.path().display(), free_port(), server.grpc_address);
    let proxy = format!(
        "lua_ssl_trusted_certificate {path}/cert.pem;\n\
         server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {path}/cert.pem; \
         ssl_certificate_key {path}/key.pem;\n\
         location / {{ proxy_pass http://{target}; proxy_http_version 1.1; }} }}"
    );
    let conf = |name: &str| {
        format!(
            "host = \"127.0.0.1\", port = {port}, tls = true, tls_server_name = \"{name}\", \
             timeout = 60000, fault_tolerant = false"
        )
    };
    let gateway = require!(Gateway::start_with(&conf("headgate.test"), &proxy).await);
    for _ in 0..3 {
        assert_eq!(gateway.get(&[]).await.status, 200, "{}", gateway.log());
    }
    drop(gateway);
    let gateway = require!(Gateway::start_with(&conf("other.test"), &proxy).await);
    assert_eq!(gateway.get(&[]).await.status, 503);
    assert!(gateway.log().contains("certificate host mismatch"), "{}", gateway.log());
    drop(gateway);
    let trusting = format!("{}, tls_verify = false", conf("other.test"));
    let gateway = require!(Gateway::start_with(&trusting, &proxy).await);
    assert_eq!(gateway.get(&[]).await.status, 200, "{}", gateway.log());
}
