//! The TLS handshake of a connection. It runs in the task of the connection, which has its slot: the
//! number of handshakes is bounded by that of connections, and accepting others does not wait.

use std::{io, sync::Arc, time::Duration};

use headgate_tls::{ClientCertificate, HandshakeFailure, Tls};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    time,
};
use tokio_rustls::{TlsAcceptor, rustls::pki_types::CertificateDer, server::TlsStream};
use tracing::debug;

use crate::{
    activity::Activity,
    connections::Connections,
    phase::Phase,
    stream::{EncryptedStream, Stream},
};

/// Maximum duration of a handshake.
const TIMEOUT: Duration = Duration::from_secs(10);

/// First byte of a TLS connection: a record of the type `handshake`.
const HANDSHAKE_RECORD: u8 = 0x16;

/// Response to a client that speaks HTTP/1.
const PLAIN_HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: text/plain; charset=utf-8\r\n\
    content-length: 45\r\n\
    connection: close\r\n\r\n\
    this port speaks TLS: use https:// in the URL";

/// Maximum number of bytes that are read from such a client, and maximum time.
const MAX_PLAIN_BYTES: u64 = 64 * 1024;
const PLAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A handshake.
pub(crate) struct Handshake<'a> {
    pub(crate) tls: &'a Tls,
    pub(crate) activity: &'a Arc<Activity>,
    pub(crate) idle: Duration,
}

impl Handshake<'_> {
    /// Returns the encrypted stream, and the client's certificate if it has sent one. `None` if the
    /// handshake failed, took too long, or the connection has to be closed.
    pub(crate) async fn run(
        self,
        stream: TcpStream,
        connections: &Connections,
        phase: &mut watch::Receiver<Phase>,
    ) -> Option<(Stream, Option<ClientCertificate>)> {
        let accepted = tokio::select! {
            accepted = time::timeout(TIMEOUT.min(self.idle), self.accept(stream)) => {
                accepted.unwrap_or(Err(HandshakeFailure::TimedOut))
            }
            reason = self.activity.ended() => {
                connections.count_end(reason);
                Err(HandshakeFailure::Closed)
            }
            // An error means that the server was dropped.
            _ = phase.wait_for(|phase| *phase >= Phase::Ending) => Err(HandshakeFailure::Closed),
        };
        self.tls.handshakes().count(accepted.as_ref().map(drop).map_err(|reason| *reason));
        match accepted {
            Ok(stream) => {
                let certificate = client_certificate(&stream).map(ClientCertificate::new);
                Some((Stream::Tls(Box::new(stream)), certificate))
            }
            Err(reason) => {
                debug!(reason = reason.name(), "TLS handshake failed");
                None
            }
        }
    }

    async fn accept(
        &self,
        stream: TcpStream,
    ) -> Result<TlsStream<EncryptedStream>, HandshakeFailure> {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first[0] == HANDSHAKE_RECORD => {}
            Ok(1) => {
                let _ = time::timeout(PLAIN_TIMEOUT, refuse_plain(stream)).await;
                return Err(HandshakeFailure::NotTls);
            }
            Ok(_) | Err(_) => return Err(HandshakeFailure::Disconnected),
        }
        let stream = EncryptedStream::new(stream, Arc::clone(self.activity));
        let accepted = TlsAcceptor::from(self.tls.server_config()).accept(stream).await;
        let stream = accepted.map_err(|error| {
            debug!(%error, "TLS handshake failed");
            HandshakeFailure::from(&error)
        })?;
        if client_certificate(&stream).is_some_and(|it| self.tls.has_expired(it)) {
            return Err(HandshakeFailure::ClientCertificateExpired);
        }
        Ok(stream)
    }
}

fn client_certificate(stream: &TlsStream<EncryptedStream>) -> Option<&CertificateDer<'static>> {
    stream.get_ref().1.peer_certificates().and_then(<[_]>::first)
}

/// Tells a client that speaks HTTP what to do. What it has sent is read, since closing the
/// connection would otherwise discard the response.
async fn refuse_plain(mut stream: TcpStream) -> io::Result<()> {
    stream.write_all(PLAIN_HTTP).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_PLAIN_BYTES), &mut tokio::io::sink()).await.map(drop)
}
