//! One connection, from its first byte to its end.

use std::{
    convert::Infallible,
    future::{Future, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt as _;
use http::{HeaderValue, Request, Response, Version, header::CONNECTION};
use hyper::{
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto,
};
use tokio::{net::TcpStream, sync::watch};
use tracing::{debug, warn};

use crate::{
    Answer, RequestBody,
    activity::Activity,
    beside::Beside,
    connections::{Connections, EndReason},
    io::Socket,
    watchdog,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How often an HTTP/2 peer must show that it is there.
const PING_EVERY: Duration = Duration::from_secs(30);

/// How many HTTP/2 requests of one connection are answered at a time; more wait their turn.
const MAX_STREAMS: u32 = 256;

/// The largest head of a request.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// The same over HTTP/2, uncompressed and as its specification counts.
const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// What is framed of one HTTP/2 stream ahead of what the peer has taken.
const MAX_SEND_BUFFER_BYTES: usize = 64 * 1024;

/// HTTP/2 requests that the peer may cancel before they are looked at.
const MAX_PENDING_RESETS: usize = 20;

/// How far the server has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It has not.
    Serving,
    /// Peers are told to connect elsewhere, and are answered until they do.
    Leaving,
    /// Connections end with what they are doing.
    Ending,
}

/// How connections speak HTTP.
pub(crate) type Protocol = auto::Builder<TokioExecutor>;

/// Sees a connection to its end.
pub(crate) struct Attendant {
    pub(crate) protocol: Protocol,
    pub(crate) connections: Arc<Connections>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) idle: Duration,
}

pub(crate) fn protocol() -> Protocol {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // Answers are small: copying one behind its head costs less than handing both over.
    http.http1().header_read_timeout(None).writev(false).max_buf_size(MAX_HEAD_BYTES);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    http
}

impl Attendant {
    /// Answers the requests of a connection until it ends, or has to.
    pub(crate) async fn attend<A, F, B>(self, stream: std::net::TcpStream, answer: A)
    where
        A: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Self { protocol, connections, activity, mut phase, idle } = self;
        // From here on the thread that runs this is told when there is something to read.
        let socket = match TcpStream::from_std(stream) {
            Ok(stream) => Socket::new(stream, Arc::clone(&activity)),
            Err(error) => return warn!(%error, "failed to register a connection"),
        };
        let service = service_fn(|request: Request<Incoming>| respond(&activity, &answer, request));
        let connection = protocol.serve_connection_with_upgrades(socket, service);
        let mut connection = pin!(connection);
        let mut stopping = Beside::new(stopping(&activity, &mut phase));
        let mut watch = Beside::new(watchdog::watch(&activity, idle));
        let (mut is_stopping, mut is_told) = (false, false);
        let end = poll_fn(|context| {
            if !is_stopping {
                is_stopping = stopping.poll(context).is_ready();
            }
            if let Poll::Ready(reason) = watch.poll(context) {
                return Poll::Ready(Err(reason));
            }
            let is_leaving = activity.is_leaving() && activity.is_http2();
            if (is_leaving || is_stopping) && !is_told {
                is_told = true;
                connection.as_mut().graceful_shutdown();
            }
            connection.as_mut().poll(context).map(Ok)
        });
        match end.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "connection broke"),
            Err(reason) => end_with(&connections, reason),
        }
    }
}

fn end_with(connections: &Connections, reason: EndReason) {
    connections.count_end(reason);
    debug!(reason = reason.name(), "ended a connection");
}

/// Answers one request. An async block would be twice as large, and it is moved with every request.
fn respond<A, F, B>(
    activity: &Arc<Activity>,
    answer: &A,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Answer<B>>, Infallible>> + Send + use<A, F, B>
where
    A: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body,
{
    let is_http2 = request.version() == Version::HTTP_2;
    let asked = activity.begin(request.version());
    let request = request.map(|body| RequestBody::new(body, Arc::clone(activity)));
    answer(request).map(move |mut response| {
        if !is_http2 && asked.activity().is_some_and(|activity| activity.is_leaving()) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Ok(response.map(|body| Answer::new(body, asked, is_http2)))
    })
}

/// Ready when the connection is to end with what it is doing. Before that it tells the peer, with
/// the next answer, to connect elsewhere.
async fn stopping(activity: &Activity, phase: &mut watch::Receiver<Phase>) {
    // A server that is gone has stopped.
    let _ = phase.wait_for(|phase| *phase >= Phase::Leaving).await;
    activity.leave();
    let _ = phase.wait_for(|phase| *phase >= Phase::Ending).await;
}
