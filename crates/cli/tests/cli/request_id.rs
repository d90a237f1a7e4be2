//! Request ids: the same in the response, the log and the audit log.

use serde_json::json;

use crate::harness::{Server, http};

#[test]
fn response_log_and_audit_log_have_the_same_request_id() {
    let server = Server::start_with_log(&[
        ("HEADGATE__AUTH__MODE", "off"),
        ("HEADGATE__OBSERVABILITY__LOG__LEVEL", "debug"),
    ]);
    let rule = json!({
        "scope": "user", "identifier_pattern": "u1", "limit": 1, "window_seconds": 60,
    });
    let rule = rule.to_string();
    let reset = json!({"scope": "user", "identifier": "u1"}).to_string();
    for (line, body, action) in [
        ("POST /api/v1/ratelimit/rules", &rule, "rule.create"),
        ("POST /api/v1/ratelimit/reset", &reset, "counter.reset"),
    ] {
        let answer = http(&server, line, &[], body);
        let header = answer.lines().find_map(|line| line.strip_prefix("x-request-id: "));
        let id = header.expect("a header").trim();
        let log = server.log();
        assert!(log.lines().any(|line| line.contains(&format!("answered {id}"))), "{id} in {log}");
        let audit = server.json(&["audit", "--action", action]);
        assert_eq!(audit["entries"][0]["request_id"], id, "{audit}");
    }
}
