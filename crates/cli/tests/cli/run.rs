//! `headgate run`

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};

use headgate_testkit::wait_until;

use crate::harness::{Server, failure, printed, stderr, stdout};

/// Generous timeout for busy machines.
const LIMIT: Duration = Duration::from_secs(120);

/// A server on which one export runs at a time.
fn server() -> Server {
    let server = Server::start(&[]);
    let rule = ["rules", "create", "--scope", "service", "--pattern", "export", "--limit", "1"];
    printed(&server.run(&[&rule[..], &["--window", "60s", "--algorithm", "concurrency"]].concat()));
    server
}

fn run<'a>(options: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["run", "--limit", "service:export"], options, &["--"], command].concat()
}

fn start(server: &Server, options: &[&str], script: &str) -> Child {
    let mut command = server.command(&run(options, &["/bin/sh", "-c", script]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command starts")
}

/// Waits until the script says that it runs.
fn until_it_runs(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "running\n");
}

fn places_left(server: &Server) -> u64 {
    // It exits with 2 if none is left.
    let check = server.run(&["check", "service", "export", "--dry-run", "--output", "json"]);
    let check: serde_json::Value = serde_json::from_str(stdout(&check)).unwrap();
    check["remaining"].as_u64().unwrap()
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn a_command_runs_with_a_place_and_its_exit_code_is_passed_on() {
    let server = server();
    for (script, code) in [("exit 7", 7), ("exit 0", 0), ("kill -9 $$", 137)] {
        let output = server.run(&run(&[], &["/bin/sh", "-c", script]));
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        assert_eq!(places_left(&server), 1, "{script}");
    }
    let missing = server.run(&run(&[], &["/no/such/program"]));
    assert_eq!(missing.status.code(), Some(127), "{missing:?}");
    assert_eq!(places_left(&server), 1);
    let away = Server::start(&[]);
    let url = away.url().to_owned();
    drop(away);
    let output = server.run(&run(&["--server", &url], &["/bin/true"]));
    assert_eq!(output.status.code(), Some(125), "{output:?}");
}

#[test]
fn a_second_command_is_denied_or_waits_for_its_turn() {
    let server = server();
    let mut first = start(&server, &[], "echo running; read line");
    until_it_runs(&mut first);
    let denied = server.run(&run(&[], &["/bin/true"]));
    assert_eq!(denied.status.code(), Some(75), "{denied:?}");
    assert!(stderr(&denied).contains("rate limit exceeded"), "{denied:?}");
    let late = server.run(&run(&["--wait=1"], &["/bin/true"]));
    assert_eq!(late.status.code(), Some(75), "{late:?}");

    let mut second = start(&server, &["--wait"], "echo running; read line");
    drop(first.stdin.take());
    assert!(first.wait().unwrap().code().is_some());
    until_it_runs(&mut second);
    assert_eq!(places_left(&server), 0);
    drop(second.stdin.take());
    second.wait().unwrap();
    assert_eq!(places_left(&server), 1);
}

/// When the only lease ends, unless it is renewed; `None` if it has ended.
fn lease_end(server: &Server) -> Option<String> {
    let listed = server.json(&["holders", "service", "export"]);
    Some(listed["rules"][0]["holders"][0]["expires_at"].as_str()?.to_owned())
}

#[test]
fn a_place_is_kept_by_renewals_and_free_after_a_kill_within_its_lease() {
    let server = server();
    // So long that a busy machine renews it in time.
    let mut holder = start(&server, &["--lease", "15"], "echo running; read line");
    until_it_runs(&mut holder);
    let mut end = lease_end(&server);
    for _ in 0..3 {
        // Times of the same form: the later one is the greater text.
        let is_renewed = || lease_end(&server) > end;
        assert!(wait_until(LIMIT, is_renewed), "it was not renewed");
        end = lease_end(&server);
        assert_eq!(places_left(&server), 0);
    }
    signal(&holder, "-KILL");
    let next = server.run(&run(&["--wait=120"], &["/bin/true"]));
    assert_eq!(next.status.code(), Some(0), "{next:?}");
    drop(holder.stdin.take());
    holder.wait().unwrap();
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let server = server();
    let script = "trap 'exit 9' TERM; echo running; while :; do sleep 0.1; done";
    let mut holder = start(&server, &[], script);
    until_it_runs(&mut holder);
    signal(&holder, "-TERM");
    assert_eq!(holder.wait().unwrap().code(), Some(9));
    assert_eq!(places_left(&server), 1);
}

#[test]
fn a_command_that_lost_its_place_is_terminated() {
    let server = server();
    let script = "trap 'exit 3' TERM; echo running; while :; do sleep 0.1; done";
    // A request for a place is given up after the length of its lease.
    let mut holder = start(&server, &["--lease", "12"], script);
    until_it_runs(&mut holder);
    printed(&server.run(&["reset", "service", "export"]));
    let output = holder.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(stderr(&output).contains("the place is lost"), "{output:?}");
}

/// A server that hangs accepts a renewal and does not answer it.
#[test]
fn a_command_is_terminated_before_its_lease_ends_though_a_renewal_is_in_flight() {
    let server = server();
    let script = "trap 'exit 3' TERM; echo running; while :; do sleep 0.1; done";
    let mut holder = start(&server, &["--lease", "20"], script);
    until_it_runs(&mut holder);
    server.send("-STOP");
    let output = holder.wait_with_output().unwrap();
    server.send("-CONT");
    assert_eq!(output.status.code(), Some(125), "{output:?}");
    assert!(stderr(&output).contains("the place is lost"), "{output:?}");
    // Two renewals with their usual timeout are longer than the lease.
    let timeouts = stderr(&output).matches("did not respond within 10 s").count();
    assert!(timeouts < 2, "{output:?}");
}

#[test]
fn holders_are_listed_and_an_operator_ends_a_lease() {
    let server = server();
    let holders =
        |options: &[&str]| server.run(&[&["holders", "service", "export"], options].concat());
    assert!(printed(&holders(&[])).ends_with("service:export: 0 of 1 places taken, 0 holders\n"));
    let mut child = start(&server, &["--keep-running"], "echo running; read line");
    until_it_runs(&mut child);

    let listed = server.json(&["holders", "service", "export"]);
    let holder = listed["rules"][0]["holders"][0]["holder"].as_str().unwrap().to_owned();
    let output = holders(&[]);
    let table = printed(&output);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("HOLDER      PLACES  ENDS AT"), "{table}");
    assert!(lines[1].starts_with(&format!("{holder}       1  20")), "{table}");
    assert_eq!(lines[2], "service:export: 1 of 1 places taken, 1 holder");

    let ended = holders(&["--end", &holder, "--reason", "stuck"]);
    assert_eq!(printed(&ended), format!("lease of {holder} ended\n"));
    assert_eq!(places_left(&server), 1);
    let again = holders(&["--end", &holder]);
    assert!(failure(&again).contains("SYS_RATELIMIT_LEASE_NOT_FOUND"), "{again:?}");
    drop(child.stdin.take());
    child.wait().unwrap();

    let none = server.run(&["holders", "user", "u1"]);
    assert_eq!(printed(&none), "no concurrency rule applies\n");
}
