//! Connections: within bounds, and drained without losing a request.

use std::{future::Future, net::SocketAddr, time::Duration};

use axum::{
    Router,
    extract::{ConnectInfo, Request},
    response::{IntoResponse as _, Response},
};
use headgate_serve::{Bounds, Connections, Drain, RequestBody, Server, Timeouts};
use tokio::{net::TcpListener, runtime::Handle, time};
use tower_service::Service as _;
use tracing::warn;

use crate::rest::error::ApiError;

const BOUNDS: Bounds = Bounds { max_connections: 10_000, max_buffered_bytes: 64 * 1024 * 1024 };

const TIMEOUTS: Timeouts = Timeouts {
    idle: Duration::from_secs(75),
    grace: Duration::from_secs(1),
    drain: Duration::from_secs(30),
};

/// How long a request may take, its body included.
const REQUEST: Duration = Duration::from_secs(30);

/// Answers requests until `shutdown`, and then those that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    shutdown: impl Future<Output = ()>,
) {
    let server = Server {
        listener,
        runtime: Handle::current,
        admit: |_| Some(()),
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
