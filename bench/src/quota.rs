//! Durable increments per second: a whole server on PostgreSQL and Redis, against a transaction for
//! each increment on the same database, and against Redis alone, which is not durable.

use std::{
    fs, io,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use headgate_testkit::{Postgres, Redis};

use crate::{
    options::Options,
    redis::cores,
    report::{Ratio, Table, Verdict, median},
    server::{
        candidate::{Candidate, Place, Running, Surface},
        http::Connection,
    },
};

/// Concurrent clients.
const CLIENTS: usize = 64;

const FEWEST_OF_NAIVE: f64 = 5.0;

/// One row that all clients update, like one quota.
const NAIVE_TABLE: &str = "CREATE TABLE naive (id int PRIMARY KEY, used bigint NOT NULL); INSERT INTO naive VALUES (1, 0)";
const NAIVE_INCREMENT: &str =
    "UPDATE naive SET used = used + 1 WHERE id = 1 AND used + 1 <= 1000000000;\n";

/// A policy of a running server.
struct Quota<'a> {
    server: &'a Running,
    request: String,
}

pub(crate) fn report(options: Options) {
    println!("## Quotas: increments per second\n");
    if let Err(reason) = measure(options) {
        println!("skipped: {reason}\n");
    }
}

fn measure(options: Options) -> Result<(), String> {
    cores::share();
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    let postgres = Postgres::builder().durable().start().map_err(|skip| skip.to_string())?;
    postgres.psql(NAIVE_TABLE);
    let (redis_url, postgres_url) = (redis.url(), postgres.url());
    let place = Place::Beside { redis: &redis_url, postgres: Some(&postgres_url) };
    let server = Candidate::Headgate(Surface::Rest).start(place);
    let server = server.ok_or("headgate does not start")?;
    let quota = Quota::create(&server).map_err(|error| error.to_string())?;

    let time = Duration::from_secs(if options.is_quick() { 3 } else { 6 });
    let (mut ours, mut naive, mut volatile) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds() {
        ours.push(quota.rate(time));
        naive.push(naive_rate(&postgres, time)?);
        volatile.push(redis_rate(&redis, options)?);
    }
    let mut table = Table::new(&["one quota, 64 clients", "headgate / this", "increments/s"]);
    let mut row = |name: &str, rates: &[f64]| {
        let ratio = Ratio::per_round(&ours, rates).to_string();
        table.row([name.to_owned(), ratio, format!("{:.0}", median(rates))]);
    };
    row("headgate over REST, durable", &ours);
    row("a transaction for each (pgbench)", &naive);
    row("INCR (redis-benchmark), not durable", &volatile);
    println!("{table}");
    let ratio = Ratio::per_round(&ours, &naive).median;
    let bound = "at least 5 times a transaction for each increment";
    println!("{}", Verdict::new(bound, ratio >= FEWEST_OF_NAIVE, format!("{ratio:.1}x")));
    println!(
        "\n{} interleaved rounds. PostgreSQL waits for the disk (fsync); all share all cores.\n",
        options.rounds()
    );
    Ok(())
}

fn naive_rate(postgres: &Postgres, time: Duration) -> Result<f64, String> {
    let script = postgres.folder().join("naive.sql");
    fs::write(&script, NAIVE_INCREMENT).map_err(|error| error.to_string())?;
    let mut pgbench = Command::new(postgres.program("pgbench"));
    pgbench.args(["--no-vacuum", "--protocol", "prepared", "--client", &CLIENTS.to_string()]);
    pgbench.args(["--time", &time.as_secs().to_string(), "--file"]).arg(&script);
    pgbench.arg(postgres.url());
    let output = pgbench.output().map_err(|error| format!("pgbench: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate =
        text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.ok_or_else(|| format!("pgbench said: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn redis_rate(redis: &Redis, options: Options) -> Result<f64, String> {
    let mut benchmark = Command::new("redis-benchmark");
    benchmark.args(["-p", &redis.port().to_string(), "-c", &CLIENTS.to_string()]);
    benchmark.args([
        "-n",
        &(200_000 / options.thinning()).to_string(),
        "--csv",
        "INCR",
        "volatile",
    ]);
    let output = benchmark.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("redis-benchmark: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().last().and_then(|line| line.split("\",\"").nth(1)?.parse().ok());
    rate.ok_or_else(|| format!("redis-benchmark said: {text}"))
}

// === impl Quota ===

impl<'a> Quota<'a> {
    fn create(server: &'a Running) -> io::Result<Self> {
        let token = server.admin_token();
        let post = |path: &str, body: &str| {
            format!(
                "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {token}\r\n\
                 content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            )
        };
        let body = r#"{"name":"bench","subject_type":"tenant","subject_id":"bench","limit":1000000000,"period":"monthly","enabled":true}"#;
        let answer = Connection::open(server.port)?.ask(post("/api/v1/quotas", body).as_bytes())?;
        let answer = String::from_utf8_lossy(&answer);
        let id = answer.split("\"id\":\"").nth(1).and_then(|rest| rest.split('"').next());
        let id = id.ok_or_else(|| io::Error::other(format!("no id in {answer}")))?;
        let request = post(&format!("/api/v1/quotas/{id}/usage/increment"), r#"{"amount":1}"#);
        Ok(Self { server, request })
    }

    /// Returns increments per second of many clients in a closed loop.
    fn rate(&self, time: Duration) -> f64 {
        let started = now();
        let count: usize = thread::scope(|scope| {
            let ask = |_| scope.spawn(|| self.ask_until(started + time));
            let clients: Vec<_> = (0..CLIENTS).map(ask).collect();
            clients.into_iter().map(|client| client.join().expect("no panic")).sum()
        });
        count as f64 / started.elapsed().as_secs_f64()
    }

    fn ask_until(&self, end: Instant) -> usize {
        let mut connection = Connection::open(self.server.port).expect("a connection");
        let mut count = 0;
        while now() < end {
            connection.ask(self.request.as_bytes()).expect("every increment is acknowledged");
            count += 1;
        }
        count
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
