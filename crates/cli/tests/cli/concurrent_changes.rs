//! Commands that read and then write, while another client changes rules or quotas in between.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::Output,
    thread,
};

use serde_json::{Value, json};

use crate::harness::{Server, printed, stderr};

const RULES: &str = "/api/v1/ratelimit/rules";

/// A request as it was sent.
pub(crate) struct Sent {
    pub(crate) head: String,
    body: Vec<u8>,
}

impl Sent {
    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(number) = lower.strip_prefix("content-length:") {
                length = number.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some(Self { head, body })
    }

    /// Returns true if it changes anything.
    fn is_write(&self) -> bool {
        let is_read = self.head.starts_with("GET ")
            || String::from_utf8_lossy(&self.body).contains(r#""dry_run":true"#);
        !is_read
    }

    fn forward(&self, server: &str) -> Vec<u8> {
        let mut stream = TcpStream::connect(server).unwrap();
        write!(stream, "{}connection: close\r\n\r\n", self.head).unwrap();
        stream.write_all(&self.body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        answer
    }
}

/// Runs a command on `server`; another client sends `concurrent` right before its write.
fn run_while(server: &Server, arguments: &[&str], concurrent: (&str, &str, &Value)) -> Output {
    run_before(server, arguments, concurrent, Sent::is_write)
}

/// Runs a command on `server`; another client sends `concurrent` before each request that `selects`
/// returns true for.
pub(crate) fn run_before(
    server: &Server,
    arguments: &[&str],
    concurrent: (&str, &str, &Value),
    mut selects: impl FnMut(&Sent) -> bool + Send + 'static,
) -> Output {
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", between.local_addr().unwrap());
    let address = server.url().trim_start_matches("http://").to_owned();
    let (method, path, body) = concurrent;
    let (line, body) = (format!("{method} {path} HTTP/1.1"), body.to_string());
    let token = fs::read_to_string(server.folder().join("data/admin-token")).unwrap();
    let head = format!(
        "{line}\r\nhost: here\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n",
        token.trim(),
        body.len()
    );
    // The thread ends with the process.
    thread::spawn(move || {
        let rival = Sent { head, body: body.into_bytes() };
        for stream in between.incoming() {
            let mut stream = stream.unwrap();
            let Some(sent) = Sent::read(&stream) else { continue };
            if selects(&sent) {
                let answer = rival.forward(&address);
                assert!(answer.starts_with(b"HTTP/1.1 20"), "{answer:?}");
            }
            stream.write_all(&sent.forward(&address)).unwrap();
        }
    });
    server.command(arguments).env("HEADGATE_SERVER", &url).output().unwrap()
}

fn rule(pattern: &str, limit: u64) -> Value {
    json!({
        "scope": "user", "identifier_pattern": pattern, "limit": limit, "window_seconds": 60,
    })
}

fn patterns(server: &Server) -> Vec<String> {
    let list = server.json(&["rules", "list"]);
    let rules = list["rules"].as_array().unwrap().iter();
    let mut patterns: Vec<String> =
        rules.map(|rule| rule["identifier_pattern"].as_str().unwrap().to_owned()).collect();
    patterns.sort();
    patterns
}

fn create(server: &Server, pattern: &str) -> String {
    let arguments = ["--scope", "user", "--pattern", pattern, "--limit", "5", "--window", "60s"];
    let made = server.json(&[&["rules", "create"], &arguments[..]].concat());
    made["id"].as_str().unwrap().to_owned()
}

#[test]
fn apply_fails_if_rules_changed_after_the_dry_run() {
    let server = Server::start(&[]);
    create(&server, "old");
    fs::write(server.folder().join("rules.json"), json!([rule("new", 1)]).to_string()).unwrap();
    let apply = ["rules", "apply", "-f", "rules.json", "--prune", "--yes"];
    let output = run_while(&server, &apply, ("POST", RULES, &rule("rival", 1)));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = stderr(&output);
    assert!(
        error.starts_with("headgate: the rules have changed in the meantime (revision "),
        "{error}"
    );
    assert!(error.contains("repeat the dry run and retry"), "{error}");
    assert!(error.contains("SYS_RATELIMIT_RULES_CHANGED"), "{error}");
    assert_eq!(patterns(&server), ["old", "rival"]);

    printed(&server.run(&apply));
    assert_eq!(patterns(&server), ["new"]);
}

#[test]
fn update_fails_if_the_rule_changed_after_it_was_read() {
    let server = Server::start(&[]);
    let id = create(&server, "u1");
    let path = format!("{RULES}/{id}");
    let mut rival = rule("u1", 9);
    rival["window_seconds"] = json!(3600);
    let update = ["rules", "update", id.as_str(), "--limit", "7"];
    let output = run_while(&server, &update, ("PUT", &path, &rival));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("has changed in the meantime; read it again"), "{output:?}");
    let shown = server.json(&["rules", "get", id.as_str()]);
    assert_eq!((&shown["limit"], &shown["window_seconds"]), (&json!(9), &json!(3600)));

    let updated = server.json(&update);
    assert_eq!((&updated["limit"], &updated["window_seconds"]), (&json!(7), &json!(3600)));
}

#[test]
fn update_fails_if_the_quota_changed_after_it_was_read() {
    let server = Server::start(&[]);
    let policy = |name: &str, limit: u64| {
        json!({
            "name": name, "subject_type": "tenant", "subject_id": "t1", "limit": limit,
            "period": "daily",
        })
    };
    let fields = ["--subject-type", "tenant", "--subject-id", "t1", "--period", "daily"];
    let create = ["quota", "create", "--name", "old", "--limit", "5"];
    let made = server.json(&[&create[..], &fields].concat());
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/v1/quotas/{id}");
    let update = ["quota", "update", id, "--name", "mine"];
    let output = run_while(&server, &update, ("PUT", &path, &policy("theirs", 9)));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr(&output).contains("; read it again"), "{output:?}");
    let shown = server.json(&["quota", "get", id]);
    assert_eq!((&shown["name"], &shown["limit"]), (&json!("theirs"), &json!(9)));

    let updated = server.json(&update);
    assert_eq!((&updated["name"], &updated["limit"]), (&json!("mine"), &json!(9)));
}
