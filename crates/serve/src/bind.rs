use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// Listens on a TCP address. With `reuse_port`, other processes of the same user that set it too
/// may listen there at the same time; the kernel distributes connections among them.
///
/// # Errors
///
/// If the address is in use, or not one of this machine.
pub fn bind(address: SocketAddr, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of the last process in TIME_WAIT do not keep the address.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
