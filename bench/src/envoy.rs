//! Latency of Envoy's requests on Redis: ten descriptors against one.

mod proto;

use std::{
    env, fs,
    net::TcpStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use headgate_testkit::{Redis, free_port, wait_until};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Channel;

use self::proto::envoy::{
    extensions::common::ratelimit::v3::{RateLimitDescriptor, rate_limit_descriptor::Entry},
    service::ratelimit::v3::{RateLimitRequest, rate_limit_service_client::RateLimitServiceClient},
};
use crate::{
    options::Options,
    random::Random,
    redis::cores,
    report::{Ratio, Table, Verdict, median},
};

/// Number of distinct values.
const SUBJECTS: usize = 1_000;

const MOST_FOR_TEN: f64 = 1.5;

/// A limit that no load reaches, counted as imported files are.
const DOMAIN: &str = "domain: bench\ndescriptors:\n  - key: client\n    rate_limit: {unit: hour, requests_per_unit: 4000000000}\n";

/// The server that users run, on Redis.
struct Server {
    process: Child,
    port: u16,
    folder: PathBuf,
}

/// Median and 99th percentile of one round, in microseconds.
struct Round {
    p50: f64,
    p99: f64,
}

pub(crate) fn report(options: Options) {
    println!("## Envoy: latency of ShouldRateLimit on Redis\n");
    if let Err(reason) = measure(options) {
        println!("skipped: {reason}\n");
    }
}

fn measure(options: Options) -> Result<(), String> {
    cores::share();
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    let server = Server::start(&redis).ok_or("headgate does not start")?;
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut client = connect(&runtime, server.port)?;
    let samples = 4_000 / options.thinning();
    for warmed in 0..SUBJECTS / 10 {
        ask(&runtime, &mut client, request(warmed * 10, 10))?;
    }
    let (mut ones, mut tens) = (Vec::new(), Vec::new());
    for round in 0..options.rounds() {
        let (one, ten) = take_turns(&runtime, &mut client, round, samples)?;
        ones.push(one);
        tens.push(ten);
    }
    show(&ones, &tens);
    println!(
        "\n{} rounds, in which single requests of each kind take turns. Fixed windows, {SUBJECTS} values; Redis, \
         server and client share all cores.\n",
        options.rounds()
    );
    Ok(())
}

fn show(ones: &[Round], tens: &[Round]) {
    let mut table = Table::new(&["latency", "10 descriptors / 1", "1, us", "10, us"]);
    let mut row = |name: &str, pick: fn(&Round) -> f64| {
        let values = |rounds: &[Round]| rounds.iter().map(pick).collect::<Vec<_>>();
        let (one, ten) = (values(ones), values(tens));
        let ratio = Ratio::per_round(&ten, &one);
        let micros = |values: &[f64]| format!("{:.0}", median(values));
        table.row([name.to_owned(), ratio.to_string(), micros(&one), micros(&ten)]);
        ratio.median
    };
    let ratio = row("p50", |round| round.p50);
    row("p99", |round| round.p99);
    println!("{table}");
    let bound = "10 descriptors cost at most 1.5x the latency of one";
    println!("{}", Verdict::new(bound, ratio <= MOST_FOR_TEN, format!("{ratio:.2}")));
}

/// Alternates between the kinds of requests, so that noise of the machine affects both.
fn take_turns(
    runtime: &Runtime,
    client: &mut RateLimitServiceClient<Channel>,
    seed: usize,
    samples: usize,
) -> Result<(Round, Round), String> {
    let mut random = Random::new(seed as u64);
    let (mut ones, mut tens) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        let first = random.below(SUBJECTS);
        ones.push(ask(runtime, client, request(first, 1))?);
        tens.push(ask(runtime, client, request(first, 10))?);
    }
    Ok((Round::of(ones), Round::of(tens)))
}

fn ask(
    runtime: &Runtime,
    client: &mut RateLimitServiceClient<Channel>,
    request: RateLimitRequest,
) -> Result<f64, String> {
    let (wanted, started) = (request.descriptors.len(), now());
    let answer = runtime.block_on(client.should_rate_limit(request));
    let took = started.elapsed().as_nanos() as f64 / 1_000.0;
    let answer = answer.map_err(|status| status.to_string())?.into_inner();
    let counted = |statuses: &[proto::Status]| statuses.iter().all(|it| it.current_limit.is_some());
    assert!(answer.statuses.len() == wanted && counted(&answer.statuses), "{answer:?}");
    Ok(took)
}

fn request(first: usize, descriptors: usize) -> RateLimitRequest {
    let descriptor = |i: usize| RateLimitDescriptor {
        entries: vec![Entry {
            key: "client".to_owned(),
            value: format!("{:06}", (first + i) % SUBJECTS),
        }],
        ..RateLimitDescriptor::default()
    };
    RateLimitRequest {
        domain: "bench".to_owned(),
        descriptors: (0..descriptors).map(descriptor).collect(),
        hits_addend: 1,
    }
}

fn connect(runtime: &Runtime, port: u16) -> Result<RateLimitServiceClient<Channel>, String> {
    let address = format!("http://127.0.0.1:{port}");
    let channel = Channel::from_shared(address).map_err(|error| error.to_string())?;
    let channel = runtime.block_on(channel.connect()).map_err(|error| error.to_string())?;
    Ok(RateLimitServiceClient::new(channel))
}

// === impl Round ===

impl Round {
    fn of(mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        let at = |percent: usize| samples[(samples.len() - 1) * percent / 100];
        Self { p50: at(50), p99: at(99) }
    }
}

// === impl Server ===

impl Server {
    fn start(redis: &Redis) -> Option<Self> {
        let port = free_port();
        let folder = env::temp_dir().join(format!("headgate-bench-{port}"));
        fs::create_dir_all(&folder).ok()?;
        let domain = folder.join("bench.yaml");
        fs::write(&domain, DOMAIN).ok()?;
        let mut command = Command::new(env::var_os("HEADGATE_BIN")?);
        command.arg("serve").stdout(Stdio::null()).stderr(Stdio::null());
        command
            .env("HEADGATE__SERVER__DATA_DIR", &folder)
            .env("HEADGATE__SERVER__PORT", "0")
            .env("HEADGATE__SERVER__GRPC_PORT", port.to_string())
            .env("HEADGATE__REDIS__URL", redis.url())
            // A time-out would be answered without Redis.
            .env("HEADGATE__REDIS__TIMEOUT_MS", "10000")
            .env("HEADGATE__ENVOY__FAIL_MODE", "closed")
            .env("HEADGATE__ENVOY__ENABLED", "true")
            .env("HEADGATE__ENVOY__CONFIG_FILE", domain);
        let server = Self { process: command.spawn().ok()?, port, folder };
        let is_up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_until(Duration::from_secs(10), is_up).then_some(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
