//! Accepting connections, and draining them.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use http::{Request, Response};
use hyper::body::Body;
use tokio::{net::TcpListener, runtime::Handle, sync::watch, task::JoinSet, time};
use tracing::{debug, warn};

use crate::{
    RequestBody,
    activity::Activity,
    connection::{Attendant, Phase, Protocol, protocol},
    connections::Connections,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How long to wait when there are no sockets left to accept with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How many connections that wait to be accepted are taken in when the listener closes.
const LAST_ACCEPTED: usize = 4096;

/// How long a server waits for its connections.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// How long a connection may go without a request, or leave its answers alone.
    pub idle: Duration,
    /// How long idle connections are still answered once the server stops.
    pub grace: Duration,
    /// How long requests in flight may take after that.
    pub drain: Duration,
}

/// A listener and what is needed to serve its connections.
pub struct Server<N, A> {
    /// Where connections come from.
    pub listener: TcpListener,
    /// Names the runtime of the next connection.
    pub runtime: N,
    /// Lets a connection in, for as long as it keeps what this returns.
    pub admit: A,
    /// Bounds, shared with the process's other listeners.
    pub connections: Arc<Connections>,
    /// How long the server waits for its connections.
    pub timeouts: Timeouts,
}

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Every request was answered.
    Complete,
    /// Time ran out on this many connections.
    CutOff(usize),
}

/// The connections of one server.
struct Served {
    protocol: Protocol,
    phase: watch::Sender<Phase>,
    tasks: JoinSet<()>,
}

// === impl Drain ===

impl Drain {
    /// How two servers ended together.
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
    /// Answers requests, each with where it came from, until `shutdown`; then drains.
    ///
    /// From `shutdown` on new connections are refused, HTTP/1 answers say `Connection: close`, and
    /// HTTP/2 peers get a GOAWAY. Idle connections are closed only after the grace: a request that
    /// is on its way is answered.
    pub async fn serve<S, F, B>(self, answer: S, shutdown: impl Future<Output = ()>) -> Drain
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
                // Finished connections leave the set, so that it holds only live ones.
                Some(_) = served.tasks.join_next() => continue,
                () = &mut shutdown => break,
            };
            // A server without a place for one more can stop all the same.
            tokio::select! {
                () = self.begin(&mut served, accepted, &answer) => {}
                () = &mut shutdown => break,
            }
        }
        // Those who have connected already would otherwise be cut off by the listener's end.
        for _ in 0..LAST_ACCEPTED {
            let Some(accepted) = accept(&self.listener).now_or_never() else {
                break;
            };
            if self.begin(&mut served, accepted, &answer).now_or_never().is_none() {
                break;
            }
        }
        // From here on connecting is refused, so that balancers go elsewhere.
        drop(self.listener);
        served.drain(self.timeouts).await
    }

    /// Begins to serve a connection, once there is a place for it.
    async fn begin<S, F, B>(
        &self,
        served: &mut Served,
        (stream, peer): (std::net::TcpStream, SocketAddr),
        answer: &S,
    ) where
        S: Fn(Request<RequestBody>, SocketAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Some(permit) = (self.admit)(peer) else {
            return;
        };
        let activity = Arc::new(Activity::new(Arc::clone(&self.connections)));
        let place = self.connections.place(&activity).await;
        let attendant = Attendant {
            protocol: served.protocol.clone(),
            connections: Arc::clone(&self.connections),
            activity,
            phase: served.phase.subscribe(),
            idle: self.timeouts.idle,
        };
        let answer = answer.clone();
        let connection = async move {
            let _places = (place, permit);
            attendant.attend(stream, move |request| answer(request, peer)).await;
        };
        served.tasks.spawn_on(connection, &(self.runtime)());
    }
}

// === impl Served ===

impl Served {
    async fn drain(mut self, timeouts: Timeouts) -> Drain {
        // Connections hold receivers: when the last of them is gone, all have finished.
        for (phase, patience) in [(Phase::Leaving, timeouts.grace), (Phase::Ending, timeouts.drain)]
        {
            self.phase.send_replace(phase);
            if time::timeout(patience, self.phase.closed()).await.is_ok() {
                return Drain::Complete;
            }
        }
        while self.tasks.try_join_next().is_some() {}
        Drain::CutOff(self.tasks.len())
    }
}

/// The next connection, and whose it is. One that fails before it begins is the caller's loss alone.
async fn accept(listener: &TcpListener) -> (std::net::TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and complete: nothing is worth waiting for.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "failed to turn off Nagle's algorithm");
                }
                match stream.into_std() {
                    Ok(stream) => return (stream, peer),
                    Err(error) => warn!(%error, "failed to hand a connection on"),
                }
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                warn!(%error, "failed to accept a connection");
                time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
