//! Connections: accepting them, and letting them finish.

use std::{
    convert::Infallible,
    fmt::Display,
    future::Future,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    BoxError,
    http::{Request, Response},
};
use hyper::{
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time,
};
use tracing::{debug, warn};

/// How long a connection may take to send a request's head, idle time between requests included.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// How often an HTTP/2 peer must show that it is there.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How many HTTP/2 requests of one connection are answered at a time; more wait their turn.
const MAX_STREAMS: u32 = 256;

/// How long to wait when there are no sockets left to accept with.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Every request was answered.
    Complete,
    /// Time ran out on this many connections.
    CutOff(usize),
}

/// Answers requests until `shutdown`, then lets those in flight finish for up to `patience`.
pub(crate) async fn serve<A, F, B>(
    listener: TcpListener,
    answer: A,
    shutdown: impl Future<Output = ()>,
    patience: Duration,
) -> Drain
where
    A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    let http = http();
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let stream = tokio::select! {
            stream = accept(&listener) => stream,
            // Finished connections leave the set, so that it holds only live ones.
            Some(_) = connections.join_next() => continue,
            () = &mut shutdown => break,
        };
        let (answer, began) = (answer.clone(), Arc::new(AtomicBool::new(false)));
        let begins = Arc::clone(&began);
        let service = service_fn(move |request| {
            begins.store(true, Relaxed);
            let answer = answer(request);
            async { Ok::<_, Infallible>(answer.await) }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
        connections.spawn(attend(graceful.watch(connection), began));
    }
    // From here on connecting is refused, so that balancers go elsewhere.
    drop(listener);
    drain(graceful, connections, patience).await
}

/// Sees a connection to its end. Hyper limits the time for a request's head once it knows
/// the protocol; a connection that does not even get that far is ended here.
async fn attend<C, E>(connection: C, began: Arc<AtomicBool>)
where
    C: Future<Output = Result<(), E>>,
    E: Display,
{
    let mut connection = pin!(connection);
    let end = match time::timeout(HEAD_TIMEOUT, &mut connection).await {
        Ok(end) => end,
        Err(_) if began.load(Relaxed) => connection.await,
        Err(_) => return,
    };
    if let Err(error) = end {
        debug!(%error, "A connection broke");
    }
}

async fn drain(graceful: GracefulShutdown, mut live: JoinSet<()>, patience: Duration) -> Drain {
    if time::timeout(patience, graceful.shutdown()).await.is_ok() {
        return Drain::Complete;
    }
    while live.try_join_next().is_some() {}
    Drain::CutOff(live.len())
}

/// The next connection. One that fails before it begins is the caller's loss alone.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are small and complete: nothing is worth waiting for.
                if let Err(error) = stream.set_nodelay(true) {
                    debug!(%error, "Cannot turn off Nagle's algorithm");
                }
                return stream;
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
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(MAX_STREAMS);
    http
}
