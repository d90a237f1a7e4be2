//! Free ports outside the ephemeral range.
//!
//! Binding port 0 returns a port of the range of outgoing connections, which any client can take
//! before the server binds it, or while a killed server is down. These ports are below that range.
//!
//! A port belongs to the process that got it until that process ends, also while nothing listens on
//! it. Otherwise a test of another process could start its server on the port of one that is down,
//! and the clients of both would use it.

use std::{
    io::ErrorKind,
    mem,
    net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

const FIRST: u16 = 10_000;
const COUNT: u16 = 10_000;

/// The only port of these that browsers refuse to open, as one of another protocol (Amanda).
const UNSAFE: u16 = 10_080;

/// Offset of the bus port of a cluster node. `COUNT` is not larger, so a bus port is never handed
/// out.
const BUS_OFFSET: u16 = 10_000;

/// Distance of the first ports of processes with consecutive ids.
const STRIDE: u32 = 997;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns a loopback port on which nothing listens, nor on the port 10,000 above it (a Redis
/// Cluster node's bus).
///
/// No other call on this machine returns it while this process runs. A process that does not use
/// this function may still take it first: start the server, and on "Address already in use" call
/// again.
///
/// # Panics
///
/// If none of the 10,000 ports is free, or one cannot be reserved.
pub fn free_port() -> u16 {
    (0..COUNT)
        .map(|_| candidate(NEXT.fetch_add(1, Ordering::Relaxed)))
        .find(|&port| port != UNSAFE && reserve(port))
        .expect("a free loopback port")
}

/// Reserves a port until the process ends, if it is free: by the UDP port of its bus, which no server
/// needs.
fn reserve(port: u16) -> bool {
    let reservation = match UdpSocket::bind((Ipv4Addr::LOCALHOST, port + BUS_OFFSET)) {
        Ok(reservation) => reservation,
        Err(error) if error.kind() == ErrorKind::AddrInUse => return false,
        Err(error) => panic!("port {port} cannot be reserved: {error}"),
    };
    let is_free = can_bind(port) && can_bind(port + BUS_OFFSET);
    if is_free {
        mem::forget(reservation);
    }
    is_free
}

/// Returns true if something accepts connections on this loopback port.
pub(crate) fn is_open(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

fn candidate(turn: u32) -> u16 {
    let step = process::id().wrapping_mul(STRIDE).wrapping_add(turn);
    FIRST + (step % u32::from(COUNT)) as u16
}

fn can_bind(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_and_free() {
        let (one, two) = (free_port(), free_port());
        assert_ne!(one, two);
        assert!(can_bind(one) && can_bind(one + BUS_OFFSET));
    }

    #[test]
    fn a_port_is_reserved_while_nothing_listens_on_it() {
        assert!(!reserve(free_port()));
    }

    #[test]
    fn taken_ports_are_skipped() {
        let listeners: Vec<_> = (0..20)
            .map(|turn| candidate(NEXT.load(Ordering::Relaxed) + turn))
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .collect();
        let port = free_port();
        assert!(!listeners.iter().any(|held| held.local_addr().unwrap().port() == port));
    }
}
