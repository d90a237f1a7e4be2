//! Connections over TLS.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use headgate::{Clock, ManualClock, SystemClock};
use headgate_serve::{Bounds, Drain, EndReason, Timeouts, Tls};
use headgate_testkit::{CertificateAuthority, IssuedCertificate};
use headgate_tls::{CertificateConfig, ClientCertificates, HandshakeFailure, TlsConfig};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, HandshakeKind, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    },
};

use super::harness::{BOUNDS, LIMIT, Running, TIMEOUTS, until};

/// An idle timeout. It bounds handshakes, too, which take long on a busy machine.
const LONGER_THAN_A_HANDSHAKE: Duration = Duration::from_secs(5);

/// An authority, and a server with a certificate of it.
struct Setup {
    folder: TempDir,
    ca: CertificateAuthority,
    tls: Arc<Tls>,
}

impl Setup {
    fn new() -> Self {
        Self::with(|_| {})
    }

    /// Changes the configuration.
    fn with(change: impl FnOnce(&mut TlsConfig)) -> Self {
        Self::with_clock(change, Arc::new(SystemClock::new()))
    }

    fn with_clock(change: impl FnOnce(&mut TlsConfig), clock: Arc<dyn Clock>) -> Self {
        let (folder, ca) = (TempDir::new().unwrap(), CertificateAuthority::new("test"));
        let (cert_file, key_file) = ca.issue(&["localhost"]).write(folder.path(), "a");
        let second = ca.issue(&["*.second.example"]).write(folder.path(), "b");
        let mut config = TlsConfig {
            certificates: vec![
                CertificateConfig { cert_file, key_file },
                CertificateConfig { cert_file: second.0, key_file: second.1 },
            ],
            client_ca_file: Some(ca.write(folder.path())),
            client_certificates: Some(ClientCertificates::None),
            ..TlsConfig::default()
        };
        change(&mut config);
        let tls = Arc::new(Tls::open(&config, clock).unwrap());
        Self { folder, ca, tls }
    }

    async fn start(&self, bounds: Bounds, timeouts: Timeouts) -> Running {
        Running::start_with(bounds, timeouts, Some(Arc::clone(&self.tls))).await
    }

    /// Connects without a client certificate.
    async fn connect(&self, address: SocketAddr) -> TlsStream<TcpStream> {
        self.try_connect(address, "localhost", &[b"http/1.1"], None).await.unwrap()
    }

    async fn try_connect(
        &self,
        address: SocketAddr,
        name: &'static str,
        protocols: &[&[u8]],
        certificate: Option<&IssuedCertificate>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from(name).unwrap();
        self.client(protocols, certificate).connect(name, stream).await
    }

    /// Creates a client, which resumes its sessions.
    fn client(&self, protocols: &[&[u8]], certificate: Option<&IssuedCertificate>) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.pem().as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match certificate {
            None => config.with_no_client_auth(),
            Some(issued) => {
                let chain = CertificateDer::from_pem_slice(issued.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![chain], key).unwrap()
            }
        };
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        TlsConnector::from(Arc::new(config))
    }
}

/// Sends a request and returns the whole response, if the connection allows it.
async fn get(stream: &mut TlsStream<TcpStream>, path: &str) -> std::io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

async fn failed(setup: &Setup, reason: HandshakeFailure, count: u64) {
    let what = format!("{count} handshakes failed: {}", reason.name());
    until(&what, || setup.tls.handshakes().failed(reason) == count).await;
}

#[tokio::test]
async fn http1_and_http2_are_negotiated() {
    let setup = Setup::new();
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let mut http1 = setup.connect(server.address).await;
    assert_eq!(http1.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert!(get(&mut http1, "/small").await.unwrap().ends_with("small"));

    let protocols: [&[u8]; 2] = [b"h2", b"http/1.1"];
    let http2 = setup.try_connect(server.address, "localhost", &protocols, None).await.unwrap();
    assert_eq!(http2.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut requests, connection) = h2::client::handshake(http2).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get("https://localhost/small").body(()).unwrap();
    let (response, _) = requests.send_request(request, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    assert_eq!(setup.tls.handshakes().completed(), 2);

    let other = setup.try_connect(server.address, "localhost", &[b"smtp"], None).await;
    assert!(other.unwrap_err().to_string().contains("NoApplicationProtocol"));
    failed(&setup, HandshakeFailure::Incompatible, 1).await;
}

#[tokio::test]
async fn the_name_selects_the_certificate() {
    let setup = Setup::new();
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    for name in ["localhost", "api.second.example", "API.SECOND.example"] {
        let connected = setup.try_connect(server.address, name, &[b"http/1.1"], None).await;
        assert!(connected.is_ok(), "{name}: {:?}", connected.err());
    }
    // It gets the first certificate, which is not for this name.
    let unknown = setup.try_connect(server.address, "other.example", &[b"http/1.1"], None).await;
    assert!(unknown.unwrap_err().to_string().contains("not valid for name"));
    failed(&setup, HandshakeFailure::RejectedByClient, 1).await;
}

#[tokio::test]
async fn client_certificates_are_required() {
    let setup = Setup::with(|config| config.client_certificates = None);
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let address = server.address;
    let connect = async |certificate: Option<&IssuedCertificate>| {
        let stream = setup.try_connect(address, "localhost", &[b"http/1.1"], certificate).await;
        // With TLS 1.3, the client's handshake is complete before its certificate is verified.
        get(&mut stream?, "/names").await
    };
    let client = setup.ca.issue(&["api.example", "spiffe://c/ns/a"]);
    let answer = connect(Some(&client)).await.unwrap();
    assert!(answer.ends_with("api.example spiffe://c/ns/a"), "{answer}");

    let error = connect(None).await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
    failed(&setup, HandshakeFailure::NoClientCertificate, 1).await;
    let stranger = CertificateAuthority::new("another").issue(&["api.example"]);
    assert!(connect(Some(&stranger)).await.is_err());
    failed(&setup, HandshakeFailure::ClientCertificateInvalid, 1).await;
    let expired = setup.ca.issue_valid(&["api.example"], headgate_testkit::Validity::Expired);
    assert!(connect(Some(&expired)).await.is_err());
    failed(&setup, HandshakeFailure::ClientCertificateExpired, 1).await;
}

#[tokio::test]
async fn a_session_is_not_resumed_with_an_expired_client_certificate() {
    let clock = Arc::new(ManualClock::new(SystemClock::new().now()));
    let setup =
        Setup::with_clock(|config| config.client_certificates = None, Arc::clone(&clock) as _);
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let certificate = setup.ca.issue(&["api.example"]);
    let client = setup.client(&[b"http/1.1"], Some(&certificate));
    let connect = async || {
        let stream = TcpStream::connect(server.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = client.connect(name, stream).await?;
        let answer = get(&mut stream, "/names").await?;
        std::io::Result::Ok((answer, stream.get_ref().1.handshake_kind()))
    };
    assert_eq!(connect().await.unwrap().1, Some(HandshakeKind::Full));
    let (answer, kind) = connect().await.unwrap();
    assert!(answer.ends_with("api.example"), "{answer}");
    assert_eq!(kind, Some(HandshakeKind::Resumed));

    clock.advance(Duration::from_secs(100 * 365 * 24 * 3600));
    let answer = connect().await.map(|it| it.0).unwrap_or_default();
    assert_eq!(answer, "");
    failed(&setup, HandshakeFailure::ClientCertificateExpired, 1).await;
}

#[tokio::test]
async fn client_certificates_are_optional() {
    let optional = Some(ClientCertificates::Optional);
    let setup = Setup::with(|config| config.client_certificates = optional);
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let mut without = setup.connect(server.address).await;
    assert!(get(&mut without, "/names").await.unwrap().ends_with("none"));
    let stranger = CertificateAuthority::new("another").issue(&["api.example"]);
    let protocols: [&[u8]; 1] = [b"http/1.1"];
    let connected =
        setup.try_connect(server.address, "localhost", &protocols, Some(&stranger)).await;
    let answer = match connected {
        Ok(mut stream) => get(&mut stream, "/names").await,
        Err(error) => Err(error),
    };
    assert!(answer.is_err(), "an invalid one is not ignored: {answer:?}");
}

#[tokio::test]
async fn a_renewed_certificate_serves_new_connections_and_old_ones_go_on() {
    let setup = Setup::new();
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let certificate_of =
        |stream: &TlsStream<TcpStream>| stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
    let mut old = setup.connect(server.address).await;
    setup.ca.issue(&["localhost"]).write(setup.folder.path(), "a");
    setup.tls.reload().unwrap();
    let new = setup.connect(server.address).await;
    assert_ne!(certificate_of(&old), certificate_of(&new));
    assert!(get(&mut old, "/small").await.unwrap().ends_with("small"));
}

#[tokio::test]
async fn stalled_handshakes_do_not_stop_others() {
    let setup = Setup::new();
    let bounds = Bounds { max_connections: 20, ..BOUNDS };
    let server = setup.start(bounds, TIMEOUTS).await;
    let mut stalled = Vec::new();
    for sent in 0..60 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Some send the beginning of a handshake.
        let _ = stream.write_all(&[0x16, 3, 1][..sent % 4]).await;
        stalled.push(stream);
    }
    for _ in 0..5 {
        let mut stream = time::timeout(LIMIT, setup.connect(server.address)).await.unwrap();
        assert!(get(&mut stream, "/small").await.unwrap().ends_with("small"));
    }
    assert!(server.connections.open() <= 20);
    assert!(server.connections.ended(EndReason::Crowded) >= 40);
}

#[tokio::test]
async fn a_handshake_is_bounded_in_time() {
    let setup = Setup::new();
    let idle = Duration::from_millis(300);
    let server = setup.start(BOUNDS, Timeouts { idle, ..TIMEOUTS }).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let end = time::timeout(LIMIT, stream.read(&mut [0; 1])).await.expect("it is closed");
    assert_eq!(end.unwrap(), 0);
    failed(&setup, HandshakeFailure::TimedOut, 1).await;
}

#[tokio::test]
async fn a_stalled_handshake_does_not_delay_the_shutdown() {
    let setup = Setup::new();
    let grace = Duration::from_millis(100);
    let server = setup.start(BOUNDS, Timeouts { grace, ..TIMEOUTS }).await;
    let _stalled = TcpStream::connect(server.address).await.unwrap();
    until("it is accepted", || server.connections.open() == 1).await;
    let drained = time::timeout(LIMIT, server.stop()).await.expect("it stops").unwrap();
    assert_eq!(drained, Drain::Complete);
    failed(&setup, HandshakeFailure::Closed, 1).await;
}

#[tokio::test]
async fn a_request_in_flight_is_answered_during_shutdown() {
    let setup = Setup::new();
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let address = server.address;
    let mut stream = setup.connect(address).await;
    stream.write_all(b"GET /small HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut part = [0; 1024];
    assert!(stream.read(&mut part).await.unwrap() > 0);
    let stopping = server.stop();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let request = b"GET /small HTTP/1.1\r\nhost: test\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    // To the end, with a proper end of the TLS session.
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("connection: close") && answer.ends_with("small"), "{answer}");
    assert_eq!(stopping.await.unwrap(), Drain::Complete);
}

#[tokio::test]
async fn an_idle_connection_ends_with_a_notification() {
    let setup = Setup::new();
    let idle = LONGER_THAN_A_HANDSHAKE;
    let server = setup.start(BOUNDS, Timeouts { idle, ..TIMEOUTS }).await;
    let mut stream = setup.connect(server.address).await;
    stream.write_all(b"GET /small HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    let read = time::timeout(LIMIT, stream.read_to_string(&mut answer)).await.expect("its end");
    assert!(read.is_ok(), "an end without close_notify is an error: {read:?}");
    server.ended(EndReason::Idle, 1).await;
}

#[tokio::test]
async fn a_peer_that_does_not_read_is_closed_and_its_bytes_are_counted() {
    let setup = Setup::new();
    let idle = LONGER_THAN_A_HANDSHAKE;
    let server = setup.start(BOUNDS, Timeouts { idle, ..TIMEOUTS }).await;
    let mut stream = setup.connect(server.address).await;
    let request = b"GET /large HTTP/1.1\r\nhost: test\r\n\r\n";
    let asking = async {
        for _ in 0..1_000 {
            if stream.write_all(request).await.is_err() {
                return;
            }
        }
    };
    let _ = time::timeout(LIMIT, asking).await;
    server.ended(EndReason::Stalled, 1).await;
    until("nothing is buffered", || server.connections.buffered_bytes() == 0).await;
}

#[tokio::test]
async fn a_plain_request_is_told_to_use_tls() {
    let setup = Setup::new();
    let server = setup.start(BOUNDS, TIMEOUTS).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
    assert_eq!(body, "this port speaks TLS: use https:// in the URL");
    assert!(head.contains(&format!("content-length: {}", body.len())), "{answer}");
    drop(stream);
    failed(&setup, HandshakeFailure::NotTls, 1).await;
}
