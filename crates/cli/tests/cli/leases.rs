//! Leases of several processes on one Redis.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

use headgate::{Clock as _, SystemClock};
use headgate_testkit::{Redis, require, wait_until};

use crate::{
    backup::until_ready,
    harness::{Server, printed},
    rolling::Load,
};

const ALGORITHMS: [&str; 5] =
    ["TOKEN_BUCKET", "LEAKY_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_WINDOW_COUNTER"];

/// Limit of each algorithm.
const LIMIT: u64 = 3_000;

/// Longer than a hold and a remembered denial.
const QUIET: Duration = Duration::from_secs(2);

/// Checks that show whether a key is used up: on a busy machine, few fit into the time above.
const ENOUGH: u64 = 50;

/// A connection that is reused.
struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.url().trim_start_matches("http://")).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Status of a check by key; `None` if the server is gone.
    fn check(&mut self, algorithm: &str) -> Option<u16> {
        let path = format!("/api/v1/rate-limit/check?key=k&algorithm={algorithm}");
        let head = format!("POST {path} HTTP/1.1\r\nhost: here\r\ncontent-length: 0\r\n\r\n");
        self.stream.get_mut().write_all(head.as_bytes()).ok()?;
        let mut line = String::new();
        self.stream.read_line(&mut line).ok()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().ok()?;
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some(status)
    }
}

/// Checks until the key is denied except for what a bucket refills, or the server is gone; returns
/// the admissions.
fn exhaust(server: &Server, algorithm: &str, begun: &Sender<()>) -> u64 {
    let mut connection = Connection::open(server);
    let clock = SystemClock::new();
    let (mut admitted, mut before, mut checks, mut since) = (0, 0, 0, clock.steady());
    while let Some(status) = connection.check(algorithm) {
        match status {
            200 => admitted += 1,
            status => assert_eq!(status, 429, "{algorithm}"),
        }
        if status == 200 && admitted == LIMIT / 20 {
            let _ = begun.send(());
        }
        checks += 1;
        let took = Duration::from_micros(clock.steady() - since);
        if took > QUIET && checks >= ENOUGH {
            if admitted <= before + (2 * took.as_secs()).min(checks / 2) {
                break;
            }
            (before, checks, since) = (admitted, 0, clock.steady());
        }
    }
    admitted
}

/// Units that were neither used nor given back in time.
fn lost(server: &Server) -> u64 {
    let metrics = crate::harness::http(server, "GET /metrics", &[], "");
    let found = metrics.lines().find(|line| {
        line.starts_with("headgate_lease_units_total") && line.contains(r#"event="lost""#)
    });
    found.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_killed_server_loses_what_it_held_and_nothing_is_admitted_twice() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let limit = LIMIT.to_string();
    let section = |key: &str| format!("HEADGATE__RATE_LIMITER__{key}");
    // The buckets refill by one unit a second.
    let mut variables = vec![
        ("HEADGATE__REDIS__URL".to_owned(), url),
        ("HEADGATE__REDIS__TIMEOUT_MS".to_owned(), "30000".to_owned()),
        ("HEADGATE__REDIS__CONNECT_TIMEOUT_SECONDS".to_owned(), "30".to_owned()),
        (section("LEASE"), "20%/1000ms".to_owned()),
        (section("TOKEN_BUCKET__CAPACITY"), limit.clone()),
        (section("TOKEN_BUCKET__REFILL_RATE"), "1".to_owned()),
        (section("LEAKY_BUCKET__CAPACITY"), limit.clone()),
        (section("LEAKY_BUCKET__LEAK_RATE"), "1".to_owned()),
    ];
    for window in ["FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_WINDOW_COUNTER"] {
        variables.push((section(&format!("{window}__MAX_REQUESTS")), limit.clone()));
        variables.push((section(&format!("{window}__WINDOW_SIZE")), "8000h".to_owned()));
    }
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let servers = [0; 3].map(|_| Server::start(&variables));
    // Before that, the fail mode may decide.
    servers.iter().for_each(until_ready);
    let (begun, has_begun) = channel();
    let clock = SystemClock::new();
    let started = clock.steady();

    let admitted = thread::scope(|scope| {
        let load = |server, algorithm| {
            let begun = begun.clone();
            scope.spawn(move || exhaust(server, algorithm, &begun))
        };
        let loads = ALGORITHMS.map(|algorithm| servers.each_ref().map(|it| load(it, algorithm)));
        // Some algorithms are under way, and some may even be used up.
        for _ in ALGORITHMS {
            has_begun.recv().unwrap();
        }
        servers[1].send("-KILL");
        let sum = |loads: [thread::ScopedJoinHandle<'_, u64>; 3]| {
            loads.map(|load| load.join().unwrap()).iter().sum::<u64>()
        };
        loads.into_iter().map(sum).collect::<Vec<u64>>()
    });

    let seconds = (clock.steady() - started) / 1_000_000;
    // A fifth of the limit is the most that one server holds; a request may be in flight. On a busy
    // machine, what the others did not use may come back too late.
    let late: u64 = [&servers[0], &servers[2]].into_iter().map(lost).sum();
    let lost = LIMIT / 5 + 1 + late;
    for (algorithm, admitted) in ALGORITHMS.iter().zip(admitted) {
        let refilled = if algorithm.ends_with("BUCKET") { seconds + 1 } else { 0 };
        assert!(admitted <= LIMIT + refilled, "{algorithm}: {admitted}");
        assert!(admitted + lost >= LIMIT, "{algorithm}: {admitted}");
    }
}

#[test]
fn explain_shows_what_the_server_holds() {
    let redis = require!(Redis::start());
    let url = redis.url();
    let server = Server::start(&[
        ("HEADGATE__REDIS__URL", &url),
        ("HEADGATE__REDIS__TIMEOUT_MS", "30000"),
        ("HEADGATE__RATELIMIT__LEASE", "50%/1000ms"),
        ("HEADGATE__RATELIMIT__DEFAULT_LIMIT", "100000"),
        ("HEADGATE__RATELIMIT__DEFAULT_WINDOW_SECONDS", "8640000"),
    ]);
    // What it holds ends within a second: clients go on meanwhile.
    let load = Load::start(server.url().trim_start_matches("http://").parse().unwrap(), 8);
    let holds = || {
        let explained = server.run(&["explain", "user", "u1"]);
        assert!(printed(&explained).lines().next().unwrap().contains("HELD"));
        printed(&explained).contains(" until ")
    };
    assert!(wait_until(Duration::from_secs(120), holds), "it holds nothing");
    assert_eq!(load.stop(), Vec::<String>::new());
}
