//! Reloading the configuration of a running server.

mod access;
mod keys;
mod refusal;

use std::{fs, io::Write as _, net::SocketAddr, process::Output, thread, time::Duration};

use headgate_testkit::wait_until;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    harness::{Server, http, json as parsed, printed},
    rolling::Load,
};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

/// A server with a configuration file that the test changes.
struct Reloadable {
    server: Server,
    folder: TempDir,
}

impl Reloadable {
    fn start(yaml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headgate.yaml");
        fs::write(&file, yaml).unwrap();
        let server = Server::start_with_log(&[("CONFIG_PATH", file.to_str().unwrap())]);
        Self { server, folder }
    }

    /// Replaces the file as a whole, as a rename does.
    fn write(&self, yaml: &str) {
        let mut file = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        file.write_all(yaml.as_bytes()).unwrap();
        file.persist(self.folder.path().join("headgate.yaml")).unwrap();
    }

    fn try_reload(&self) -> Output {
        self.server.run(&["config", "reload", "--output", "json"])
    }

    /// Replaces the file and reloads; returns the changed keys that are in force.
    fn reload(&self, yaml: &str) -> Vec<String> {
        self.write(yaml);
        keys(&parsed(&self.try_reload())["applied"])
    }

    /// Replaces the file, sends SIGHUP, and waits for the result.
    fn hang_up(&self, yaml: &str) {
        self.write(yaml);
        let before = self.reloads();
        self.server.send("-HUP");
        assert!(wait_until(LIMIT, || self.reloads() > before), "{}", self.server.log());
    }

    /// Number of reloads so far, whatever their result.
    fn reloads(&self) -> u64 {
        ["applied", "unchanged", "refused"].iter().map(|result| self.reloads_with(result)).sum()
    }

    fn reloads_with(&self, result: &str) -> u64 {
        let series = format!("headgate_config_reloads_total{{result=\"{result}\"");
        self.metric(&series).parse().unwrap()
    }

    fn metric(&self, series: &str) -> String {
        let text = http(&self.server, "GET /metrics", &[], "");
        let line = text.lines().find(|line| line.starts_with(series));
        let line = line.unwrap_or_else(|| panic!("{series}: {text}"));
        line.rsplit(' ').next().unwrap().to_owned()
    }

    fn ready(&self) -> Value {
        body(&http(&self.server, "GET /readyz", &[], ""))
    }

    /// Checks a key in a sliding window.
    fn check(&self, key: &str, headers: &[&str]) -> Value {
        let key = if key.is_empty() { String::new() } else { format!("&key={key}") };
        let line = format!("POST /api/v1/rate-limit/check?algorithm=SLIDING_WINDOW{key}");
        body(&http(&self.server, &line, headers, ""))
    }

    /// Units that the sliding window admits for a new key: its limit.
    fn limit(&self) -> u64 {
        self.remaining("algorithm=SLIDING_WINDOW&key=new")
    }

    fn remaining(&self, query: &str) -> u64 {
        let line = format!("GET /api/v1/rate-limit/remaining?{query}");
        body(&http(&self.server, &line, &[], ""))["remaining"].as_u64().unwrap()
    }

    fn log_has(&self, text: &str) -> bool {
        self.server.log().contains(text)
    }
}

fn keys(changes: &Value) -> Vec<String> {
    let changes = changes.as_array().expect("a list").iter();
    changes.map(|change| change["key"].as_str().unwrap().to_owned()).collect()
}

fn body(answer: &str) -> Value {
    let body = answer.split("\r\n\r\n").nth(1).expect("a body");
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

fn window(requests: u32) -> String {
    format!("rate_limiter:\n  sliding_window: {{max_requests: {requests}, window_size: 1h}}\n")
}

#[test]
fn sighup_under_load_applies_a_limit_at_once_keeps_counters_and_loses_no_request() {
    let yaml = |requests| format!("ratelimit: {{default_limit: 100000000}}\n{}", window(requests));
    let server = Reloadable::start(&yaml(5));
    let address: SocketAddr = server.server.url().trim_start_matches("http://").parse().unwrap();
    let load = Load::start(address, 8);
    for remaining in [4, 3, 2] {
        assert_eq!(server.check("u1", &[])["remaining"], remaining);
    }
    for requests in [10, 4, 8] {
        load.answered(50);
        server.hang_up(&yaml(requests));
        load.answered(50);
    }
    assert_eq!(server.check("u1", &[])["remaining"], 4, "of 8, with 3 used before");
    assert_eq!(load.stop(), Vec::<String>::new());
    assert_eq!(server.reloads_with("applied"), 3);
    assert_eq!(server.server.signal("-TERM").code(), Some(0));
}

#[test]
fn reload_shows_what_is_applied_and_what_needs_a_restart() {
    let server = Reloadable::start("");
    let yaml = "server: {request_timeout_seconds: 7, max_connections: 77}\n\
                redis: {password: hunter2hunter2}\n";
    server.write(yaml);
    let before = server.metric("headgate_config_hash");

    let dry = server.server.run(&["config", "reload", "--dry-run"]);
    let table = |effect| {
        format!(
            "EFFECT           KEY                             OLD    NEW\n\
             {effect:15}  server.request_timeout_seconds  30     7\n\
             needs a restart  server.max_connections          10000  77\n\
             needs a restart  redis.password                  null   \"***\"\n"
        )
    };
    assert_eq!(printed(&dry), table("would apply"));
    assert_eq!(server.reloads(), 0, "nothing has changed");
    assert!(server.ready()["checks"]["config"].is_null());

    assert_eq!(printed(&server.server.run(&["config", "reload"])), table("applied"));
    let ready = server.ready();
    assert_eq!(ready["status"], "ready");
    assert_eq!(
        ready["checks"]["config"],
        "warning: restart required by server.max_connections, redis.password"
    );
    assert_eq!(server.metric("headgate_config_restart_required"), "2");
    assert_ne!(server.metric("headgate_config_hash"), before);
    assert_eq!(server.metric("headgate_config_last_reload_successful"), "1");
    assert!(!server.log_has("hunter2"), "{}", server.server.log());

    // The file is as before: nothing waits for a restart.
    assert_eq!(server.reload("{}"), ["server.request_timeout_seconds"]);
    assert_eq!(server.metric("headgate_config_restart_required"), "0");
    assert_eq!(server.metric("headgate_config_hash"), before);
    assert!(server.ready()["checks"]["config"].is_null());
    assert_eq!(printed(&server.server.run(&["config", "reload"])), "nothing has changed\n");

    let audit = server.server.json(&["audit", "--action", "config.reload"]);
    let entries = audit["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "what changes nothing is not recorded: {audit}");
    assert_eq!(entries[1]["actor"], "admin");
    assert_eq!(entries[1]["before"], json!({"server.request_timeout_seconds": 30}));
    assert_eq!(entries[1]["after"], json!({"server.request_timeout_seconds": 7}));
}

#[test]
fn concurrent_reloads_take_turns() {
    let server = Reloadable::start(&window(5));
    server.write(&window(9));
    let reloads: Vec<Value> = thread::scope(|scope| {
        let one = || scope.spawn(|| parsed(&server.try_reload()));
        let running: Vec<_> = (0..8).map(|_| one()).collect();
        server.server.send("-HUP");
        running.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(wait_until(LIMIT, || server.reloads() == 9), "{}", server.server.log());
    assert_eq!(server.reloads_with("applied"), 1, "the others found nothing to do");
    let applied = reloads.iter().filter(|reload| !keys(&reload["applied"]).is_empty()).count();
    assert!(applied <= 1);
    assert_eq!(server.limit(), 9);
}

#[test]
fn a_server_that_drains_still_reloads_and_then_stops() {
    // Time for the command, also on a busy machine.
    let yaml = |requests| format!("server: {{shutdown_delay_seconds: 45}}\n{}", window(requests));
    let mut server = Reloadable::start(&yaml(5));
    server.server.send("-TERM");
    assert!(wait_until(LIMIT, || server.log_has("stopping")));
    assert_eq!(server.reload(&yaml(9)), ["rate_limiter.sliding_window.max_requests"]);
    server.server.send("-HUP");
    assert!(wait_until(LIMIT, || server.log_has("SIGHUP: reloading")));
    assert_eq!(server.server.wait().code(), Some(0));
}

#[test]
fn a_watched_file_is_applied_when_it_changes() {
    let watched = |requests| format!("server: {{watch_config: true}}\n{}", window(requests));
    let server = Reloadable::start(&watched(5));
    server.write(&watched(9));
    assert!(wait_until(LIMIT, || server.limit() == 9), "{}", server.server.log());

    server.write("server: {watch_config: true, prot: 1}\n");
    assert!(wait_until(LIMIT, || server.log_has("server.prot")), "{}", server.server.log());
    assert_eq!(server.limit(), 9);
    let audit = server.server.json(&["audit", "--action", "config.reload"]);
    assert_eq!(audit["entries"][0]["actor"], "watch_config");

    // A valid file after that; then the watch ends.
    server.write(&window(7));
    assert!(wait_until(LIMIT, || server.limit() == 7));
    assert_eq!(server.reloads_with("refused"), 1, "the same error is reported once");
}
