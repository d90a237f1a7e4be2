//! A server on a free port, and peers that misbehave.

use std::{convert::Infallible, future::pending, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use headgate_serve::{
    Bounds, ClientCertificate, Connections, Drain, EndReason, Listener, RequestBody, Server,
    Timeouts, Tls, UnixSocket,
};
use http::{HeaderValue, Request, Response, StatusCode, header::UPGRADE};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{body::Frame, upgrade::OnUpgrade};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    runtime::Handle,
    sync::oneshot,
    task::JoinHandle,
    time,
};

/// Timeout on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Size of the response to `/large`.
pub(crate) const LARGE: usize = 128 * 1024;

pub(crate) const BOUNDS: Bounds =
    Bounds { max_connections: 1_000, max_buffered_bytes: 64 * 1024 * 1024 };

pub(crate) const TIMEOUTS: Timeouts = Timeouts {
    idle: Duration::from_secs(600),
    grace: Duration::from_secs(600),
    drain: Duration::from_secs(600),
};

type Body = UnsyncBoxBody<Bytes, Infallible>;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) connections: Arc<Connections>,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<Drain>,
}

/// A peer over HTTP/2.
pub(crate) struct Peer {
    pub(crate) requests: SendRequest<Bytes>,
    /// Resolves when the connection ends.
    pub(crate) connection: JoinHandle<Result<(), h2::Error>>,
    pub(crate) responses: Vec<ResponseFuture>,
}

// === impl Running ===

impl Running {
    pub(crate) async fn start(bounds: Bounds, timeouts: Timeouts) -> Self {
        Self::start_with(bounds, timeouts, None).await
    }

    pub(crate) async fn start_with(
        bounds: Bounds,
        timeouts: Timeouts,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        Self::start_on(listener, address, bounds, timeouts, tls)
    }

    /// Starts on a Unix domain socket; there is no address.
    pub(crate) fn start_on_socket(socket: UnixSocket) -> Self {
        let none = SocketAddr::from(([0, 0, 0, 0], 0));
        Self::start_on(socket, none, BOUNDS, TIMEOUTS, None)
    }

    fn start_on(
        listener: impl Into<Listener>,
        address: SocketAddr,
        bounds: Bounds,
        timeouts: Timeouts,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let connections = Connections::new(bounds);
        let server = Server {
            listener: listener.into(),
            tls,
            runtime: Handle::current,
            admit: |_| Some(()),
            connections: Arc::clone(&connections),
            timeouts,
        };
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(server.serve(answer, async {
            let _ = stopped.await;
        }));
        Self { address, connections, stop, serving }
    }

    /// Starts the shutdown.
    pub(crate) fn stop(self) -> JoinHandle<Drain> {
        self.stop.send(()).unwrap();
        self.serving
    }

    /// Waits until this many connections were closed for this reason.
    pub(crate) async fn ended(&self, reason: EndReason, count: u64) {
        let what = format!("{count} connections ended: {}", reason.name());
        until(&what, || self.connections.ended(reason) >= count).await;
    }

    /// Status line and headers of the response to a request on a new HTTP/1 connection.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        ask(&mut stream, path).await;
        let mut answer = vec![0; 1024];
        let read = time::timeout(LIMIT, stream.read(&mut answer)).await.unwrap().unwrap();
        String::from_utf8_lossy(&answer[..read]).into_owned()
    }
}

// === impl Peer ===

impl Peer {
    /// A peer with a flow-control window of this many bytes per stream.
    pub(crate) async fn connect(address: SocketAddr, window: u32) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(window);
        let (requests, connection) = builder.handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        Self { requests, connection, responses: Vec::new() }
    }

    /// Sends a request. Returns `true` if the connection accepted it.
    pub(crate) async fn ask(&mut self, path: &str) -> bool {
        self.ask_with(path, "").await
    }

    /// Sends a request with a header of this value.
    pub(crate) async fn ask_with(&mut self, path: &str, header: &str) -> bool {
        let request = Request::get(format!("http://test{path}")).header("x-header", header);
        let request = request.body(()).unwrap();
        let Ok(Ok(mut ready)) = time::timeout(LIMIT, self.requests.clone().ready()).await else {
            return false;
        };
        let Ok((response, _)) = ready.send_request(request, true) else {
            return false;
        };
        self.responses.push(response);
        true
    }

    /// The response to the last request.
    pub(crate) async fn answer(&mut self) -> Result<Response<h2::RecvStream>, h2::Error> {
        let response = self.responses.pop().unwrap();
        time::timeout(LIMIT, response).await.expect("an answer")
    }

    /// Waits until the connection has ended.
    pub(crate) async fn ended(self) {
        let _ = time::timeout(LIMIT, self.connection).await.expect("the connection ends").unwrap();
    }
}

pub(crate) async fn ask(stream: &mut TcpStream, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

/// Reads a body to its end. Returns its length.
pub(crate) async fn read(mut body: h2::RecvStream) -> usize {
    let mut read = 0;
    while let Some(part) = time::timeout(LIMIT, body.data()).await.expect("the next part") {
        let part = part.expect("an answer that is complete");
        read += part.len();
        body.flow_control().release_capacity(part.len()).unwrap();
    }
    read
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < LIMIT, "{what}");
        time::sleep(Duration::from_millis(5)).await;
    }
}

async fn answer(mut request: Request<RequestBody>, _: SocketAddr) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path == "/echo" {
        tokio::spawn(echo(hyper::upgrade::on(&mut request)));
        return switching_protocols();
    }
    Response::new(match path.as_str() {
        "/large" => Full::new(Bytes::from(vec![b'x'; LARGE])).boxed_unsync(),
        // A response that has started and never ends.
        "/endless" => {
            let first = Ok(Frame::data(Bytes::from_static(b"first")));
            let stream = futures_util::stream::once(async { first });
            let stream = futures_util::StreamExt::chain(stream, futures_util::stream::pending());
            StreamBody::new(stream).boxed_unsync()
        }
        "/never" => pending().await,
        "/upload" => match request.into_body().collect().await {
            Ok(body) => Full::new(Bytes::from(body.to_bytes().len().to_string())).boxed_unsync(),
            Err(error) => Full::new(Bytes::from(error.to_string())).boxed_unsync(),
        },
        "/names" => {
            let names = request.extensions().get::<ClientCertificate>();
            let names = names.map(|it| it.names().iter().map(ToString::to_string).collect());
            let names = names.map_or("none".to_owned(), |names: Vec<_>| names.join(" "));
            Full::new(Bytes::from(names)).boxed_unsync()
        }
        _ => Full::new(Bytes::from_static(b"small")).boxed_unsync(),
    })
}

fn switching_protocols() -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert(UPGRADE, HeaderValue::from_static("echo"));
    response
}

/// Sends back what an upgraded connection receives, until its peer closes it.
async fn echo(upgraded: OnUpgrade) {
    let Ok(upgraded) = upgraded.await else { return };
    let (mut reader, mut writer) = tokio::io::split(TokioIo::new(upgraded));
    let _ = tokio::io::copy(&mut reader, &mut writer).await;
}
