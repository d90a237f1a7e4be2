//! Accepting connections, and draining them.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use headgate_tls::Tls;
use http::{Request, Response};
use hyper::body::Body;
use tokio::{runtime::Handle, sync::watch, task::JoinSet, time};
use tracing::warn;

use crate::{
    RequestBody,
    activity::Activity,
    connection::{ConnectionTask, Protocol, protocol},
    connections::Connections,
    listener::{Accepted, Listener},
    phase::Phase,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Pause after a failed accept, for example when the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Maximum number of queued connections that are accepted on shutdown.
const LAST_ACCEPTED: usize = 4096;

/// Timeouts of connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Maximum time without a request, or without progress of a response.
    pub idle: Duration,
    /// Time that idle connections stay open during shutdown.
    pub grace: Duration,
    /// Maximum time of requests in flight after that.
    pub drain: Duration,
}

/// A listener and its settings.
pub struct Server<N, A> {
    /// Listener of the server.
    pub listener: Listener,
    /// TLS of connections over TCP; without it, they are plain text.
    pub tls: Option<Arc<Tls>>,
    /// Returns the runtime of the next connection.
    pub runtime: N,
    /// Admits a connection. The returned permit is dropped when the connection closes, also one
    /// that was upgraded.
    pub admit: A,
    /// Bounds, shared with the other listeners of the process.
    pub connections: Arc<Connections>,
    /// Timeouts of connections.
    pub timeouts: Timeouts,
}

/// Result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Every request was answered.
    Complete,
    /// This many connections were closed with requests in flight.
    CutOff(usize),
}

/// State of a running server.
struct Served {
    protocol: Protocol,
    phase: watch::Sender<Phase>,
    tasks: JoinSet<()>,
}

// === impl Drain ===

impl Drain {
    /// Combines the results of two servers.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::CutOff(n), Self::Complete) | (Self::Complete, Self::CutOff(n)) => {
                Self::CutOff(n)
            }
            (Self::CutOff(n), Self::CutOff(m)) => Self::CutOff(n + m),
        }
    }
}

// === impl Server ===

impl<N, A, P> Server<N, A>
where
    N: Fn() -> Handle,
    A: Fn(SocketAddr) -> Option<P>,
    P: Send + 'static,
{
    /// Serves requests with `handler`, which gets the address of the peer, until `shutdown`; then
    /// drains.
    ///
    /// From `shutdown` on, new connections are refused, HTTP/1 responses have `Connection: close`,
    /// and HTTP/2 peers get a GOAWAY before the response to their next request. Idle connections are
    /// closed after the grace period, so that requests in transit are answered.
    pub async fn serve<S, F, B>(self, handler: S, shutdown: impl Future<Output = ()>) -> Drain
    where
        S: Fn(Request<RequestBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let (phase, _) = watch::channel(Phase::Serving);
        let mut served = Served { protocol: protocol(), phase, tasks: JoinSet::new() };
        let mut shutdown = pin!(shutdown);
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener) => accepted,
                // Removes finished connections from the set.
                Some(_) = served.tasks.join_next() => continue,
                () = &mut shutdown => break,
            };
            // Waiting for a slot does not delay the shutdown. A connection that has one is started
            // even if both are ready: dropping it would reset it.
            tokio::select! {
                biased;
                () = self.start(&mut served, accepted, &handler) => {}
                () = &mut shutdown => break,
            }
        }
        // Closing the listener would reset connections in its queue.
        for _ in 0..LAST_ACCEPTED {
            let Some(accepted) = accept(&self.listener).now_or_never() else {
                break;
            };
            if self.start(&mut served, accepted, &handler).now_or_never().is_none() {
                break;
            }
        }
        // Refuse connections, so that load balancers go elsewhere.
        drop(self.listener);
        served.drain(self.timeouts).await
    }

    /// Starts to serve a connection, once there is a slot for it.
    async fn start<S, F, B>(
        &self,
        served: &mut Served,
        Accepted { stream, peer }: Accepted,
        handler: &S,
    ) where
        S: Fn(Request<RequestBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Some(permit) = (self.admit)(peer) else {
            return;
        };
        let activity = Arc::new(Activity::new(Arc::clone(&self.connections)));
        let slot = self.connections.slot(&activity).await;
        let task = ConnectionTask {
            protocol: served.protocol.clone(),
            connections: Arc::clone(&self.connections),
            activity,
            phase: served.phase.subscribe(),
            idle: self.timeouts.idle,
            tls: self.tls.clone(),
            held: Box::new((slot, permit)),
        };
        let handler = handler.clone();
        let connection = task.run(stream, move |request| handler(request, peer));
        served.tasks.spawn_on(connection, &(self.runtime)());
    }
}

// === impl Served ===

impl Served {
    async fn drain(mut self, timeouts: Timeouts) -> Drain {
        // Connections hold receivers: when the last one is dropped, all have finished.
        for (phase, limit) in [(Phase::Leaving, timeouts.grace), (Phase::Ending, timeouts.drain)] {
            self.phase.send_replace(phase);
            if time::timeout(limit, self.phase.closed()).await.is_ok() {
                return Drain::Complete;
            }
        }
        while self.tasks.try_join_next().is_some() {}
        Drain::CutOff(self.tasks.len())
    }
}

/// Accepts the next connection. Errors of a single connection are ignored; others are logged once.
async fn accept(listener: &Listener) -> Accepted {
    let mut is_logged = false;
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if !is_logged {
                    warn!(%error, "failed to accept connections; retrying");
                }
                is_logged = true;
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
