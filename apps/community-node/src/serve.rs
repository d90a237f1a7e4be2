//! Connections: accepting them within bounds, and letting them finish.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use axum::{Router, extract::ConnectInfo};
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

/// How long requests in flight may take once the node stops.
const DRAIN: Duration = Duration::from_secs(30);

/// How long to wait when there are no sockets left to accept with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers requests until `shutdown`, and then those that have begun.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    shutdown: impl Future<Output = ()>,
) {
    let mut http = auto::Builder::new(TokioExecutor::new()).http1_only();
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    let (graceful, room) = (GracefulShutdown::new(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
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
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, Option<OwnedSemaphorePermit>) {
    // Nobody closes it: there is a place, or there will be.
    let place = Arc::clone(room).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and complete: nothing is worth waiting for.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "Cannot turn off Nagle's algorithm");
                }
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
