//! IPv6 networks that count as one client.

use std::net::IpAddr;

use headgate_guard::{
    Allowance, Backend, Guard, InFlightLimits, Ipv6Prefix, PeerGuard, PeerId, PeerLimits, Routes,
    WebSocketGuard, WebSocketLimits,
};

use crate::support::{by_clock, public};

fn addresses() -> [IpAddr; 3] {
    // The first two are in one /48, the third is not.
    ["2001:db8:1:1::1", "2001:db8:1:2::1", "2001:db8:2:1::1"].map(|text| text.parse().unwrap())
}

/// Results of requests from the three addresses, with a limit of one and networks of `bits`.
async fn admitted(bits: u8, backend: Backend) -> [Vec<bool>; 3] {
    let backend = backend.ipv6_prefix(Ipv6Prefix::new(bits).unwrap());
    let guard = Guard::builder(public(1), Routes::all("public")).backend(backend.clone());
    let guard = guard.build().unwrap();
    let one = Allowance::per_minute(1).unwrap();
    let limits = WebSocketLimits::new(InFlightLimits::new(100, 100)).connections(one.clone());
    let sockets = WebSocketGuard::new(limits, backend.clone());
    let many = Allowance::per_minute(100).unwrap();
    let peers = PeerGuard::new(PeerLimits::new(one, many), backend);
    let mut told = [Vec::new(), Vec::new(), Vec::new()];
    for address in addresses() {
        told[0].push(guard.check("public", address).await.is_ok());
        told[1].push(sockets.connect(address).await.is_ok());
        told[2].push(peers.admit(PeerId::Address(address)).await.is_ok());
    }
    told
}

#[tokio::test]
async fn the_ipv6_prefix_applies_to_every_guard() {
    for backend in [Backend::memory, || by_clock().1] {
        for told in admitted(64, backend()).await {
            assert_eq!(told, [true, true, true]);
        }
        for told in admitted(48, backend()).await {
            assert_eq!(told, [true, false, true]);
        }
    }
}
