//! Rolling restarts under load: no request fails.

mod envoy;
mod handover;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use headgate_testkit::{Nginx, free_port, require, wait_until};

use crate::harness::Server;

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

/// The time that clients have for another request after the signal to stop. It ends early once all
/// of them have gone elsewhere.
const GRACE: (&str, &str) = ("HEADGATE__SERVER__SHUTDOWN_GRACE_SECONDS", "60");

/// Pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(2);

/// A keep-alive client.
struct Client {
    stream: BufReader<TcpStream>,
}

/// A response.
struct Reply {
    status: u16,
    closes: bool,
}

impl Client {
    fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a check and reads the whole response.
    fn check(&mut self) -> std::io::Result<Reply> {
        let body = r#"{"scope":"user","identifier":"u1"}"#;
        let request = format!(
            "POST /api/v1/ratelimit/check HTTP/1.1\r\nhost: here\r\nx-user: u1\r\ncontent-type: \
             application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut status = String::new();
        if self.stream.read_line(&mut status)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let (mut length, mut closes) = (0, false);
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            closes |= line == "connection: close";
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.parse().expect("a length");
            }
        }
        self.stream.read_exact(&mut vec![0; length])?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        Ok(Reply { status: status.expect("a status"), closes })
    }
}

/// Clients that send one request after the other until stopped.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    clients: Vec<JoinHandle<Vec<String>>>,
}

impl Load {
    /// Starts clients that keep their connections.
    pub(crate) fn start(address: SocketAddr, clients: usize) -> Self {
        Self::with(clients, move |stop, answered| ask(address, stop, answered))
    }

    /// Starts threads that run `ask`, which counts responses and returns errors, until stopped.
    fn with<F>(clients: usize, ask: F) -> Self
    where
        F: Fn(&AtomicBool, &AtomicUsize) -> Vec<String> + Clone + Send + 'static,
    {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let clients = (0..clients).map(|_| {
            let (stop, answered, ask) = (Arc::clone(&stop), Arc::clone(&answered), ask.clone());
            thread::spawn(move || ask(&stop, &answered))
        });
        let clients = clients.collect();
        Self { stop, answered, clients }
    }

    /// Waits for `more` responses.
    pub(crate) fn answered(&self, more: usize) {
        let before = self.answered.load(SeqCst);
        let enough = || self.answered.load(SeqCst) >= before + more || self.is_over();
        assert!(wait_until(LIMIT, enough), "only {}", self.answered.load(SeqCst) - before);
    }

    /// Returns true if a client has stopped, which it does on an error.
    fn is_over(&self) -> bool {
        self.clients.iter().any(JoinHandle::is_finished)
    }

    /// Stops the clients and returns their errors.
    pub(crate) fn stop(self) -> Vec<String> {
        self.stop.store(true, SeqCst);
        self.clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    }
}

fn ask(address: SocketAddr, stop: &AtomicBool, answered: &AtomicUsize) -> Vec<String> {
    let mut problems = Vec::new();
    let mut client = Client::connect(address).expect("a connection");
    while !stop.load(SeqCst) && problems.is_empty() {
        match client.check() {
            Ok(Reply { status: 200, closes }) => {
                answered.fetch_add(1, SeqCst);
                if closes {
                    client = Client::connect(address).expect("a connection");
                }
            }
            Ok(Reply { status, .. }) => problems.push(format!("status {status}")),
            Err(error) => problems.push(error.to_string()),
        }
        thread::park_timeout(PAUSE);
    }
    problems
}

fn start(port: u16) -> Server {
    Server::start(&[
        ("HEADGATE__SERVER__PORT", &port.to_string()),
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000000"),
        ("HEADGATE__SERVER__SHUTDOWN_DELAY_SECONDS", "1"),
        GRACE,
    ])
}

#[test]
fn servers_behind_nginx_restart_in_turn_without_an_error() {
    let ports = [free_port(), free_port()];
    let mut servers = ports.map(start);
    let nginx = Nginx::start(|port| {
        let [one, other] = ports;
        format!(
            "upstream headgate {{ server 127.0.0.1:{one} max_fails=0; \
             server 127.0.0.1:{other} max_fails=0; keepalive 16; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://headgate; \
             proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}"
        )
    });
    let nginx = require!(nginx);
    let load = Load::start(SocketAddr::from(([127, 0, 0, 1], nginx.port())), 12);
    load.answered(100);
    for round in 0..4 {
        let which = round % 2;
        let status = servers[which].stop("-TERM");
        assert_eq!(status.code(), Some(0));
        servers[which] = start(ports[which]);
        load.answered(100);
    }
    assert_eq!(load.stop(), Vec::<String>::new());
}

#[test]
fn keep_alive_clients_get_connection_close_before_shutdown() {
    let mut server = start(0);
    let address: SocketAddr = server.url().trim_start_matches("http://").parse().unwrap();
    let (ready, announced) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..24)
        .map(|_| {
            let (ready, announced) = (Arc::clone(&ready), Arc::clone(&announced));
            thread::spawn(move || {
                let mut client = Client::connect(address).unwrap();
                ready.fetch_add(1, SeqCst);
                loop {
                    let reply = client.check()?;
                    assert_eq!(reply.status, 200);
                    if reply.closes {
                        announced.fetch_add(1, SeqCst);
                        return Ok::<_, std::io::Error>(());
                    }
                    thread::park_timeout(PAUSE);
                }
            })
        })
        .collect();
    assert!(wait_until(LIMIT, || ready.load(SeqCst) == 24));
    assert_eq!(server.stop("-TERM").code(), Some(0));
    let broken: Vec<_> = clients.into_iter().filter_map(|one| one.join().unwrap().err()).collect();
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(announced.load(SeqCst), 24);
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    let mut server = Server::start(&[("HEADGATE__SERVER__SHUTDOWN_DELAY_SECONDS", "3600")]);
    server.send("-TERM");
    // The second signal may differ from the first.
    assert_eq!(server.stop("-INT").code(), Some(1));
}

#[test]
fn sighup_reloads_envoy_files_and_does_not_stop_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.yaml"));
    std::fs::write(file("one"), "domain: one\ndescriptors: []\n").unwrap();
    let server = Server::start_with_log(&[
        ("HEADGATE__ENVOY__ENABLED", "true"),
        ("HEADGATE__ENVOY__CONFIG_DIR", folder.path().to_str().unwrap()),
        ("HEADGATE__ENVOY__RELOAD_INTERVAL_SECONDS", "3600"),
    ]);
    assert!(server.log().contains("loaded Envoy configuration domains=1"), "{}", server.log());
    std::fs::write(file("two"), "domain: two\ndescriptors: []\n").unwrap();
    server.send("-HUP");
    let logged = || server.log().contains("loaded Envoy configuration domains=2");
    assert!(wait_until(LIMIT, logged), "{}", server.log());
    let address = server.url().trim_start_matches("http://").parse().unwrap();
    assert_eq!(Client::connect(address).unwrap().check().unwrap().status, 200);
    assert_eq!(server.signal("-TERM").code(), Some(0));
}
