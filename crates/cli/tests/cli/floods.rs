//! Clients that send many requests and read no response.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    process::Command,
    time::Duration,
};

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use http::Request;
use tokio::{runtime::Runtime, task::JoinHandle, time};

use crate::harness::{Server, http};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

const CONNECTIONS: usize = 40;
const STREAMS: usize = 250;

/// Maximum growth of the server's memory: the default bound and as much again for the
/// streams and sockets themselves. Without a bound it adds more than a gigabyte.
const MAX_GROWTH_KB: usize = 160 * 1024;

/// An HTTP/2 client that grants streams no window but answers PINGs.
struct SlowReader {
    requests: SendRequest<Bytes>,
    responses: Vec<ResponseFuture>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl SlowReader {
    async fn connect(address: SocketAddr) -> Self {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut builder = h2::client::Builder::new();
        let (requests, connection) =
            builder.initial_window_size(0).handshake(stream).await.unwrap();
        Self { requests, responses: Vec::new(), connection: tokio::spawn(connection) }
    }

    /// Opens as many streams as the server allows.
    async fn send_requests(&mut self, request: impl Fn() -> Request<()>, body: Option<&Bytes>) {
        for _ in 0..STREAMS {
            let ready = time::timeout(LIMIT, self.requests.clone().ready()).await;
            let Ok(Ok(mut ready)) = ready else {
                return;
            };
            let Ok((response, mut stream)) = ready.send_request(request(), body.is_none()) else {
                return;
            };
            if let Some(body) = body {
                let _ = stream.send_data(body.clone(), true);
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

/// Returns true if requests of other clients succeed.
fn serves_others(server: &Server) -> bool {
    let body = r#"{"scope":"user","identifier":"honest"}"#;
    let answer = http(server, "POST /api/v1/ratelimit/check", &[], body);
    answer.starts_with("HTTP/1.1 200") && http(server, "GET /metrics", &[], "").contains(" 200 ")
}

/// Floods a server that ends stalled connections after two seconds.
fn flood(
    to: impl Fn(&Server) -> SocketAddr,
    request: impl Fn() -> Request<()> + Copy,
    body: Option<&Bytes>,
) {
    let server = Server::start(&[("HEADGATE__SERVER__IDLE_TIMEOUT_SECONDS", "2")]);
    assert!(serves_others(&server));
    let before = resident(&server);
    let runtime = Runtime::new().unwrap();
    let mut clients = Vec::new();
    let mut most = before;
    for _ in 0..CONNECTIONS {
        let client = runtime.block_on(async {
            let mut client = SlowReader::connect(to(&server)).await;
            client.send_requests(request, body).await;
            client
        });
        clients.push(client);
        most = most.max(resident(&server));
        assert!(serves_others(&server), "other clients are served meanwhile");
    }
    assert!(most < before + MAX_GROWTH_KB, "{before} kB became {most} kB");
    // Connections are closed although their clients answer PINGs.
    for client in clients {
        let ended = runtime.block_on(async { time::timeout(LIMIT, client.connection).await });
        assert!(ended.is_ok(), "it is still open after {LIMIT:?}");
    }
    assert!(serves_others(&server));
}

#[test]
fn memory_for_unread_responses_is_bounded() {
    flood(
        |server| address(server.url()),
        || Request::get("http://here/metrics").body(()).unwrap(),
        None,
    );
}

/// Asks reflection this many times for a file of tens of kilobytes.
fn descriptors(times: usize) -> Bytes {
    const SYMBOL: &[u8] = b"k1s0.system.ratelimit.v1.RateLimitService";
    let length = u8::try_from(SYMBOL.len()).unwrap();
    // Field 4 of the message, in an uncompressed frame.
    let frame = [&[0, 0, 0, 0, length + 2, 0x22, length], SYMBOL].concat();
    frame.repeat(times).into()
}

#[test]
fn memory_for_unread_grpc_responses_is_bounded() {
    flood(
        |server| address(&server.grpc_url()),
        || {
            Request::post("http://here/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
                .header("content-type", "application/grpc")
                .header("te", "trailers")
                .body(())
                .unwrap()
        },
        Some(&descriptors(8)),
    );
}

#[test]
fn memory_for_unfinished_requests_is_bounded() {
    let server = Server::start(&[]);
    assert!(serves_others(&server));
    let before = resident(&server);
    let runtime = Runtime::new().unwrap();
    let mut most = before;
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        open.push(runtime.block_on(async {
            let mut client = SlowReader::connect(address(server.url())).await;
            let mut bodies = Vec::new();
            for _ in 0..STREAMS {
                let request = Request::post("http://here/api/v1/ratelimit/check")
                    .header("content-type", "application/json")
                    .body(())
                    .unwrap();
                let ready = time::timeout(LIMIT, client.requests.clone().ready()).await;
                let Ok(Ok(mut ready)) = ready else {
                    break;
                };
                let Ok((response, mut body)) = ready.send_request(request, false) else {
                    break;
                };
                let _ = body.send_data(Bytes::from(vec![b' '; 60_000]), false);
                client.responses.push(response);
                bodies.push(body);
            }
            (client, bodies)
        }));
        most = most.max(resident(&server));
        assert!(serves_others(&server), "other clients are served meanwhile");
    }
    assert!(most < before + MAX_GROWTH_KB, "{before} kB became {most} kB");
}

#[test]
fn memory_for_the_heads_of_unfinished_requests_is_bounded() {
    let server = Server::start(&[]);
    assert!(serves_others(&server));
    let before = resident(&server);
    let runtime = Runtime::new().unwrap();
    let mut most = before;
    let mut open = Vec::new();
    let header = "x".repeat(14_000);
    // Together they send 280 MB.
    for _ in 0..2 * CONNECTIONS {
        open.push(runtime.block_on(async {
            let mut client = SlowReader::connect(address(server.url())).await;
            let mut bodies = Vec::new();
            for _ in 0..STREAMS {
                let request = Request::post("http://here/api/v1/ratelimit/check")
                    .header("content-type", "application/json")
                    .header("x-header", &header)
                    .body(())
                    .unwrap();
                let ready = time::timeout(LIMIT, client.requests.clone().ready()).await;
                let Ok(Ok(mut ready)) = ready else {
                    break;
                };
                let Ok((response, body)) = ready.send_request(request, false) else {
                    break;
                };
                client.responses.push(response);
                bodies.push(body);
            }
            (client, bodies)
        }));
        most = most.max(resident(&server));
    }
    assert!(serves_others(&server), "other clients are served meanwhile");
    assert!(most < before + MAX_GROWTH_KB, "{before} kB became {most} kB");
}

#[test]
fn idle_connections_do_not_use_up_the_files_of_the_process() {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 300; exec \"$0\" serve", env!("CARGO_BIN_EXE_headgate")]);
    // Idle connections stay until a new connection needs the place.
    command.env_clear().env("HEADGATE__SERVER__IDLE_TIMEOUT_SECONDS", "3600");
    let server = Server::start_by(command);
    let address = address(server.url());
    // The last ones wait to be accepted until the first ones are closed.
    let _idle: Vec<_> = (0..400).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(serves_others(&server));
    let metrics = http(&server, "GET /metrics", &[], "");
    let open = metrics.lines().find_map(|line| line.strip_prefix("headgate_connections{"));
    let open: u64 = open.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap();
    assert!(open <= 150, "{open}");
    assert!(http(&server, "GET /readyz", &[], "").contains(r#""database":"ok""#));
}
