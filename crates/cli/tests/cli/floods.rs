//! Clients that ask for much and read nothing.

use std::{fs, net::SocketAddr, time::Duration};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use tokio::{runtime::Runtime, task::JoinHandle, time};

use crate::harness::{Server, http};

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

const CONNECTIONS: usize = 40;
const STREAMS: usize = 250;

/// What the flood may add to the server's memory: the default bound and as much again for the
/// streams and sockets themselves. Without a bound it adds more than a gigabyte.
const MAX_GROWTH_KB: usize = 160 * 1024;

/// A client that grants streams no window, and answers PINGs.
struct Glutton {
    requests: SendRequest<Bytes>,
    responses: Vec<ResponseFuture>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Glutton {
    async fn connect(address: SocketAddr) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut builder = h2::client::Builder::new();
        let (requests, connection) =
            builder.initial_window_size(0).handshake(stream).await.unwrap();
        Self { requests, responses: Vec::new(), connection: tokio::spawn(connection) }
    }

    /// Asks as often as it may.
    async fn ask(&mut self, request: impl Fn() -> Request<()>, body: Option<&'static [u8]>) {
        for _ in 0..STREAMS {
            let ready = time::timeout(LIMIT, self.requests.clone().ready()).await;
            let Ok(Ok(mut ready)) = ready else {
                return;
            };
            let Ok((response, mut stream)) = ready.send_request(request(), body.is_none()) else {
                return;
            };
            if let Some(body) = body {
                let _ = stream.send_data(Bytes::from_static(body), true);
            }
            self.responses.push(response);
        }
    }
}

/// The resident memory of a server in kilobytes.
fn resident(server: &Server) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id())).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn address(url: &str) -> SocketAddr {
    url.trim_start_matches("http://").parse().expect("an address")
}

/// Whether others are answered.
fn is_answered(server: &Server) -> bool {
    let body = r#"{"scope":"user","identifier":"honest"}"#;
    let answer = http(server, "POST /api/v1/ratelimit/check", &[], body);
    answer.starts_with("HTTP/1.1 200") && http(server, "GET /metrics", &[], "").contains(" 200 ")
}

/// Floods a server that ends stalled connections after two seconds.
fn flood(
    to: impl Fn(&Server) -> SocketAddr,
    request: impl Fn() -> Request<()> + Copy,
    body: Option<&'static [u8]>,
) {
    let server = Server::start(&[("HEADGATE__SERVER__IDLE_TIMEOUT_SECONDS", "2")]);
    assert!(is_answered(&server));
    let before = resident(&server);
    let runtime = Runtime::new().unwrap();
    let mut gluttons = Vec::new();
    let mut most = before;
    for _ in 0..CONNECTIONS {
        let glutton = runtime.block_on(async {
            let mut glutton = Glutton::connect(to(&server)).await;
            glutton.ask(request, body).await;
            glutton
        });
        gluttons.push(glutton);
        most = most.max(resident(&server));
        assert!(is_answered(&server), "an honest client is answered meanwhile");
    }
    assert!(most < before + MAX_GROWTH_KB, "{before} kB became {most} kB");
    // Each of them answers PINGs, and is ended all the same.
    for glutton in gluttons {
        let ended = runtime.block_on(async { time::timeout(LIMIT, glutton.connection).await });
        assert!(ended.is_ok(), "it is still open after {LIMIT:?}");
    }
    assert!(is_answered(&server));
}

#[test]
fn answers_that_nobody_reads_are_bounded() {
    flood(
        |server| address(server.url()),
        || Request::get("http://here/metrics").body(()).unwrap(),
        None,
    );
}

#[test]
fn grpc_answers_that_nobody_reads_are_bounded() {
    flood(
        |server| address(&server.grpc_url()),
        || {
            Request::post("http://here/grpc.health.v1.Health/Check")
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(())
                .unwrap()
        },
        Some(&[0; 5]),
    );
}

#[test]
fn requests_that_never_end_are_bounded() {
    let server = Server::start(&[]);
    assert!(is_answered(&server));
    let before = resident(&server);
    let runtime = Runtime::new().unwrap();
    let mut most = before;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(runtime.block_on(async {
            let mut glutton = Glutton::connect(address(server.url())).await;
            let mut bodies = Vec::new();
            for _ in 0..STREAMS {
                let request = Request::post("http://here/api/v1/ratelimit/check")
                    .header("content-type", "application/json")
                    .body(())
                    .unwrap();
                let ready = time::timeout(LIMIT, glutton.requests.clone().ready()).await;
                let Ok(Ok(mut ready)) = ready else {
                    break;
                };
                let Ok((response, mut body)) = ready.send_request(request, false) else {
                    break;
                };
                let _ = body.send_data(Bytes::from(vec![b' '; 60_000]), false);
                glutton.responses.push(response);
                bodies.push(body);
            }
            (glutton, bodies)
        }));
        most = most.max(resident(&server));
        assert!(is_answered(&server), "an honest client is answered meanwhile");
    }
    assert!(most < before + MAX_GROWTH_KB, "{before} kB became {most} kB");
}
