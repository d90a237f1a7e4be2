//! Servers behind TLS.

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

/// Makes a certificate for 127.0.0.1 that nobody else signed.
pub(crate) fn make_certificate(folder: &Path) -> Result<(), Skip> {
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    let subject = ["-subj", "/CN=headgate", "-addext", "subjectAltName=IP:127.0.0.1"];
    // An authority must not serve.
    let served = ["-addext", "basicConstraints=critical,CA:FALSE"];
    let files = ["-days", "2", "-keyout", "key.pem", "-out", "cert.pem"];
    let arguments = [&["req", "-x509"], &curve[..], &subject, &served, &files].concat();
    let made = Command::new("openssl").args(arguments).current_dir(folder).output();
    let made =
        made.map_err(|error| Skip { component: "openssl".into(), reason: error.to_string() })?;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(())
}

/// A head, and as much of a body as it announces.
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

/// Takes TLS off what arrives, one connection after the other, and passes it on to `server`.
fn terminate_tls(listener: TcpListener, config: Arc<ServerConfig>, server: String) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let session = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut outside = StreamOwned::new(session, stream.unwrap());
            // Who does not trust the certificate sends nothing.
            let Ok(request) = read_message(&mut outside) else { continue };
            let mut inside = TcpStream::connect(&server).unwrap();
            inside.write_all(&request).unwrap();
            outside.write_all(&read_message(&mut inside).unwrap()).unwrap();
        }
    });
}

#[test]
fn a_certificate_is_trusted_if_the_machine_trusts_it() {
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
    let told = failure(&wary);
    assert!(told.starts_with(&format!("headgate: cannot reach a server at {url}: ")), "{told}");
    assert!(told.contains("certificate"), "{told}");
}
