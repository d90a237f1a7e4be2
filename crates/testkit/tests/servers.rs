//! Redis servers start, respond, fail on request and clean up.

use std::{
    env,
    io::{BufRead, BufReader},
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use headgate_testkit::{Redis, RedisCluster, Sentinel, require, wait_until};

const SOON: Duration = Duration::from_secs(60);

/// 2026-02-23T10:00:00Z.
const START: u64 = 1_771_840_800_000_000;

/// Traces that a dropped server must not leave.
struct Traces {
    process: PathBuf,
    folder: PathBuf,
}

impl Traces {
    fn of(redis: &Redis) -> Self {
        let traces = Self {
            process: format!("/proc/{}", redis.pid()).into(),
            folder: redis.folder().to_owned(),
        };
        assert!(traces.process.exists() && traces.folder.exists());
        traces
    }

    fn are_gone(&self) -> bool {
        !self.process.exists() && !self.folder.exists()
    }
}

/// Set for tests that run in a process of their own.
const CHILD: &str = "HEADGATE_TESTKIT_CHILD";

/// Runs a test of this file in a process of its own.
fn child_test(name: &str) -> Command {
    let mut command = Command::new(env::current_exe().expect("this executable"));
    command.args(["--exact", name, "--nocapture"]).env(CHILD, "1");
    command.env_remove("CI").env_remove("HEADGATE_SKIP_LOG");
    command
}

fn time(redis: &Redis) -> u64 {
    let answer = redis.cli(&["TIME"]);
    let part = |i| answer.lines().nth(i).and_then(|part| part.parse().ok());
    part(0).zip(part(1)).map_or(0, |(seconds, micros): (u64, u64)| seconds * 1_000_000 + micros)
}

#[test]
fn a_server_responds_and_cleans_up() {
    let redis = require!(Redis::start());
    assert_eq!(redis.url(), format!("redis://127.0.0.1:{}", redis.port()));
    assert_eq!(redis.cli(&["PING"]), "PONG");

    let traces = Traces::of(&redis);
    drop(redis);
    assert!(traces.are_gone());
}

#[test]
fn a_panic_cleans_up() {
    let redis = require!(Redis::start());
    let traces = Traces::of(&redis);
    let outcome = thread::spawn(move || {
        redis.pause();
        panic!("on purpose, while holding port {}", redis.port());
    });
    assert!(outcome.join().is_err());
    assert!(traces.are_gone());
}

#[test]
fn servers_start_concurrently() {
    let started: Vec<_> = (0..8).map(|_| thread::spawn(Redis::start)).collect();
    let servers = started.into_iter().map(|server| server.join().unwrap());
    let servers = require!(servers.collect::<Result<Vec<_>, _>>());
    for (i, redis) in servers.iter().enumerate() {
        redis.cli(&["SET", "who", &i.to_string()]);
    }
    for (i, redis) in servers.iter().enumerate() {
        assert_eq!(redis.cli(&["GET", "who"]), i.to_string());
    }
}

#[test]
fn a_restarted_server_is_empty_on_the_same_port() {
    let redis = require!(Redis::builder().args(["--appendonly", "yes"]).start());
    let url = redis.url();
    redis.cli(&["SET", "key", "value"]);

    redis.kill();
    assert!(!redis.is_awake());
    assert!(TcpListener::bind(("127.0.0.1", redis.port())).is_ok());

    redis.restart();
    assert_eq!(redis.url(), url);
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
}

#[test]
fn a_restart_waits_for_a_port_that_is_briefly_taken() {
    let redis = require!(Redis::start());
    redis.kill();
    let held = TcpListener::bind(("127.0.0.1", redis.port())).unwrap();
    let holder = thread::spawn(move || {
        assert!(!wait_until(Duration::from_millis(300), || false));
        drop(held);
    });
    redis.restart();
    holder.join().unwrap();
    assert_eq!(redis.cli(&["PING"]), "PONG");
}

#[test]
fn a_paused_server_is_silent_until_it_is_resumed() {
    let redis = require!(Redis::start());
    redis.pause();
    assert!(!redis.is_awake());
    thread::scope(|scope| {
        let answer = scope.spawn(|| redis.cli(&["PING"]));
        assert!(!wait_until(Duration::from_millis(200), || answer.is_finished()));
        redis.resume();
        assert_eq!(answer.join().unwrap(), "PONG");
    });
}

#[test]
fn the_password_is_required() {
    let redis = require!(Redis::builder().password("open-sesame").start());
    assert!(redis.url().starts_with("redis://:open-sesame@127.0.0.1:"));
    assert_eq!(redis.cli(&["PING"]), "PONG");
    assert!(redis.cli(&["AUTH", "wrong"]).starts_with("WRONGPASS"));
}

#[test]
fn a_shared_server_runs_while_it_is_held() {
    let one = require!(Redis::shared());
    let two = require!(Redis::shared());
    assert_eq!(one.url(), two.url());
}

#[test]
fn a_fake_clock_is_exact_to_the_microsecond() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    assert_eq!(time(&redis), START);
    // 511 is the first fraction that would be rounded down to the previous microsecond.
    for micros in [0, 1, 7, 511, 1_001, 123_457, 500_003, 999_999, 1_000_000] {
        redis.clock().set(START + micros);
        assert_eq!(time(&redis), START + micros);
    }
    redis.clock().set(START - 3_600_000_000);
    redis.clock().advance(Duration::from_micros(1));
    let in_script = redis.cli(&["EVAL", "return table.concat(redis.call('TIME'), '.')", "0"]);
    assert_eq!(in_script, "1771837200.1");
    assert_eq!(redis.clock().now(), START - 3_599_999_999);
}

#[test]
fn expiry_follows_the_fake_clock() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    redis.cli(&["SET", "key", "value", "PX", "5000"]);
    redis.clock().advance(Duration::from_millis(4_999));
    assert_eq!(redis.cli(&["PTTL", "key"]), "1");
    redis.clock().advance(Duration::from_millis(1));
    assert_eq!(redis.cli(&["EXISTS", "key"]), "1");
    redis.clock().advance(Duration::from_millis(1));
    assert_eq!(redis.cli(&["EXISTS", "key"]), "0");

    redis.restart();
    assert_eq!(time(&redis), START + 5_001_000);
}

#[test]
fn a_fake_clock_cleans_up() {
    let redis = require!(Redis::builder().fake_clock(START).start());
    let traces = Traces::of(&redis);
    let shared_memory = PathBuf::from(format!("/dev/shm/faketime_shm_{}", redis.pid()));
    let semaphore = PathBuf::from(format!("/dev/shm/sem.faketime_sem_{}", redis.pid()));
    drop(redis);
    assert!(traces.are_gone() && !shared_memory.exists() && !semaphore.exists());
}

#[test]
fn a_cluster_without_replicas_is_complete() {
    let cluster = require!(RedisCluster::start(3, 0));
    assert_eq!(cluster.urls().len(), 3);
    // "foo" belongs to slot 12182, of the third master.
    assert_eq!(cluster.node(2).cli(&["SET", "foo", "bar"]), "OK");
    let referral = cluster.node(0).cli(&["GET", "foo"]);
    assert!(referral.starts_with("MOVED 12182 "), "{referral}");
}

#[test]
fn a_cluster_fails_over_and_cleans_up() {
    let cluster = require!(RedisCluster::start(3, 1));
    let traces: Vec<_> = (0..6).map(|i| Traces::of(cluster.node(i))).collect();
    cluster.kill_master(2);
    cluster.wait_for_failover();
    let (heir, referral) = (cluster.node(5), cluster.node(0).cli(&["GET", "foo"]));
    assert!(referral.ends_with(&format!(":{}", heir.port())), "{referral}");
    assert_eq!(heir.cli(&["SET", "foo", "bar"]), "OK");

    drop(cluster);
    assert!(traces.iter().all(Traces::are_gone));
}

#[test]
fn sentinels_promote_the_replica_and_clean_up() {
    let sentinel = require!(Sentinel::start());
    let traces: Vec<_> = (0..3).map(|i| Traces::of(sentinel.sentinel(i))).collect();
    let first = sentinel.master_port();
    assert_eq!(sentinel.sentinel_urls().len(), 3);
    assert_eq!(sentinel.master().cli(&["SET", "key", "value"]), "OK");

    sentinel.kill_master();
    sentinel.wait_for_failover();
    assert_ne!(sentinel.master_port(), first);
    assert_eq!(sentinel.master().cli(&["SET", "key", "value"]), "OK");

    drop(sentinel);
    assert!(traces.iter().all(Traces::are_gone));
}

#[test]
#[cfg(target_os = "linux")]
fn servers_die_with_a_test_process_that_is_killed() {
    drop(require!(Redis::start()));
    let folder = tempfile::tempdir().unwrap();
    let mut command = child_test("child_waits_for_its_end");
    command.env("TMPDIR", folder.path()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let server = output
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("server=").map(PathBuf::from));
    let server = server.expect("the child says which server it started");
    assert!(server.exists());

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(wait_until(SOON, || !server.exists()), "{server:?} lingers");
}

/// The other half of `servers_die_with_a_test_process_that_is_killed`.
#[test]
fn child_waits_for_its_end() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    // Started on a thread that ends at once: only the end of the process may end the server.
    let redis = thread::spawn(Redis::start).join().unwrap().unwrap();
    assert!(!wait_until(Duration::from_millis(100), || !redis.is_awake()));
    println!("\nserver=/proc/{}", redis.pid());
    wait_until(Duration::from_mins(1), || false);
}

#[test]
fn a_missing_server_is_skipped_and_logged_but_fails_in_ci() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("skipped");
    let mut child = child_test("child_needs_redis");
    child.envs([("PATH", folder.path()), ("HEADGATE_SKIP_LOG", &log)]);

    assert!(child.output().unwrap().status.success());
    let line = "redis-server: not on PATH (servers::child_needs_redis)\n";
    assert_eq!(std::fs::read_to_string(&log).unwrap(), line);

    assert!(!child.env("CI", "true").output().unwrap().status.success());
}

/// The other half of `a_missing_server_is_skipped_and_logged_but_fails_in_ci`.
#[test]
fn child_needs_redis() {
    if env::var_os(CHILD).is_none() {
        return;
    }
    let redis = require!(Redis::start());
    assert_eq!(redis.cli(&["PING"]), "PONG");
}
