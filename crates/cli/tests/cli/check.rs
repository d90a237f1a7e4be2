//! `headgate check`

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use crate::harness::{Server, run, stderr, stdout};

#[test]
fn exit_code_and_table_show_the_decision() {
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
fn json_output_is_the_response_body() {
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
fn an_unreachable_server_is_reported_with_a_hint() {
    // Nothing listens on port 1.
    let output = run(&["check", "user", "u1", "--server", "http://127.0.0.1:1"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        stderr(&output),
        "headgate: cannot reach a server at http://127.0.0.1:1: Connection refused (os error 111)\n\
         Start one with `headgate serve`, or set another URL with --server or HEADGATE_SERVER\n"
    );
}

#[test]
fn all_invalid_fields_are_reported() {
    let server = Server::start(&[]);
    let output = run(&["check", "planet", "", "--server", server.url()], &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = stderr(&output);
    let expected = "headgate: validation failed\n  \
        scope must be one of: service, user, endpoint\n  \
        identifier must not be empty\n(SYS_RATELIMIT_VALIDATION_ERROR, request req_";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn responses_of_other_servers_are_rejected() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // The rest of the request does not matter.
        stream.read_exact(&mut [0; 4]).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let output = run(&["check", "user", "u1", "--server", &url], &[]);
    other.join().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("headgate: unexpected response from {url}, which may not be ");
    assert!(stderr(&output).starts_with(&expected), "{output:?}");
}

#[test]
fn invalid_server_urls_are_rejected() {
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
fn usage_errors_do_not_exit_like_denials() {
    for arguments in [&["check", "user"][..], &["check", "user", "u1", "--wait"], &["chekc"], &[]] {
        let output = run(arguments, &[]);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    }
    assert_eq!(run(&["--help"], &[]).status.code(), Some(0));
    assert_eq!(run(&["--version"], &[]).status.code(), Some(0));
}
