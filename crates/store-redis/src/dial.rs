//! Connecting to a server: TCP, TLS or a Unix socket, and authentication.

use std::{io, sync::Arc};

use headgate_tls_client::CertificateError;
use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value, cmd};
use rustls::{ClientConfig, pki_types::ServerName};
use thiserror::Error;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};
use tokio_rustls::TlsConnector;

use crate::{
    RedisConfig,
    reply::{self, Reply, ServerError},
};

/// A connection that is ready for commands.
pub(crate) type Stream = Box<dyn Duplex>;

/// A bidirectional byte stream.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Error of a connection attempt.
#[derive(Debug, Error)]
pub(crate) enum DialError {
    #[error("cannot connect to Redis at {address}: {cause}")]
    Io { address: String, cause: io::Error },
    #[error("cannot connect to Redis at {address}: TLS: {cause}")]
    Tls { address: String, cause: String },
    #[error("cannot connect to Redis at {address}: refused: {cause}")]
    Refused { address: String, cause: ServerError },
    #[error("cannot connect to Redis at {address}: timed out{hint}")]
    Timeout { address: String, hint: &'static str },
    #[error("lost the connection to Redis at {address}: {cause}")]
    Lost { address: String, cause: String },
    #[error("Sentinel does not know a master named {0:?}")]
    NoMaster(String),
    #[error("Redis at {0} is a replica")]
    Demoted(String),
    #[error("no node of the cluster responds")]
    NoNode,
    #[error("Redis at {0} is not part of a cluster: set redis.url instead of redis.urls")]
    NoCluster(String),
}

/// Connects to servers.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// Used for `rediss://`; `None` if there is no such address.
    tls: Option<Result<Arc<ClientConfig>, CertificateError>>,
}

impl Dialer {
    pub(crate) fn new(config: &RedisConfig) -> Self {
        let tls = config.is_tls().then(|| config.certificates.client_config().map(Arc::new));
        Self { tls }
    }

    /// Connects and authenticates.
    pub(crate) async fn dial(&self, server: &ConnectionInfo) -> Result<Stream, DialError> {
        let address = server.addr().to_string();
        let broken = |cause| DialError::new(address.clone(), cause);
        let mut stream = self.connect(server.addr()).await.map_err(broken)?;
        let replies = exchange(&mut stream, &greeting(server)).await;
        let replies = replies.map_err(|cause| broken(explained(cause, server.addr())))?;
        let rejection =
            replies.into_iter().filter_map(Result::err).find(|error| !is_harmless(error));
        match rejection {
            Some(cause) => Err(DialError::Refused { address, cause }),
            None => Ok(stream),
        }
    }

    /// Connects, and sends one command.
    pub(crate) async fn ask(
        &self,
        server: &ConnectionInfo,
        command: Cmd,
    ) -> Result<Value, DialError> {
        let mut stream = self.dial(server).await?;
        let address = server.addr().to_string();
        match exchange(&mut stream, &[command]).await {
            Err(cause) => Err(DialError::new(address, cause)),
            Ok(mut replies) => match replies.pop() {
                Some(Ok(reply)) => Ok(reply),
                Some(Err(cause)) => Err(DialError::Refused { address, cause }),
                None => Err(DialError::new(address, io::ErrorKind::UnexpectedEof.into())),
            },
        }
    }

    async fn connect(&self, address: &ConnectionAddr) -> io::Result<Stream> {
        match address {
            ConnectionAddr::Tcp(host, port) => Ok(Box::new(connect_tcp(host, *port).await?)),
            ConnectionAddr::TcpTls { host, port, insecure: false, .. } => {
                let tls = self.tls.clone().ok_or(io::ErrorKind::Unsupported)?;
                let tls = tls.map_err(io::Error::other)?;
                let name = ServerName::try_from(host.clone()).map_err(io::Error::other)?;
                let tcp = connect_tcp(host, *port).await?;
                Ok(Box::new(TlsConnector::from(tls).connect(name, tcp).await?))
            }
            ConnectionAddr::Unix(path) => Ok(Box::new(UnixStream::connect(path).await?)),
            _ => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "certificates are always verified: remove #insecure and set redis.ca_file",
            )),
        }
    }
}

impl DialError {
    /// A timeout. A server without TLS takes the handshake for an incomplete command and waits.
    pub(crate) fn timeout(address: String, is_tls: bool) -> Self {
        let hint = if is_tls { ": the server may not speak TLS on this port" } else { "" };
        Self::Timeout { address, hint }
    }

    fn new(address: String, cause: io::Error) -> Self {
        match headgate_tls_client::explain(&cause, "Redis", "redis") {
            Some(cause) => Self::Tls { address, cause },
            None => Self::Io { address, cause },
        }
    }
}

async fn connect_tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Returns `true` if the server only rejected `CLIENT SETNAME`.
fn is_harmless(error: &ServerError) -> bool {
    error.code() == "NOPERM" || error.text().starts_with("ERR unknown")
}

/// Adds a hint to the error of a connection that was closed without a reply.
fn explained(cause: io::Error, address: &ConnectionAddr) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let is_closed = matches!(cause.kind(), BrokenPipe | ConnectionReset | UnexpectedEof);
    if is_closed && matches!(address, ConnectionAddr::Tcp(..)) {
        let text = "connection closed without a reply: does this port expect TLS (rediss://)?";
        return io::Error::new(cause.kind(), text);
    }
    cause
}

/// The first commands: password, database and client name.
fn greeting(server: &ConnectionInfo) -> Vec<Cmd> {
    let settings = server.redis_settings();
    let mut commands = Vec::new();
    if let Some(password) = settings.password() {
        let mut auth = cmd("AUTH");
        if let Some(username) = settings.username() {
            auth.arg(username);
        }
        commands.push(auth.arg(password).clone());
    }
    if settings.db() != 0 {
        commands.push(cmd("SELECT").arg(settings.db()).clone());
    }
    commands.push(cmd("CLIENT").arg("SETNAME").arg("headgate").clone());
    commands
}

/// Sends `commands` and waits for all replies.
async fn exchange(stream: &mut Stream, commands: &[Cmd]) -> io::Result<Vec<Reply>> {
    let bytes: Vec<u8> = commands.iter().flat_map(Cmd::get_packed_command).collect();
    let written = async {
        stream.write_all(&bytes).await?;
        stream.flush().await
    };
    let written = written.await;
    let mut incoming = Vec::new();
    let mut replies = Vec::new();
    while replies.len() < commands.len() {
        // If writing failed, the server may have replied with an error: read it first.
        match stream.read_buf(&mut incoming).await {
            Ok(0) => return Err(written.err().unwrap_or(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        while let Some((reply, len)) = reply::parse(&incoming)? {
            incoming.drain(..len);
            replies.push(reply);
        }
    }
    Ok(replies)
}
