//! Logs of a running server.

use std::{
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

use super::{DEBUG, JSON, PERSON, caller::check, lines};
use crate::harness::{Server, http};

#[test]
fn the_access_log_has_a_sample_of_the_answered_requests() {
    let sample = ("HEADGATE__OBSERVABILITY__LOG__ACCESS_SAMPLE", "0.5");
    let mut server = Server::start_with_log(&[JSON, sample]);
    for _ in 0..10 {
        check(&server, &[]);
    }
    server.stop("-TERM");
    let log = server.log();
    let lines: Vec<Value> =
        lines(&log).into_iter().filter(|line| line["target"] == "headgate::access").collect();
    assert_eq!(lines.len(), 5, "{log}");
    for line in &lines {
        assert_eq!((&line["level"], &line["status"]), (&"INFO".into(), &200.into()), "{line}");
        for field in ["timestamp", "message", "request_id", "method", "path", "took_us"] {
            assert!(line.get(field).is_some(), "{field} of {line}");
        }
    }
    assert!(!log.contains("jane.doe"), "{log}");
}

#[test]
fn json_logs_have_request_ids_but_no_subjects() {
    let mut server = Server::start_with_log(&[JSON, DEBUG]);
    check(&server, &["x-request-id: check-1"]);
    let body = format!(r#"{{"scope":"{PERSON}","identifier":"{PERSON}"}}"#);
    http(&server, "POST /api/v1/ratelimit/check", &["x-request-id: check-2"], &body);
    server.stop("-TERM");

    let log = server.log();
    let lines = lines(&log);
    for (id, level, status) in [("check-1", "DEBUG", 200), ("check-2", "INFO", 400)] {
        let line = lines.iter().find(|line| line["request_id"] == id).expect(id);
        assert_eq!((&line["level"], &line["status"]), (&level.into(), &status.into()), "{line}");
        assert_eq!(line["path"], "/api/v1/ratelimit/check");
        assert_eq!(line.get("trace_id"), None, "tracing is off: {line}");
    }
    assert!(!log.contains("jane.doe"), "{log}");
}

#[test]
fn pretty_logs_are_plain_text() {
    let variables = [("HEADGATE__OBSERVABILITY__LOG__FORMAT", "pretty"), DEBUG];
    let server = Server::start_with_log(&variables);
    check(&server, &["x-request-id: check-1"]);
    assert!(server.log().contains("answered check-1 request_id=\"check-1\""), "{}", server.log());
}

/// Sends requests that are refused, and thus logged. Returns after the last response.
fn send_refused(server: &Server, count: usize) {
    let mut stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let id = "x".repeat(128);
    let request = format!("GET /unknown HTTP/1.1\r\nhost: here\r\nx-request-id: {id}\r\n\r\n");
    let last = "GET /unknown HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
    stream.write_all((request.repeat(count - 1) + last).as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).expect("all are answered");
    assert_eq!(answers.matches("HTTP/1.1 404").count(), count);
}

fn dropped_lines(server: &Server) -> u64 {
    let metrics = http(server, "GET /metrics", &[], "");
    let is_dropped = |line: &&str| line.starts_with("headgate_log_lines_dropped_total");
    let line = metrics.lines().find(is_dropped).expect("the metric");
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_reader_of_the_log_that_stalls_does_not_stop_the_server() {
    let (reader, writer) = io::pipe().unwrap();
    let mut server = Server::start_with_stderr(writer.into(), &[]);
    while dropped_lines(&server) == 0 {
        send_refused(&server, 100);
    }
    // Once it reads again, it learns that lines are missing.
    let mut lines = BufReader::new(reader).lines();
    let dropped = lines.find(|line| line.as_ref().unwrap().contains(" log lines: standard error"));
    assert!(dropped.unwrap().unwrap().contains("dropped "));
    // The end of the process does not wait for it, either.
    let before = dropped_lines(&server);
    while dropped_lines(&server) == before {
        send_refused(&server, 100);
    }
    assert_eq!(server.stop("-TERM").code(), Some(0));
}
