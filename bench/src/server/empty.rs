//! Handlers that return a constant response: the cost of the frameworks themselves.

use std::{
    env, fs, io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
};

use axum::{Router, body::Bytes, http::header::CONTENT_TYPE, routing::post, serve::Listener};
use futures_util::stream;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Builder,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
    server::TlsStream,
};
use tonic::{
    Request, Response, Status,
    transport::{Identity, Server, ServerTlsConfig},
};

use crate::guard::{Entrant, Layers};

use self::proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};

/// The hidden first argument that makes this program such a server.
pub(crate) const ARGUMENT: &str = "--serve";

/// Variables with the paths of a certificate and its key: with them, it serves over TLS.
pub(super) const CERT: &str = "HEADGATE_BENCH_CERT";
pub(super) const KEY: &str = "HEADGATE_BENCH_KEY";

/// A certificate and its key, in PEM.
struct Pem {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// Completes the handshake of each connection before it accepts the next one.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

/// Serves until it is killed: `axum PORT`, a layer of the guard benchmark and `PORT`, or `tonic
/// PORT THREADS`.
pub(crate) fn serve(arguments: &[String]) {
    let number = |i: usize| arguments.get(i).and_then(|text| text.parse().ok());
    let port: usize = number(1).expect("a port");
    let address = (Ipv4Addr::LOCALHOST, port as u16);
    let threads = number(2).unwrap_or(2);
    let runtime = match threads {
        1 => Builder::new_current_thread().enable_all().build(),
        more => Builder::new_multi_thread().worker_threads(more).enable_all().build(),
    };
    runtime.expect("a runtime").block_on(async {
        let listener = TcpListener::bind(address).await.expect("a free port");
        match arguments[0].as_str() {
            "axum" => match Pem::configured() {
                None => axum::serve(listener, axum_router()).await.expect("it serves"),
                Some(pem) => {
                    let listener = TlsListener { listener, acceptor: pem.acceptor() };
                    axum::serve(listener, axum_router()).await.expect("it serves");
                }
            },
            "tonic" => tonic_server(listener, Pem::configured()).await,
            entrant => {
                let entrant = Entrant::named(entrant).expect("an entrant's name");
                let router = entrant.before(axum_router(), &Layers::new());
                let service = router.into_make_service_with_connect_info::<SocketAddr>();
                axum::serve(listener, service).await.expect("it serves");
            }
        }
    });
}

fn axum_router() -> Router {
    const BODY: &str =
        r#"{"allowed":true,"remaining":99,"reset_at":1740052260,"limit":100,"reason":""}"#;
    // Reads the body, as every POST handler does.
    let answer = async |_: Bytes| ([(CONTENT_TYPE, "application/json")], BODY);
    Router::new().route("/api/v1/ratelimit/check", post(answer))
}

async fn tonic_server(listener: TcpListener, pem: Option<Pem>) {
    let connections = stream::unfold(listener, async |listener| {
        let connection = listener.accept().await.and_then(|(connection, _)| {
            connection.set_nodelay(true)?;
            Ok(connection)
        });
        Some((connection, listener))
    });
    let service = RateLimitServiceServer::new(Empty);
    let mut server = Server::builder();
    if let Some(Pem { certificate, key }) = pem {
        let tls = ServerTlsConfig::new().identity(Identity::from_pem(certificate, key));
        server = server.tls_config(tls).expect("a certificate that fits its key");
    }
    server.add_service(service).serve_with_incoming(connections).await.expect("it serves");
}

// === impl Pem ===

impl Pem {
    /// Reads the files that the variables name; `None` without them.
    fn configured() -> Option<Self> {
        let read = |variable| Some(fs::read(env::var_os(variable)?).expect("a file"));
        Some(Self { certificate: read(CERT)?, key: read(KEY)? })
    }

    fn acceptor(&self) -> TlsAcceptor {
        let chain = vec![CertificateDer::from_pem_slice(&self.certificate).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(&self.key).expect("PEM");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate that fits its key");
        TlsAcceptor::from(Arc::new(config))
    }
}

// === impl TlsListener ===

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, peer)) = self.listener.accept().await else { continue };
            let _ = stream.set_nodelay(true);
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

struct Empty;

#[tonic::async_trait]
impl RateLimitService for Empty {
    async fn check_rate_limit(
        &self,
        _: Request<proto::CheckRateLimitRequest>,
    ) -> Result<Response<proto::CheckRateLimitResponse>, Status> {
        Ok(Response::new(proto::CheckRateLimitResponse {
            allowed: true,
            remaining: 99,
            reset_at: 1_740_052_260,
            limit: 100,
            ..Default::default()
        }))
    }
}

#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::pedantic,
    reason = "made by a program; one call of it is answered"
)]
mod proto {
    tonic::include_proto!("k1s0.system.ratelimit.v1");
}
