//! `headgate health`

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
    time::Duration,
};

use tokio::time::Instant;

use crate::harness::{Server, failure, json, printed, run};

#[test]
fn a_server_that_answers_is_well() {
    // Nobody is let in without a token, and none is given.
    let server = Server::start(&[]);
    let output = run(&["health", "--server", server.url()], &[]);
    assert_eq!(printed(&output), "status       ok\n");
    let output = run(&["health", "--output", "json"], &[("HEADGATE_SERVER", server.url())]);
    assert_eq!(json(&output)["status"], "ok");
    // A token that cannot be read is not needed either.
    let at = [("HEADGATE_SERVER", server.url()), ("HEADGATE_TOKEN_FILE", "/nowhere")];
    printed(&run(&["health"], &at));
}

#[test]
fn a_server_that_is_not_there_is_not_well() {
    // Nothing listens on port 1.
    let output = run(&["health", "--server", "http://127.0.0.1:1"], &[]);
    let told = failure(&output);
    assert!(told.starts_with("headgate: cannot reach a server at http://127.0.0.1:1: "), "{told}");
}

#[test]
fn a_server_that_does_not_answer_is_not_waited_for() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let began = Instant::now();
    let output = run(&["health", "--server", &url], &[]);
    assert_eq!(failure(&output), format!("headgate: {url} did not answer within 2 s\n"));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn somebody_else_s_answer_is_not_well() {
    let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", other.local_addr().unwrap());
    let answering = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]).unwrap();
        let refusal = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal.as_bytes()).unwrap();
        stream
    });
    let output = run(&["health", "--server", &url], &[]);
    let told = failure(&output);
    assert!(told.contains("does not answer like a headgate server: status 503"), "{told}");
    answering.join().unwrap();
}
