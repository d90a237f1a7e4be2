//! Logs of a running server.

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
