//! `headgate check`

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use crate::harness::{Server, run, stderr, stdout};

#[test]
fn the_exit_code_tells_scripts_what_the_table_tells_people() {
    let server = Server::start(&[
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "1"),
        ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "8640000"),
    ]);
    let at = [("HEADGATE_SERVER", server.url())];

    let allowed = run(&["check", "user", "u1"], &at);
    assert_eq!(allowed.status.code(), Some(0), "{allowed:?}");
    let lines: Vec<&str> = stdout(&allowed).lines().collect();
    assert_eq!(lines[..3], ["allowed      yes", "limit        1", "remaining    0"]);
    assert!(lines[3].starts_with("reset at     ") && lines.len() == 4, "{lines:?}");

    let denied = run(&["check", "user", "u1"], &at);
    assert_eq!(denied.status.code(), Some(2), "{denied:?}");
    let lines: Vec<&str> = stdout(&denied).lines().collect();
    assert_eq!(lines[0], "allowed      no");
    assert!(lines[4].starts_with("retry after  86"), "{lines:?}");
    assert_eq!(lines[5], "reason       rate limit exceeded for user:u1");
    assert_eq!(stderr(&denied), "");
}

#[test]
fn json_is_what_the_server_sent() {
    let server = Server::start(&[]);
    let output = run(
        &[
            "check",
            "endpoint",
            "/orders",
            "--window",
            "1m",
            "--server",
            server.url(),
            "--output",
            "json",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let decision: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(decision["remaining"], 99);
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_says_how_to_start_one() {
    // Nothing listens on port 1.
    let output = run(&["check", "user", "u1", "--server", "http://127.0.0.1:1"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "headgate: cannot reach a server at http://127.0.0.1:1: Connection refused (os error 111)\n\
         Start one with `headgate serve`, or name another with --server or HEADGATE_SERVER\n"
    );
}

#[test]
fn a_refusal_is_told_with_everything_that_is_wrong() {
    let server = Server::start(&[]);
    let output = run(&["check", "planet", "", "--server", server.url()], &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    let expected = "headgate: validation failed\n  \
        scope must be one of: service, user, endpoint\n  \
        identifier must not be empty\n(SYS_RATELIMIT_VALIDATION_ERROR, request req_";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn something_else_that_answers_is_not_believed() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // It has read enough to answer.
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = run(&["check", "user", "u1", "--server", &url], &[]);
    other.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("headgate: {url} does not answer like a headgate server: ");
    assert!(stderr(&output).starts_with(&expected), "{output:?}");
}

#[test]
fn what_is_no_server_is_refused() {
    for url in ["https://u:p@a", "127.0.0.1:8080", "http://", "http://a/b", "ftp://a"] {
        let output = run(&["check", "user", "u1", "--server", url], &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            stderr(&output).contains("expected http://HOST[:PORT] or https://HOST[:PORT], such as"),
            "{url}: {output:?}"
        );
    }
}

#[test]
fn a_mistyped_command_is_not_a_denial() {
    for arguments in [&["check", "user"][..], &["check", "user", "u1", "--wait"], &["chekc"], &[]] {
        let output = run(arguments, &[]);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
    assert_eq!(run(&["--help"], &[]).status.code(), Some(0));
    assert_eq!(run(&["--version"], &[]).status.code(), Some(0));
}
