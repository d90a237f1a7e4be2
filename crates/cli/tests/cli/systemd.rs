//! The protocols of the service manager: notifications, the watchdog and socket activation.

use std::{net::TcpListener, os::unix::net::UnixDatagram, process::Command, time::Duration};

use headgate_testkit::{find_program, free_port, require, wait_until};

use crate::harness::{Server, http, stderr};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(60);

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        Self { socket, folder }
    }

    fn address(&self) -> String {
        self.folder.path().join("notify").display().to_string()
    }

    /// Waits for the next message.
    fn next(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.socket.recv(&mut buffer).expect("a notification");
        String::from_utf8(buffer[..length].to_vec()).unwrap().trim().to_owned()
    }

    /// Waits for a message, which only those of the watchdog may precede.
    fn expect(&self, message: &str) {
        loop {
            match self.next() {
                found if found == message => return,
                found => assert_eq!(found, "WATCHDOG=1", "before {message}"),
            }
        }
    }
}

#[test]
fn the_service_manager_is_notified() {
    let manager = Manager::new();
    let address = manager.address();
    // The socket has room for about ten messages: with more, a server that ends slowly would wait.
    let mut server = Server::start(&[("NOTIFY_SOCKET", &address), ("WATCHDOG_USEC", "4000000")]);
    manager.expect("READY=1");
    for _ in 0..3 {
        manager.expect("WATCHDOG=1");
    }
    server.send("-TERM");
    manager.expect("STOPPING=1");
    assert_eq!(server.wait().code(), Some(0));
}

#[test]
fn a_reload_during_the_drain_does_not_report_ready_again() {
    let manager = Manager::new();
    let address = manager.address();
    let mut server = Server::start_with_log(&[
        ("NOTIFY_SOCKET", &address),
        ("HEADGATE__SERVER__SHUTDOWN_DELAY_SECONDS", "3600"),
    ]);
    assert_eq!(manager.next(), "READY=1");
    server.send("-TERM");
    assert_eq!(manager.next(), "STOPPING=1");
    server.send("-HUP");
    let reloaded = || server.log().contains("reloaded the configuration");
    assert!(wait_until(LIMIT, reloaded), "{}", server.log());
    server.stop("-TERM");
    manager.socket.set_nonblocking(true).unwrap();
    let nothing = manager.socket.recv(&mut [0; 256]).unwrap_err();
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn the_watchdog_is_silent_unless_it_is_asked_for() {
    let manager = Manager::new();
    let address = manager.address();
    let mut server = Server::start(&[("NOTIFY_SOCKET", &address)]);
    assert_eq!(manager.next(), "READY=1");
    assert_eq!(server.stop("-TERM").code(), Some(0));
    assert_eq!(manager.next(), "STOPPING=1");
}

#[test]
fn systemd_passes_its_sockets() {
    let activate = require!(find_program("systemd-socket-activate"));
    // In the other order, which the names tell.
    let [grpc, rest] = [free_port(), free_port()].map(|port| format!("127.0.0.1:{port}"));
    let mut launcher = Command::new(activate);
    launcher.args(["--listen", &grpc, "--listen", &rest, "--fdname=grpc:rest"]);
    launcher.args(["--setenv", "HEADGATE__SERVER__GRPC_PORT=1"]);
    launcher.args([env!("CARGO_BIN_EXE_headgate"), "serve"]);
    // It starts the server at the first connection.
    let first = std::thread::spawn({
        let rest = rest.clone();
        move || {
            let connects = || std::net::TcpStream::connect(&rest).is_ok();
            assert!(wait_until(LIMIT, connects), "nothing listens");
        }
    });
    let server = Server::start_by(launcher);
    first.join().unwrap();
    assert_eq!(server.url(), format!("http://{rest}"), "{}", server.greeting);
    assert_eq!(server.grpc_url(), format!("http://{grpc}"), "{}", server.greeting);
    assert!(http(&server, "GET /healthz", &[], "").starts_with("HTTP/1.1 200 OK"));
    assert_eq!(server.signal("-TERM").code(), Some(0));
}

#[test]
fn sockets_of_another_process_are_ignored() {
    let variables = [("LISTEN_FDS", "2"), ("LISTEN_PID", "1")];
    let server = Server::start(&variables);
    assert!(http(&server, "GET /healthz", &[], "").starts_with("HTTP/1.1 200 OK"));
}

#[test]
fn an_exposed_socket_needs_the_same_host_in_the_configuration() {
    let sockets = ["0.0.0.0:0", "127.0.0.1:0"].map(|address| TcpListener::bind(address).unwrap());
    let server = Server::start_on([&sockets[0], &sockets[1]], &[]);
    assert_eq!(server.greeting, "");
    let log = server.log();
    assert!(log.contains("set server.host to the socket's address"), "{log}");

    let variables = [("HEADGATE__SERVER__HOST", "0.0.0.0"), ("HEADGATE__AUTH__MODE", "off")];
    let server = Server::start_on([&sockets[0], &sockets[1]], &variables);
    assert_ne!(server.greeting, "", "{}", server.log());
}

#[test]
fn too_many_sockets_are_rejected() {
    let mut command = Command::new("sh");
    let activated = "LISTEN_PID=$$ LISTEN_FDS=3 exec \"$0\" serve";
    command.args(["-c", activated, env!("CARGO_BIN_EXE_headgate")]).env_clear();
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("passed 3 sockets (LISTEN_FDS)"), "{}", stderr(&output));
}
