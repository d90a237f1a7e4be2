//! Connections: accepting them, and letting them finish.

mod beside;
mod silence;

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::pin,
    sync::Weak,
    task::Poll,
    time::Duration,
};

use axum::{
    BoxError,
    http::{Request, Response},
};
use futures_util::FutureExt;
use hyper::{
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time,
};
use tracing::{debug, warn};

use self::{beside::Beside, silence::Activity};
use crate::workers::Workers;

/// How often an HTTP/2 peer must show that it is there.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How many HTTP/2 requests of one connection are answered at a time; more wait their turn.
const MAX_STREAMS: u32 = 256;

/// How long to wait when there are no sockets left to accept with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How patient a server is with its connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// How long one may take to send a request's head, idle time between requests included.
    pub(crate) idle: Duration,
    /// How long requests in flight may take once the server stops.
    pub(crate) drain: Duration,
}

/// Marks an answer that goes on for as long as this can be upgraded: who it is sent to is known to be
/// there by what they take.
#[derive(Clone)]
pub(crate) struct LongLived(pub(crate) Weak<()>);

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Every request was answered.
    Complete,
    /// Time ran out on this many connections.
    CutOff(usize),
}

impl Drain {
    /// How two servers ended together.
    pub(crate) const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Complete, Self::Complete) => Self::Complete,
            (Self::CutOff(n), Self::Complete) | (Self::Complete, Self::CutOff(n)) => {
                Self::CutOff(n)
            }
            (Self::CutOff(n), Self::CutOff(m)) => Self::CutOff(n + m),
        }
    }
}

/// Answers requests, each with where it came from, until `shutdown`, then lets those in flight finish for as long as `patience` says.
pub(crate) async fn serve<A, F, B>(
    listener: TcpListener,
    workers: &Workers,
    answer: A,
    shutdown: impl Future<Output = ()>,
    patience: Patience,
) -> Drain
where
    A: Fn(Request<Incoming>, SocketAddr) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let http = http();
    // Connections hold receivers: when the last of them is gone, all have finished.
    let (closing, _) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (stream, peer) = tokio::select! {
            accepted = accept(&listener) => accepted,
            // Finished connections leave the set, so that it holds only live ones.
            Some(_) = connections.join_next() => continue,
            () = &mut shutdown => break,
        };
        let answer = answer.clone();
        let answer = move |request| answer(request, peer);
        let connection = attend(stream, http.clone(), answer, closing.subscribe(), patience.idle);
        connections.spawn_on(connection, workers.next());
    }
    // From here on connecting is refused, so that balancers go elsewhere.
    drop(listener);
    drain(closing, connections, patience.drain).await
}

/// Sees a connection to its end, or ends it when it has been silent for too long.
async fn attend<A, F, B>(
    stream: std::net::TcpStream,
    http: auto::Builder<TokioExecutor>,
    answer: A,
    mut closing: watch::Receiver<()>,
    idle: Duration,
) where
    A: Fn(Request<Incoming>) -> F + Sync,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    // From here on the thread that runs this is told when there is something to read.
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => TokioIo::new(stream),
        Err(error) => return warn!(%error, "Cannot wait for a connection"),
    };
    let activity = Activity::default();
    let service = service_fn(|request: Request<Incoming>| {
        let activity = activity.clone();
        activity.begin(request.version());
        // An async block would be twice as large, and it is moved with every request.
        answer(request).map(move |answer| {
            if let Some(LongLived(going)) = answer.extensions().get() {
                activity.goes_on(going);
            }
            activity.end();
            Ok::<_, Infallible>(answer)
        })
    });
    let mut connection = pin!(http.serve_connection(stream, service));
    let mut closed = Beside::new(closing.changed());
    let mut silent = Beside::new(activity.silence(idle));
    let mut is_closing = false;
    let end = poll_fn(|context| {
        if !is_closing && closed.poll(context).is_ready() {
            is_closing = true;
            connection.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(end) = connection.as_mut().poll(context) {
            return Poll::Ready(end);
        }
        silent.poll(context).map(Ok)
    });
    let end = end.await;
    if let Err(error) = end {
        debug!(%error, "A connection broke");
    }
}

async fn drain(closing: watch::Sender<()>, mut live: JoinSet<()>, patience: Duration) -> Drain {
    closing.send_replace(());
    if time::timeout(patience, closing.closed()).await.is_ok() {
        return Drain::Complete;
    }
    while live.try_join_next().is_some() {}
    Drain::CutOff(live.len())
}

/// The next connection, and whose it is. One that fails before it begins is the caller's loss alone.
async fn accept(listener: &TcpListener) -> (std::net::TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and complete: nothing is worth waiting for.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "Cannot turn off Nagle's algorithm");
                }
                match stream.into_std() {
                    Ok(stream) => return (stream, peer),
                    Err(error) => warn!(%error, "Cannot hand a connection on"),
                }
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

fn http() -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // Answers are small: copying one behind its head costs less than handing both over.
    http.http1().header_read_timeout(None).writev(false);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(MAX_STREAMS);
    http
}
