//! A server under a file size limit, so that every write fails.

use std::{fs, process::Command};

use serde_json::json;

use crate::harness::{Server, http};

/// More rules than fit under the limit.
const TOO_MANY: usize = 5_000;

fn create(server: &Server, token: &str, number: usize) -> String {
    let rule = json!({
        "scope": "user",
        "identifier_pattern": format!("u{number}"),
        "limit": 5,
        "window_seconds": 60,
    });
    let bearer = format!("authorization: Bearer {token}");
    http(server, "POST /api/v1/ratelimit/rules", &[bearer.as_str()], &rule.to_string())
}

#[test]
fn writes_succeed_again_once_the_file_size_limit_is_lifted() {
    let server = Server::start_limited(2048);
    let token = fs::read_to_string(server.folder().join("data/admin-token")).unwrap();
    let create = |number: usize| create(&server, token.trim(), number);
    let mut acknowledged = 0;
    // After a failed write, a small one may still fit, such as the server's own probe. The server
    // is then correctly reported as ready.
    let mut refused = 0;
    loop {
        let answer = create(acknowledged + refused);
        if answer.starts_with("HTTP/1.1 201 ") {
            acknowledged += 1;
        } else {
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
            refused += 1;
            if http(&server, "GET /readyz", &[], "").contains("error: cannot write: ") {
                break;
            }
        }
        assert!(
            acknowledged + refused < TOO_MANY,
            "{refused} refused: never reported as not ready"
        );
    }

    let pid = server.id().to_string();
    let lifted = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(lifted.expect("prlimit runs").success());
    for number in 0..12 {
        let answer = create(TOO_MANY + number);
        assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    }
    let bearer = format!("authorization: Bearer {}", token.trim());
    let list = http(&server, "GET /api/v1/ratelimit/rules", &[bearer.as_str()], "");
    let count = format!(r#""total_count":{},"#, acknowledged + 12);
    assert!(list.contains(&count), "nothing is lost: {count} in {list}");
}
