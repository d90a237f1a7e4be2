//! An HTTP server with bounded connections and request timeouts.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    response::Response,
};
use headgate_serve::{Bounds, Connections, Drain, RequestBody, Server, Timeouts, Tls};
use tokio::{net::TcpListener, runtime::Handle, time};
use tower_service::Service as _;
use tracing::warn;

/// Bounds of an application's HTTP server.
#[derive(Clone, Copy, Debug)]
pub struct HttpServer {
    /// Bounds of all connections together.
    pub bounds: Bounds,
    /// Timeouts of a connection.
    pub timeouts: Timeouts,
    /// Timeout of a request, its body included.
    pub request_timeout: Duration,
    /// Creates the response to a request that timed out.
    pub timed_out: fn() -> Response,
}

// === impl HttpServer ===

impl HttpServer {
    /// Serves `routes` until `shutdown`, then drains. Without `tls`, in plain text. `admit` returns a permit for a peer's
    /// address, which the connection holds while it is open; without a permit, it is closed.
    pub async fn serve<P: Send + 'static>(
        self,
        listener: TcpListener,
        tls: Option<Arc<Tls>>,
        routes: Router,
        admit: impl Fn(SocketAddr) -> Option<P>,
        shutdown: impl Future<Output = ()>,
    ) {
        let server = Server {
            listener: listener.into(),
            tls,
            runtime: Handle::current,
            admit,
            connections: Connections::new(self.bounds.within_open_files()),
            timeouts: self.timeouts,
        };
        let answer = move |request, peer| self.answer(routes.clone(), request, peer);
        if let Drain::CutOff(connections) = server.serve(answer, shutdown).await {
            warn!(connections, "drain timed out; connections were closed");
        }
    }

    async fn answer(
        self,
        mut routes: Router,
        mut request: Request<RequestBody>,
        peer: SocketAddr,
    ) -> Response {
        request.extensions_mut().insert(ConnectInfo(peer));
        match time::timeout(self.request_timeout, routes.call(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(never)) => match never {},
            Err(_) => (self.timed_out)(),
        }
    }
}
