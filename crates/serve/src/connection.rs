//! The task of a connection.

use std::{
    future::{Future, poll_fn, ready},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use futures_util::FutureExt as _;
use h2::Reason;
use headgate_tls::{ClientCertificate, Tls};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header::CONNECTION};
use hyper::{
    body::{Body, Incoming},
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioTimer},
    server::conn::auto,
};
use tokio::{
    net::{TcpStream, UnixStream},
    sync::watch,
};
use tracing::{debug, warn};

use crate::{
    RequestBody, ResponseBody,
    activity::Activity,
    connections::{Connections, EndReason},
    handshake::Handshake,
    io::{Held, Socket},
    listener::AcceptedStream,
    phase::Phase,
    stream::Stream,
    wake_guarded::WakeGuarded,
    watchdog,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Interval of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of concurrent HTTP/2 streams of a connection.
const MAX_STREAMS: u32 = 256;

/// Maximum size of the head of a request.
const MAX_HEAD_BYTES: usize = 32 * 1024;

/// Maximum size of the headers of an HTTP/2 request, uncompressed and as its specification counts.
const MAX_HEADER_LIST_BYTES: u32 = 16 * 1024;

/// Memory of a header in addition to its name and value.
const HEADER_BYTES: usize = 128;

/// Maximum size of the send buffer of an HTTP/2 stream.
const MAX_SEND_BUFFER_BYTES: usize = 64 * 1024;

/// Maximum number of HTTP/2 requests that are cancelled before they are accepted.
const MAX_PENDING_RESETS: usize = 20;

/// HTTP settings of connections.
pub(crate) type Protocol = auto::Builder<TokioExecutor>;

/// The task of a connection.
pub(crate) struct ConnectionTask {
    pub(crate) protocol: Protocol,
    pub(crate) connections: Arc<Connections>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) phase: watch::Receiver<Phase>,
    pub(crate) idle: Duration,
    pub(crate) tls: Option<Arc<Tls>>,
    /// Dropped when the socket closes.
    pub(crate) held: Held,
}

pub(crate) fn protocol() -> Protocol {
    let mut http = auto::Builder::new(TokioExecutor::new());
    // Responses are small: copying one after its head costs less than a vectored write.
    http.http1().header_read_timeout(None).writev(false).max_buf_size(MAX_HEAD_BYTES);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST_BYTES)
        .max_send_buf_size(MAX_SEND_BUFFER_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    http
}

impl ConnectionTask {
    /// Serves the requests of a connection until it ends.
    pub(crate) async fn run<A, F, B>(mut self, stream: AcceptedStream, handler: A)
    where
        A: Fn(Request<RequestBody>) -> F + Send + Sync + 'static,
        F: Future<Output = Response<B>> + Send + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let Some((stream, certificate)) = self.open(stream).await else {
            return;
        };
        let Self { protocol, connections, activity, mut phase, idle, tls: _, held } = self;
        let socket = Socket::new(stream, Arc::clone(&activity), held);
        let service = service_fn(|request: Request<Incoming>| {
            respond(&activity, certificate.as_ref(), &handler, request)
        });
        let connection = protocol.serve_connection_with_upgrades(socket, service);
        let mut connection = pin!(connection);
        let mut stopping = WakeGuarded::new(stopping(&activity, &mut phase));
        let mut watch = WakeGuarded::new(watchdog::watch(&activity, idle));
        let (mut is_stopping, mut is_notified) = (false, false);
        let end = poll_fn(|context| {
            if !is_stopping {
                is_stopping = stopping.poll(context).is_ready();
            }
            if let Poll::Ready(reason) = watch.poll(context) {
                if activity.is_idle() || reason == EndReason::Crowded {
                    // Tells a TLS peer that the end is not an attack, and an HTTP/2 peer that it
                    // was sent away. Not waited for.
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.as_mut().poll(context);
                }
                return Poll::Ready(Err(reason));
            }
            let polled = connection.as_mut().poll(context);
            let is_ending = is_stopping || activity.has_to_go_away();
            if polled.is_pending() && is_ending && !is_notified {
                is_notified = true;
                // Over HTTP/2, it sends a GOAWAY that refuses no request, and another one once the
                // peer has answered a ping.
                connection.as_mut().graceful_shutdown();
                return connection.as_mut().poll(context).map(Ok);
            }
            polled.map(Ok)
        });
        match end.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => debug!(%error, "connection failed"),
            Err(reason) => connections.count_end(reason),
        }
    }
}

impl ConnectionTask {
    /// Registers the socket with the runtime of this task, and completes the TLS handshake.
    async fn open(
        &mut self,
        stream: AcceptedStream,
    ) -> Option<(Stream, Option<ClientCertificate>)> {
        let registered = match stream {
            AcceptedStream::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            AcceptedStream::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        };
        match (registered, &self.tls) {
            (Ok(Stream::Tcp(stream)), Some(tls)) => {
                let activity = &self.activity;
                let handshake = Handshake { tls, activity, idle: self.idle };
                // Boxed: connections without TLS have no room for it.
                Box::pin(handshake.run(stream, &self.connections, &mut self.phase)).await
            }
            (Ok(stream), _) => Some((stream, None)),
            (Err(error), _) => {
                warn!(%error, "failed to register a connection");
                None
            }
        }
    }
}

/// Serves one request, or resets its stream if too many bytes are buffered. Not an async block,
/// which would be twice as large and is moved for each request.
fn respond<A, F, B>(
    activity: &Arc<Activity>,
    certificate: Option<&ClientCertificate>,
    handler: &A,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody<B>>, h2::Error>> + Send + use<A, F, B>
where
    A: Fn(Request<RequestBody>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body,
{
    let is_http2 = request.version() == Version::HTTP_2;
    let in_flight = if is_http2 {
        let Ok(in_flight) = activity.start_http2(head_bytes(request.headers())) else {
            return ready(Reason::ENHANCE_YOUR_CALM)
                .map(|reason| Err(reason.into()))
                .right_future();
        };
        in_flight
    } else {
        activity.start_http1()
    };
    if let Some(certificate) = certificate {
        request.extensions_mut().insert(certificate.clone());
    }
    let request = request.map(|body| RequestBody::new(body, Arc::clone(activity)));
    let answered = handler(request).map(move |mut response| {
        if let Some(activity) = in_flight.activity().filter(|_| !is_http2) {
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                activity.upgrade();
            } else if activity.is_leaving() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
        }
        Ok(response.map(|body| ResponseBody::new(body, in_flight, is_http2)))
    });
    answered.left_future()
}

/// Memory of the headers of a request.
fn head_bytes(headers: &HeaderMap) -> usize {
    let bytes = |(name, value): (&http::HeaderName, &HeaderValue)| {
        HEADER_BYTES + name.as_str().len() + value.len()
    };
    headers.iter().map(bytes).sum()
}

/// Resolves when the connection has to close. Before that, the next response asks the peer to
/// connect elsewhere.
async fn stopping(activity: &Activity, phase: &mut watch::Receiver<Phase>) {
    // An error means that the server was dropped.
    let _ = phase.wait_for(|phase| *phase >= Phase::Leaving).await;
    activity.leave();
    let _ = phase.wait_for(|phase| *phase >= Phase::Ending).await;
}
