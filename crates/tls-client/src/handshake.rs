//! A handshake without a request, to find out whether a server can be reached.

use std::{
    io::{self, ErrorKind, Read as _},
    net::{TcpStream, ToSocketAddrs as _},
    sync::Arc,
    time::Duration,
};

use rustls::{ClientConnection, StreamOwned, pki_types::ServerName};

use crate::Certificates;

/// Time that a server has to refuse the client's certificate, which it reads after the handshake is
/// over for the client.
const REFUSAL_TIMEOUT: Duration = Duration::from_millis(300);

impl Certificates {
    /// Connects to a server and completes the handshake; sends nothing else. Blocks for up to
    /// `timeout` in each step.
    ///
    /// # Errors
    ///
    /// Why the server cannot be reached or is not trusted: [`explain`](crate::explain) has words for
    /// the latter.
    pub fn try_handshake(&self, host: &str, port: u16, timeout: Duration) -> io::Result<()> {
        let config = self.client_config().map_err(io::Error::other)?;
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let stream = connect(host, port, timeout)?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        let mut stream = StreamOwned::new(connection, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        stream.sock.set_read_timeout(Some(REFUSAL_TIMEOUT))?;
        match stream.read(&mut [0]) {
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

/// Connects to the first address of `host` that accepts.
fn connect(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
