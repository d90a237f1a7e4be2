//! Listening sockets that the service manager has opened: `LISTEN_FDS` of systemd.
//!
//! The service manager keeps such sockets open while servers come and go, so that connections wait
//! in their queues and none is refused.

use std::{env, io, net::TcpListener as StdListener};

use listenfd::ListenFd;
use tokio::net::TcpListener;

/// Sockets that the service manager has passed to this process.
pub struct InheritedSockets {
    sockets: ListenFd,
    names: Vec<String>,
}

// === impl InheritedSockets ===

impl InheritedSockets {
    /// Takes over the sockets that `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES` describe, if they
    /// are for this process.
    ///
    /// Call it first in `main`: it removes the variables, and nothing else may own these file
    /// descriptors yet.
    pub fn take_over() -> Self {
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        let names = names.split(':').map(str::to_owned).collect();
        Self { sockets: ListenFd::from_env(), names }
    }

    /// No sockets.
    pub fn none() -> Self {
        Self { sockets: ListenFd::empty(), names: Vec::new() }
    }

    /// Number of sockets.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// Takes the socket with the name `names[position]`, or, if no socket has one of `names`, the
    /// socket at `position`. Returns `None` if there is no such socket.
    ///
    /// # Errors
    ///
    /// If it is not a TCP socket. Must be called within a tokio runtime.
    pub fn take(&mut self, names: &[&str], position: usize) -> io::Result<Option<TcpListener>> {
        let is_named = self.names.iter().any(|name| names.contains(&name.as_str()));
        let index = if is_named {
            self.names.iter().position(|name| name == names[position])
        } else {
            Some(position)
        };
        let Some(index) = index else {
            return Ok(None);
        };
        let socket = self.sockets.take_tcp_listener(index)?;
        socket.map(into_tokio).transpose()
    }
}

fn into_tokio(socket: StdListener) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    TcpListener::from_std(socket)
}
