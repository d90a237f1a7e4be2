//! Servers behind a TLS proxy.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::Arc,
    thread,
};

use headgate_testkit::{Skip, require};
use rustls::{
    ServerConfig, ServerConnection, StreamOwned,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::harness::{Server, failure, headgate, printed};

/// Creates a self-signed certificate for 127.0.0.1.
pub(crate) fn make_certificate(folder: &Path) -> Result<(), Skip> {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let subject = ["-subj", "/CN=headgate", "-addext", "subjectAltName=IP:127.0.0.1"];
    // rustls rejects a CA certificate as a server's.
    let served = ["-addext", "basicConstraints=critical,CA:FALSE"];
    let files = ["-days", "2", "-keyout", "key.pem", "-out", "cert.pem"];
    let arguments = [&["req", "-x509"], &curve[..], &subject, &served, &files].concat();
    let made = Command::new("openssl").args(arguments).current_dir(folder).output();
    let made =
        made.map_err(|error| Skip { component: "openssl".into(), reason: error.to_string() })?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// Reads a head and a body of its Content-Length.
fn read_message(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut message = Vec::new();
    let mut byte = [0];
    while !message.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        message.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&message).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    message.extend(body);
    Ok(message)
}

/// Terminates TLS, one connection after the other, and forwards requests to `server`.
fn terminate_tls(listener: TcpListener, config: Arc<ServerConfig>, server: String) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut outside = StreamOwned::new(session, stream.unwrap());
            // A client that does not trust the certificate sends no request.
            let Ok(request) = read_message(&mut outside) else { continue };
            let mut inside = TcpStream::connect(&server).unwrap();
            inside.write_all(&request).unwrap();
            outside.write_all(&read_message(&mut inside).unwrap()).unwrap();
        }
    });
}

#[test]
fn trusts_the_systems_root_certificates() {
    let folder = tempfile::tempdir().unwrap();
    require!(make_certificate(folder.path()));
    let file = |name: &str| folder.path().join(name);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(file("cert.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(file("key.pem")).unwrap(),
        )
        .unwrap();
    let server = Server::start(&[]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    terminate_tls(
        listener,
        Arc::new(config),
        server.url().trim_start_matches("http://").to_owned(),
    );

    let check = |variables: &[(&str, &str)]| {
        headgate(&["check", "user", "u1", "--server", &url], variables).output().unwrap()
    };
    let trusted = file("cert.pem");
    let trusting = check(&[("SSL_CERT_FILE", trusted.to_str().unwrap())]);
    assert!(printed(&trusting).starts_with("allowed      yes\n"), "{trusting:?}");

    let other = tempfile::tempdir().unwrap();
    require!(make_certificate(other.path()));
    let wary = check(&[("SSL_CERT_FILE", other.path().join("cert.pem").to_str().unwrap())]);
    let message = failure(&wary);
    assert!(
        message.starts_with(&format!("headgate: cannot reach a server at {url}: ")),
        "{message}"
    );
    assert!(message.contains("certificate"), "{message}");
}
