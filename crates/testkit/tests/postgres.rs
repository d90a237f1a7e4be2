//! PostgreSQL servers and databases start, respond, crash on request and clean up.

use std::{
    env,
    fs::{self, Permissions},
    io::{BufRead, BufReader},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use headgate_testkit::{Postgres, require, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// Set for tests that run in a process of their own.
const CHILD: &str = "HEADGATE_TESTKIT_CHILD";
const URL_VARIABLE: &str = "HEADGATE_TEST_POSTGRES_URL";

/// Traces that a stopped server must not leave.
struct Traces {
    processes: Vec<PathBuf>,
    folder: PathBuf,
}

impl Traces {
    /// The main process, and those that it started.
    fn of(postgres: &Postgres) -> Self {
        let mut pids = vec![postgres.pid().to_string()];
        let children =
            postgres.psql("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()");
        pids.extend(children.lines().map(str::to_owned));
        assert!(pids.len() > 2, "{pids:?}");
        let processes = pids.iter().map(|pid| PathBuf::from(format!("/proc/{pid}"))).collect();
        Self { processes, folder: postgres.folder().to_owned() }
    }

    fn have_processes(&self) -> bool {
        self.processes.iter().any(|process| process.exists())
    }

    fn are_gone(&self) -> bool {
        !self.have_processes() && !self.folder.exists()
    }
}

/// Runs a test of this file in a process of its own.
fn child_test(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this executable"));
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    command.env_remove("CI").env_remove("HEADGATE_SKIP_LOG").env_remove(URL_VARIABLE);
    command
}

/// The value after `key=` in the output of a child.
fn said(output: impl BufRead, key: &str) -> Option<String> {
    let mut lines = output.lines().map_while(Result::ok);
    lines.find_map(|line| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned()))
}

#[test]
fn a_server_responds_and_cleans_up() {
    let postgres = require!(Postgres::start());
    let (user, port, database) = (postgres.user(), postgres.port(), postgres.database());
    assert_eq!(postgres.url(), format!("postgresql://{user}@127.0.0.1:{port}/{database}"));
    let session = postgres.psql("SELECT current_user, inet_server_port(), current_database()");
    assert_eq!(session, format!("{user}|{port}|{database}"));
    assert_eq!(postgres.psql("CREATE TABLE t (n int); INSERT INTO t VALUES (1), (2)"), "");
    assert_eq!(postgres.psql("TABLE t"), "1\n2");

    let traces = Traces::of(&postgres);
    drop(postgres);
    assert!(traces.are_gone());
}

#[test]
fn a_panic_cleans_up() {
    let postgres = require!(Postgres::start());
    let traces = Traces::of(&postgres);
    let outcome = thread::spawn(move || {
        postgres.psql("SELECT no_such_column");
    });
    assert!(outcome.join().is_err());
    assert!(traces.are_gone());
}

#[test]
fn servers_start_concurrently() {
    let started: Vec<_> = (0..3).map(|_| thread::spawn(Postgres::start)).collect();
    let servers = started.into_iter().map(|server| server.join().unwrap());
    let servers = require!(servers.collect::<Result<Vec<_>, _>>());
    for (i, postgres) in servers.iter().enumerate() {
        postgres.psql(&format!("CREATE TABLE who AS SELECT {i}"));
    }
    for (i, postgres) in servers.iter().enumerate() {
        assert_eq!(postgres.psql("TABLE who"), i.to_string());
    }
}

#[test]
fn a_restarted_server_has_all_committed_data() {
    let postgres = require!(Postgres::start());
    let (url, pid) = (postgres.url(), postgres.pid());
    postgres.psql("CREATE TABLE t AS SELECT 7 AS n");
    let traces = Traces::of(&postgres);

    postgres.stop();
    assert!(!traces.have_processes() && traces.folder.exists());
    assert!(TcpListener::bind(("127.0.0.1", postgres.port())).is_ok());

    postgres.start_again();
    assert_eq!(postgres.url(), url);
    assert_ne!(postgres.pid(), pid);
    assert_eq!(postgres.psql("TABLE t"), "7");
}

#[test]
fn a_stop_ends_pending_queries() {
    let postgres = require!(Postgres::start());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| postgres.psql("SELECT pg_sleep(600)"));
        let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        assert!(wait_until(SOON, || postgres.psql(sleeping) == "1"));
        postgres.stop();
        assert!(waiting.join().is_err());
    });
}

#[test]
fn a_start_waits_for_a_port_that_is_briefly_taken() {
    let postgres = require!(Postgres::start());
    postgres.stop();
    let held = TcpListener::bind(("127.0.0.1", postgres.port())).unwrap();
    let holder = thread::spawn(move || {
        assert!(!wait_until(Duration::from_millis(300), || false));
        drop(held);
    });
    postgres.start_again();
    holder.join().unwrap();
    assert_eq!(postgres.psql("SELECT 1"), "1");
}

#[test]
fn the_password_is_required() {
    let postgres = require!(Postgres::builder().password("open-sesame").start());
    let url = postgres.url();
    assert!(url.starts_with("postgresql://postgres:open-sesame@127.0.0.1:"), "{url}");
    let stored =
        "SELECT rolpassword LIKE 'SCRAM-SHA-256$%' FROM pg_authid WHERE rolname = 'postgres'";
    assert_eq!(postgres.psql(stored), "t");

    let wrong = url.replace("open-sesame", "wrong");
    let attempt = Command::new("psql").args(["-w", "-d", &wrong, "-c", "SELECT 1"]).output();
    let refusal = String::from_utf8(attempt.unwrap().stderr).unwrap();
    assert!(refusal.contains("password authentication failed"), "{refusal}");
}

#[test]
fn databases_on_a_shared_server_are_separate() {
    let one = require!(Postgres::shared());
    let two = require!(Postgres::shared());
    assert_ne!(one.url(), two.url());
    assert!(one.url().ends_with(&format!("/{}", one.name())), "{}", one.url());
    assert_eq!(one.psql("SELECT current_database()"), one.name());
    let started = "SELECT pg_postmaster_start_time()";
    assert_eq!(one.psql(started), two.psql(started));

    one.psql("CREATE TABLE t (n int)");
    assert_eq!(two.psql("SELECT to_regclass('t') IS NULL"), "t");
}

#[test]
fn dropping_a_database_ends_its_sessions() {
    let (one, two) = (require!(Postgres::shared()), require!(Postgres::shared()));
    let url = one.url().to_owned();
    let mut session = Command::new("psql");
    session.args(["-d", &url, "-c", "SELECT pg_sleep(600)"]).stderr(Stdio::null());
    let mut session = session.spawn().unwrap();
    let sleeping = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    let sleeping = format!("{sleeping} AND datname = '{}'", one.name());
    assert!(wait_until(SOON, || two.psql(&sleeping) == "1"));

    let find = format!("SELECT count(*) FROM pg_database WHERE datname = '{}'", one.name());
    assert_eq!(two.psql(&find), "1");
    drop(one);
    assert_eq!(two.psql(&find), "0");
    assert!(!session.wait().unwrap().success());
}

#[test]
fn an_existing_server_is_used_and_cleaned_up() {
    let postgres = require!(Postgres::start());
    let mut child = child_test("child_uses_a_database");
    let output = child.env(URL_VARIABLE, postgres.url()).output().unwrap();
    assert!(output.status.success());
    let used = said(&*output.stdout, "server").expect("the child says which server it used");
    assert_eq!(used, postgres.psql("SELECT pg_postmaster_start_time()"));

    let left = "SELECT count(*) FROM pg_database WHERE datname LIKE 'headgate_test_%'";
    assert_eq!(postgres.psql(left), "0");
}

/// The other half of `an_existing_server_is_used_and_cleaned_up`.
#[test]
fn child_uses_a_database() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let database = Postgres::shared().unwrap();
    assert!(database.name().starts_with("headgate_test_"));
    println!("\nserver={}", database.psql("SELECT pg_postmaster_start_time()"));
}

#[test]
#[cfg(target_os = "linux")]
fn servers_die_with_a_test_process_that_is_killed() {
    drop(require!(Postgres::start()));
    let folder = tempfile::tempdir().unwrap();
    // As root, the server runs as another user.
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let mut command = child_test("child_waits_for_its_end");
    command.env("TMPDIR", folder.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let servers = said(output, "servers").expect("the child says which servers it started");
    let servers: Vec<_> = servers.split(' ').map(PathBuf::from).collect();
    assert!(servers.len() == 2 && servers.iter().all(|server| server.exists()), "{servers:?}");

    child.kill().unwrap();
    child.wait().unwrap();
    let gone = wait_until(SOON, || servers.iter().all(|server| !server.exists()));
    assert!(gone, "one of {servers:?} lingers");
}

/// The other half of `servers_die_with_a_test_process_that_is_killed`.
#[test]
fn child_waits_for_its_end() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    // Started on a thread that ends at once: only the end of the process may end the servers.
    let (own, shared) =
        thread::spawn(|| (Postgres::start().unwrap(), Postgres::shared().unwrap())).join().unwrap();
    let checkpointer = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
    println!("\nservers=/proc/{} /proc/{}", own.pid(), shared.psql(checkpointer));
    wait_until(Duration::from_mins(1), || false);
}
