//! Servers behind a TLS proxy, with TLS of their own, and on Unix domain sockets.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    sync::Arc,
    thread,
};

use headgate_testkit::{CertificateAuthority, Skip, find_program, require};
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
        message.starts_with(&format!("headgate: the certificate of {url} is not accepted: ")),
        "{message}"
    );
    assert!(message.contains("--ca-file"), "{message}");
}

#[test]
fn a_private_authority_and_a_client_certificate_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let ca = CertificateAuthority::new("test");
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let ca_file = text(ca.write(folder.path()));
    let (cert, key) = ca.issue(&["127.0.0.1"]).write(folder.path(), "server");
    let certificates = format!("[{{cert_file: {}, key_file: {}}}]", text(cert), text(key));
    let name = "spiffe://test/ops";
    let server = Server::start(&[
        ("HEADGATE__SERVER__TLS__CERTIFICATES", &certificates),
        ("HEADGATE__SERVER__TLS__CLIENT_CA_FILE", &ca_file),
        ("HEADGATE__AUTH__CLIENT_CERTIFICATES", "[{name: 'spiffe://test/*', role: sys_admin}]"),
    ]);
    assert!(server.url().starts_with("https://127.0.0.1:"), "{}", server.greeting);
    let (cert, key) = ca.issue(&[name]).write(folder.path(), "client");
    let (cert, key) = (text(cert), text(key));
    let trusted = ["--ca-file", &ca_file];
    let identity = ["--client-cert", &*cert, "--client-key", &key];
    let all = [&trusted[..], &identity].concat();

    let run = |arguments: &[&str]| server.run(arguments);
    assert!(printed(&run(&[&["check", "user", "u1"], &all[..]].concat())).contains("yes"));
    let rule =
        ["rules", "create", "--scope", "user", "--pattern", "a", "--limit", "5", "--window", "60s"];
    printed(&run(&[&rule[..], &all].concat()));
    let log = run(&[&["audit"], &all[..]].concat());
    assert!(printed(&log).contains(name), "{log:?}");
    let variables = [
        ("HEADGATE_SERVER", server.url()),
        ("HEADGATE_CA_FILE", &ca_file),
        ("HEADGATE_CLIENT_CERT", &cert),
        ("HEADGATE_CLIENT_KEY", &key),
    ];
    printed(&headgate(&["rules", "list"], &variables).output().unwrap());

    for (arguments, expected) in [
        (&trusted[..], "requires a client certificate, or does not accept this one"),
        (&identity[..], "is not accepted: invalid peer certificate: UnknownIssuer"),
        (&["--ca-file", &key], "has no CA certificate in PEM"),
        (&["--client-cert", &cert], "set both --client-cert and --client-key"),
    ] {
        let output = run(&[&["check", "user", "u1"], arguments].concat());
        assert!(failure(&output).contains(expected), "{arguments:?}: {output:?}");
    }
    let plain = server.url().replace("https://", "http://");
    let output = headgate(&["check", "user", "u1", "--server", &plain], &[]).output().unwrap();
    assert!(failure(&output).contains("speaks TLS: use https://"), "{output:?}");
}

#[test]
fn a_server_without_tls_is_recognized() {
    let server = Server::start(&[]);
    let url = server.url().replace("http://", "https://");
    let output = headgate(&["check", "user", "u1", "--server", &url], &[]).output().unwrap();
    assert!(failure(&output).contains("does not speak TLS: use http://"), "{output:?}");
}

#[test]
fn unix_sockets_serve_curl_and_the_command_line() {
    require!(find_program("curl"));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rest, grpc) = (path("http.sock"), path("grpc.sock"));
    let server = Server::start(&[
        ("HEADGATE__SERVER__UNIX_SOCKET", &rest),
        ("HEADGATE__SERVER__GRPC_UNIX_SOCKET", &grpc),
    ]);
    let curl = |socket: &str, arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["-sS", "-i", "--unix-socket", socket]).args(arguments);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let health = curl(&rest, &["http://localhost/healthz"]);
    assert!(health.starts_with("HTTP/1.1 200 OK"), "{health}");
    let grpc_answer = curl(&grpc, &["--http2-prior-knowledge", "http://localhost/"]);
    assert!(grpc_answer.starts_with("HTTP/2 415"), "{grpc_answer}");
    let check = ["check", "user", "u1", "--server", &format!("unix:{rest}")];
    assert!(printed(&headgate(&check, &[]).output().unwrap()).contains("yes"));

    assert!(server.signal("-TERM").success());
    assert!(!Path::new(&rest).exists() && !Path::new(&grpc).exists());
}
