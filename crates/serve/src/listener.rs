//! A TCP port or a Unix domain socket.

use std::{
    fs::{self, Permissions},
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, UnixListener};
use tracing::debug;

/// Address of a peer on a Unix domain socket: it is on this machine.
const LOCAL_PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A TCP port or a Unix domain socket.
#[derive(Debug)]
pub enum Listener {
    /// A TCP port.
    Tcp(TcpListener),
    /// A Unix domain socket.
    Unix(UnixSocket),
}

/// A Unix domain socket, whose file is removed on drop.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode, which another server that replaced the file does not have.
    file: (u64, u64),
}

/// An accepted connection.
pub(crate) struct Accepted {
    pub(crate) stream: AcceptedStream,
    pub(crate) peer: SocketAddr,
}

/// The socket of an accepted connection, which belongs to no runtime yet.
pub(crate) enum AcceptedStream {
    Tcp(std::net::TcpStream),
    Unix(UnixStream),
}

// === impl Listener ===

impl Listener {
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Responses are small and complete: do not delay them.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "failed to set TCP_NODELAY");
                }
                Ok(Accepted { stream: AcceptedStream::Tcp(stream.into_std()?), peer })
            }
            Self::Unix(socket) => {
                let (stream, _) = socket.listener.accept().await?;
                let stream = AcceptedStream::Unix(stream.into_std()?);
                Ok(Accepted { stream, peer: LOCAL_PEER })
            }
        }
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl From<UnixSocket> for Listener {
    fn from(socket: UnixSocket) -> Self {
        Self::Unix(socket)
    }
}

// === impl UnixSocket ===

impl UnixSocket {
    /// Listens on `path`, with the permissions `mode`. A stale socket file, on
    /// which no process listens, is replaced.
    ///
    /// # Errors
    ///
    /// When another process listens there, or the file cannot be created.
    pub fn bind(path: &Path, mode: u32) -> io::Result<Self> {
        remove_stale(path)?;
        let socket = tokio::net::UnixSocket::new_stream()?;
        socket.bind(path)?;
        // Before connections are accepted.
        fs::set_permissions(path, Permissions::from_mode(mode))?;
        let listener = socket.listen(BACKLOG)?;
        let file = identity(path)?;
        Ok(Self { listener, path: path.to_owned(), file })
    }

    /// Returns the path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for UnixSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let message = "the file exists and is not a socket: remove it, or use another path";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // A full queue is one that a process has.
        Ok(_) | Err(_) => {
            let message = "another process listens there";
            Err(io::Error::new(io::ErrorKind::AddrInUse, message))
        }
    }
}
