//! Bounds the connections, in total and by address.

use std::{
    future::Future,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    response::{IntoResponse as _, Response},
};
use headgate_app_common::HttpServer;
use headgate_guard::{
    AddressKey, Busy, InFlight, InFlightLimits, Ipv6Prefix, Permit, TrustedProxies,
};
use headgate_serve::{Bounds, Timeouts, Tls};
use tokio::net::TcpListener;

use crate::http::error::ApiError;

const HTTP: HttpServer = HttpServer {
    bounds: Bounds { max_connections: 20_000, max_buffered_bytes: 64 * 1024 * 1024 },
    timeouts: Timeouts {
        idle: Duration::from_secs(30),
        grace: Duration::from_secs(1),
        drain: Duration::from_secs(30),
    },
    request_timeout: Duration::from_secs(30),
    timed_out,
};

/// Maximum number of connections from one address, those of the relay included. Trusted proxies
/// carry many clients, and have no such bound.
const MAX_BY_ADDRESS: u32 = 256;

/// Limits the connections of each address.
pub(crate) struct ConnectionLimit {
    by_address: Arc<InFlight>,
    max_by_address: u32,
    proxies: TrustedProxies,
    ipv6: Ipv6Prefix,
}

/// Bounds of the connections of a listener, those of the relay included.
pub(crate) fn bounds() -> Bounds {
    HTTP.bounds.within_open_files()
}

/// Serves `routes` until `shutdown`, then drains. Without `tls`, in plain text.
pub(crate) async fn serve(
    listener: TcpListener,
    bounds: Bounds,
    tls: Option<Arc<Tls>>,
    routes: Router,
    limit: ConnectionLimit,
    shutdown: impl Future<Output = ()>,
) {
    let admit = |peer: SocketAddr| limit.admit(peer.ip()).ok();
    HttpServer { bounds, ..HTTP }.serve(listener, tls, routes, admit, shutdown).await;
}

fn timed_out() -> Response {
    ApiError::TIMEOUT.into_response()
}

// === impl ConnectionLimit ===

impl ConnectionLimit {
    /// Limits all addresses but those of `proxies`.
    pub(crate) fn new(proxies: TrustedProxies, ipv6: Ipv6Prefix) -> Self {
        Self { by_address: InFlight::new(), max_by_address: MAX_BY_ADDRESS, proxies, ipv6 }
    }

    /// Admits a connection; the permit of a limited address is held while it is open.
    fn admit(&self, address: IpAddr) -> Result<Option<Permit>, Busy> {
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
