//! Connections: accepting them within bounds, and letting them finish.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Router, extract::ConnectInfo};
use headgate_guard::{
    AddressKey, Busy, InFlight, InFlightLimits, Ipv6Prefix, Permit, TrustedProxies,
};
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time,
};
use tower_service::Service as _;
use tracing::{debug, warn};

/// How long a client may take to send the head of a request, idle time between requests included.
const HEAD: Duration = Duration::from_secs(30);

/// The most connections that speak HTTP at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 20_000;

/// The most of them from one address. Trusted proxies speak for many, and have no such bound.
const MAX_BY_ADDRESS: u32 = 256;

/// How long requests in flight may take once the node stops.
const DRAIN: Duration = Duration::from_secs(30);

/// How long to wait when there are no sockets left to accept with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where connections find a place.
pub(crate) struct Room {
    all: Arc<Semaphore>,
    by_address: Arc<InFlight>,
    max_by_address: u32,
    proxies: TrustedProxies,
    ipv6: Ipv6Prefix,
}

/// The place of one connection, until it is dropped.
struct Place {
    _among_all: Option<OwnedSemaphorePermit>,
    _of_address: Option<Permit>,
}

/// Answers requests until `shutdown`, and then those that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    room: Room,
    shutdown: impl Future<Output = ()>,
) {
    let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    let graceful = GracefulShutdown::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer, place) = tokio::select! {
            accepted = accept(&listener, &room) => accepted,
            () = &mut shutdown => break,
        };
        let routes = routes.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            routes.clone().call(request)
        });
        let connection = http.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let connection = graceful.watch(connection.into_owned());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                debug!(%error, "A connection broke");
            }
        });
    }
    // From here on connecting is refused, so that balancers go elsewhere.
    drop(listener);
    if time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
        warn!("Stopped: time ran out on some requests");
    }
}

/// The next connection, whose it is, and its place among all. One that fails before it begins is the
/// client's loss alone.
async fn accept(listener: &TcpListener, room: &Room) -> (TcpStream, SocketAddr, Place) {
    // Nobody closes it: there is a place, or there will be.
    let among_all = Arc::clone(&room.all).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let Ok(of_address) = room.of_address(peer.ip()) else {
                    continue;
                };
                // Answers are small and complete: nothing is worth waiting for.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "Cannot turn off Nagle's algorithm");
                }
                let place = Place { _among_all: among_all, _of_address: of_address };
                return (stream, peer, place);
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                warn!(%error, "Cannot accept connections");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

// === impl Room ===

impl Room {
    /// Room for all, of which nobody but `proxies` can take much.
    pub(crate) fn new(proxies: TrustedProxies, ipv6: Ipv6Prefix) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            by_address: InFlight::new(),
            max_by_address: MAX_BY_ADDRESS,
            proxies,
            ipv6,
        }
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
