//! Backups of a running server, and restoring them.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::Command,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};

use headgate_testkit::{Postgres, Redis, require, wait_until};
use serde_json::Value;

use crate::harness::{Server, failure, http, json, printed, run, stdout};

const NO_TOKENS: (&str, &str) = ("HEADGATE__AUTH__MODE", "off");

/// Creates a monthly quota; returns its id.
fn quota(server: &Server, subject: &str, limit: u64) -> String {
    let create = ["quota", "create", "--name", "plan", "--subject-type", "tenant", "--subject-id"];
    let limit = limit.to_string();
    let create = [&create[..], &[subject, "--limit", &limit, "--period", "monthly"]].concat();
    server.json(&create)["id"].as_str().unwrap().to_owned()
}

/// Increments by one under this request id. Returns true if it was acknowledged.
fn increment(server: &Server, quota: &str, request_id: &str) -> bool {
    let line = format!("POST /api/v1/quotas/{quota}/usage/increment");
    let body = format!(r#"{{"amount":1,"request_id":"{request_id}"}}"#);
    http(server, &line, &[], &body).starts_with("HTTP/1.1 200")
}

fn body(answer: &str) -> Value {
    serde_json::from_str(answer.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
}

fn used(server: &Server, quota: &str) -> u64 {
    let answer = http(server, &format!("GET /api/v1/quotas/{quota}/usage"), &[], "");
    body(&answer)["used"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

pub(crate) fn until_ready(server: &Server) {
    let is_ready = || http(server, "GET /readyz", &[], "").contains(r#""status":"ready""#);
    assert!(wait_until(Duration::from_secs(120), is_ready), "{}", server.greeting);
}

#[test]
fn a_backup_of_a_busy_server_has_every_acknowledged_increment() {
    let server = Server::start(&[NO_TOKENS]);
    until_ready(&server);
    let quota = quota(&server, "acme", 1_000_000);
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let file = server.folder().join("headgate.backup");
    let before = thread::scope(|scope| {
        for writer in 0..4 {
            let (server, quota, stop, acknowledged) = (&server, &quota, &stop, &acknowledged);
            scope.spawn(move || {
                let mut number = 0;
                while !stop.load(Relaxed) {
                    assert!(increment(server, quota, &format!("{writer}-{number}")));
                    acknowledged.fetch_add(1, Relaxed);
                    number += 1;
                }
            });
        }
        let is_busy = wait_until(Duration::from_secs(300), || acknowledged.load(Relaxed) >= 100);
        let before = acknowledged.load(Relaxed);
        let backup = server.run(&["backup", "headgate.backup"]);
        stop.store(true, Relaxed);
        assert!(is_busy);
        assert!(printed(&backup).contains("backed up to headgate.backup"), "{backup:?}");
        before
    });
    assert_eq!(used(&server, &quota), acknowledged.load(Relaxed));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    let url = format!("sqlite://{}", file.display());
    let copy = Server::start(&[NO_TOKENS, ("HEADGATE__DATABASE__URL", &url)]);
    until_ready(&copy);
    let kept = used(&copy, &quota);
    assert!((before..=acknowledged.load(Relaxed)).contains(&kept), "{before} {kept}");
    // It goes on: request ids are known, and new ones count.
    assert!(increment(&copy, &quota, "0-0"));
    assert_eq!(used(&copy, &quota), kept);
    assert!(increment(&copy, &quota, "another"));
    assert_eq!(used(&copy, &quota), kept + 1);
}

#[test]
fn a_restored_server_is_as_it_was_at_the_backup() {
    let mut server = Server::start(&[]);
    until_ready(&server);
    printed(&server.run(&[
        "rules",
        "create",
        "--scope",
        "user",
        "--pattern",
        "u1",
        "--limit",
        "5",
        "--window",
        "60",
    ]));
    let backup = json(&server.run(&["backup", "kept.db", "--output", "json"]));
    assert_eq!(backup["file"], "kept.db");
    assert!(backup["schema_version"].as_i64().unwrap() >= 7, "{backup}");
    printed(&server.run(&[
        "rules",
        "create",
        "--scope",
        "user",
        "--pattern",
        "u2",
        "--limit",
        "5",
        "--window",
        "60",
    ]));

    let again = server.run(&["backup", "kept.db"]);
    assert_eq!(failure(&again), "headgate: kept.db already exists; choose another name\n");
    let in_use = server.run(&["restore", "kept.db"]);
    assert_eq!(
        failure(&in_use),
        "headgate: data/headgate.db is in use; stop every server on it first\n"
    );

    server.stop("-TERM");
    let restored = server.run(&["restore", "kept.db"]);
    let lines = printed(&restored);
    assert!(lines.starts_with("restored kept.db: "), "{lines}");
    assert!(lines.contains("the previous database is now data/headgate.db.replaced-1"), "{lines}");
    let url = format!("sqlite://{}", server.folder().join("data/headgate.db").display());
    let restarted = Server::start(&[NO_TOKENS, ("HEADGATE__DATABASE__URL", &url)]);
    until_ready(&restarted);
    let rules = restarted.json(&["rules", "list"]);
    let patterns: Vec<_> =
        rules["rules"].as_array().unwrap().iter().map(|rule| &rule["identifier_pattern"]).collect();
    assert_eq!(patterns, ["u1"]);
}

#[test]
fn the_file_of_a_stopped_server_is_complete_by_itself() {
    let mut server = Server::start(&[NO_TOKENS]);
    until_ready(&server);
    let plan = quota(&server, "acme", 10);
    assert!(increment(&server, &plan, "a"));
    let data = server.folder().join("data");
    assert!(fs::metadata(data.join("headgate.db-wal")).unwrap().len() > 0);
    assert!(server.stop("-TERM").success());
    let left: Vec<_> = fs::read_dir(&data).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["headgate.db"]);

    let copy = server.folder().join("copy.db");
    fs::copy(data.join("headgate.db"), &copy).unwrap();
    let url = format!("sqlite://{}", copy.display());
    let copy = Server::start(&[NO_TOKENS, ("HEADGATE__DATABASE__URL", &url)]);
    until_ready(&copy);
    assert_eq!(used(&copy, &plan), 1);
}

#[test]
fn a_backup_says_what_to_do_about_postgres_and_missing_files() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let copy = copy.to_str().unwrap();
    let data = folder.path().join("data");
    let data = ("HEADGATE__SERVER__DATA_DIR", data.to_str().unwrap());
    let postgres = ("HEADGATE__DATABASE__URL", "postgresql://user:hidden@127.0.0.1:1/x");
    let refused = run(&["backup", copy], &[postgres]);
    assert!(failure(&refused).contains("pg_dump"), "{refused:?}");
    assert!(!failure(&refused).contains("hidden"), "{refused:?}");
    let missing = run(&["backup", copy], &[data]);
    assert!(failure(&missing).contains("there is no database at"), "{missing:?}");
    let missing = run(&["restore", copy], &[data]);
    assert!(failure(&missing).contains("there is no database at"), "{missing:?}");
    assert!(fs::read_dir(&folder).unwrap().next().is_none());
}

/// The commands of docs/guides/backup.md.
#[test]
fn a_dump_of_postgres_restores_usage_ledger_and_outbox() {
    let (postgres, redis) = (require!(Postgres::start()), require!(Redis::start()));
    let (dump, restore) = (postgres.program("pg_dump"), postgres.program("pg_restore"));
    let redis_url = redis.url();
    let serve = |url: &str| {
        let server = Server::start(&[
            NO_TOKENS,
            ("HEADGATE__DATABASE__URL", url),
            ("HEADGATE__REDIS__URL", &redis_url),
            ("HEADGATE__REDIS__TIMEOUT_MS", "30000"),
        ]);
        until_ready(&server);
        server
    };
    let mut server = serve(&postgres.url());
    let plan = quota(&server, "acme", 3);
    for request_id in ["a", "b", "c"] {
        assert!(increment(&server, &plan, request_id));
    }
    assert!(!increment(&server, &plan, "d"));
    let other = quota(&server, "other", 10);
    assert!(increment(&server, &other, "a"));
    let events = body(&http(&server, "GET /api/v1/events", &[], ""));
    assert!(!events["events"].as_array().unwrap().is_empty());

    let file = server.folder().join("headgate.dump");
    let schemas =
        ["headgate", "ratelimit", "quota", "cn_admin"].map(|name| format!("--schema={name}"));
    let mut dump = Command::new(dump);
    dump.args(["--format=custom", "--file"]).arg(&file).args(schemas).arg(postgres.url());
    assert!(dump.status().unwrap().success());
    // What follows the dump is lost.
    assert!(increment(&server, &other, "b"));
    server.stop("-TERM");

    postgres.psql("CREATE DATABASE restored");
    let url = postgres.url();
    let url = format!("{}/restored", url.rsplit_once('/').unwrap().0);
    let mut restore = Command::new(restore);
    restore.args(["--no-owner", "--exit-on-error", "--dbname", &url]).arg(&file);
    assert!(restore.status().unwrap().success());

    let restored = serve(&url);
    assert_eq!((used(&restored, &plan), used(&restored, &other)), (3, 1));
    // Redis still has the counter of the lost increment: the ledger decides.
    assert!(increment(&restored, &plan, "c"), "a charged request id");
    assert!(!increment(&restored, &plan, "e"));
    for request_id in ["b", "c", "d"] {
        assert!(increment(&restored, &other, request_id), "{request_id}");
    }
    assert_eq!(used(&restored, &other), 4);
    assert_eq!(body(&http(&restored, "GET /api/v1/events", &[], "")), events);
    let audit = restored.run(&["audit"]);
    assert!(stdout(&audit).contains("quota.create"), "{audit:?}");
}
