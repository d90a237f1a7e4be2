//! `headgate health`

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Output,
    thread,
    time::Duration,
};

use headgate_testkit::wait_until;
use tokio::time::Instant;

use crate::harness::{Server, failure, json, printed, run, stderr};

/// Runs the command until it has a response in time: a busy machine may take longer than the two
/// seconds that it waits.
fn health(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut last = None;
    wait_until(Duration::from_secs(120), || {
        let output = last.insert(run(&[&["health"], arguments].concat(), variables));
        !stderr(output).contains("did not respond within")
    });
    last.expect("it has run")
}

#[test]
fn a_running_server_is_healthy() {
    // The server requires tokens elsewhere; this request has none.
    let server = Server::start(&[]);
    let output = health(&["--server", server.url()], &[]);
    assert_eq!(printed(&output), "status       ok\n");
    let output = health(&["--output", "json"], &[("HEADGATE_SERVER", server.url())]);
    assert_eq!(json(&output)["status"], "ok");
    // An unreadable token file does not matter.
    let at = [("HEADGATE_SERVER", server.url()), ("HEADGATE_TOKEN_FILE", "/nowhere")];
    printed(&health(&[], &at));
}

#[test]
fn an_unreachable_server_is_unhealthy() {
    // Nothing listens on port 1.
    let output = run(&["health", "--server", "http://127.0.0.1:1"], &[]);
    let message = failure(&output);
    assert!(
        message.starts_with("headgate: cannot reach a server at http://127.0.0.1:1: "),
        "{message}"
    );
}

#[test]
fn a_server_that_does_not_respond_times_out() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let began = Instant::now();
    let output = run(&["health", "--server", &url], &[]);
    assert_eq!(failure(&output), format!("headgate: {url} did not respond within 2 s\n"));
    // Other commands wait for two minutes.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn responses_of_other_servers_are_rejected() {
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    // The thread ends with the process. It keeps its connections open.
    thread::spawn(move || {
        let mut answered = Vec::new();
        for stream in other.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let refusal = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
            // A client that has given up does not read it.
            let _ = stream.write_all(refusal.as_bytes());
            answered.push(stream);
        }
    });
    let output = health(&["--server", &url], &[]);
    let message = failure(&output);
    assert!(message.contains("which may not be a headgate server: status 503"), "{message}");
}
