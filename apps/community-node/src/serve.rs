//! Connections: within bounds, and drained without losing a request.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    response::{IntoResponse as _, Response},
};
use headgate_guard::{
    AddressKey, Busy, InFlight, InFlightLimits, Ipv6Prefix, Permit, TrustedProxies,
};
use headgate_serve::{Bounds, Connections, Drain, RequestBody, Server, Timeouts};
use tokio::{net::TcpListener, runtime::Handle, time};
use tower_service::Service as _;
use tracing::warn;

use crate::http::error::ApiError;

const BOUNDS: Bounds = Bounds { max_connections: 20_000, max_buffered_bytes: 64 * 1024 * 1024 };

const TIMEOUTS: Timeouts = Timeouts {
    idle: Duration::from_secs(30),
    grace: Duration::from_secs(1),
    drain: Duration::from_secs(30),
};

/// How long a request may take, its body included.
const REQUEST: Duration = Duration::from_secs(30);

/// The most connections from one address. Trusted proxies speak for many, and have no such bound.
const MAX_BY_ADDRESS: u32 = 256;

/// Where connections find a place.
pub(crate) struct Room {
    by_address: Arc<InFlight>,
    max_by_address: u32,
    proxies: TrustedProxies,
    ipv6: Ipv6Prefix,
}

/// Answers requests until `shutdown`, and then those that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    room: Room,
    shutdown: impl Future<Output = ()>,
) {
    let server = Server {
        listener,
        runtime: Handle::current,
        admit: |peer: SocketAddr| room.of_address(peer.ip()).ok(),
        connections: Connections::new(BOUNDS),
        timeouts: TIMEOUTS,
    };
    let answer = move |request, peer| answer(routes.clone(), request, peer);
    if let Drain::CutOff(connections) = server.serve(answer, shutdown).await {
        warn!(connections, "stopped: time ran out on requests in flight");
    }
}

async fn answer(
    mut routes: Router,
    mut request: Request<RequestBody>,
    peer: SocketAddr,
) -> Response {
    request.extensions_mut().insert(ConnectInfo(peer));
    match time::timeout(REQUEST, routes.call(request)).await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => ApiError::TIMEOUT.into_response(),
    }
}

// === impl Room ===

impl Room {
    /// Room for all, of which nobody but `proxies` can take much.
    pub(crate) fn new(proxies: TrustedProxies, ipv6: Ipv6Prefix) -> Self {
        Self { by_address: InFlight::new(), max_by_address: MAX_BY_ADDRESS, proxies, ipv6 }
    }

    /// One of the places of `address`, if it is bound to some.
    fn of_address(&self, address: IpAddr) -> Result<Option<Permit>, Busy> {
        if self.proxies.trusts(address) {
            return Ok(None);
        }
        let limits = InFlightLimits::new(self.max_by_address, u32::MAX);
        let key = AddressKey::grouped("", address, self.ipv6);
        self.by_address.acquire(key.as_str(), limits).map(Some)
    }
}

#[cfg(test)]
mod tests;
