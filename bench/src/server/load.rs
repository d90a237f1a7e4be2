//! The load: wrk for REST, h2load for gRPC, on a core of their own.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use super::{
    candidate::{Running, Surface},
    open_loop,
};
use crate::options::Options;

/// Results of one round of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Checks per second.
    pub(crate) rate: f64,
    /// Median latency in microseconds.
    pub(crate) p50: f64,
    /// 99th percentile of latency in microseconds.
    pub(crate) p99: f64,
    /// CPU microseconds of the server per check.
    pub(crate) cpu: f64,
}

pub(super) const CONNECTIONS: usize = 32;
const GRPC_CONNECTIONS: usize = 4;
const GRPC_STREAMS: usize = 8;

/// Returns the load generator of this surface, if it is installed.
pub(crate) fn tool(surface: Surface) -> Result<&'static str, String> {
    let tool = match surface {
        Surface::Rest => "wrk",
        Surface::Grpc => "h2load",
    };
    let there =
        Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    there.map(|_| tool).map_err(|error| format!("{tool}: {error}"))
}

pub(crate) fn described(surface: Surface) -> String {
    match surface {
        Surface::Rest => format!("{CONNECTIONS} connections, one request on each, one hot key"),
        Surface::Grpc => {
            format!("{GRPC_CONNECTIONS} connections with {GRPC_STREAMS} calls on each, one hot key")
        }
    }
}

/// Loads a server for a while.
pub(crate) fn run(running: &Running, options: Options) -> Figures {
    let requests = 160_000 / options.thinning().min(4);
    match running.candidate.surface() {
        Surface::Rest => wrk(running, if options.is_quick() { 2 } else { 4 }),
        Surface::Grpc => h2load(running, &["-n".to_owned(), requests.to_string()]),
    }
}

/// The 99th percentile of latency at `rate` requests per second, in microseconds.
pub(crate) fn tail(running: &Running, rate: f64, time: Duration) -> f64 {
    match running.candidate.surface() {
        Surface::Rest => {
            let question = running.candidate.question();
            let body = String::from_utf8(question.body).expect("a JSON body");
            let (path, length) = (question.path, body.len());
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n\
                 content-length: {length}\r\n\r\n{body}"
            );
            open_loop::open_with(running.port, time, rate, &request).per_mille(990)
        }
        Surface::Grpc => {
            let of_a_connection = rate / GRPC_CONNECTIONS as f64;
            let seconds = format!("{}", time.as_secs());
            h2load(running, &[format!("--rps={of_a_connection:.0}"), "-D".to_owned(), seconds]).p99
        }
    }
}

fn wrk(running: &Running, seconds: u32) -> Figures {
    let question = running.candidate.question();
    let body = String::from_utf8(question.body).expect("a JSON body");
    let script = scratch(running, "post.lua");
    let lua = format!(
        "wrk.method = 'POST'\nwrk.headers['content-type'] = 'application/json'\nwrk.body = '{body}'\n\
         done = function(summary, latency)\n\
         io.write(string.format('FIGURES %d %d %d %d %d\\n', summary.requests, summary.duration,\n\
         latency:percentile(50), latency:percentile(99),\n\
         summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))\nend\n"
    );
    fs::write(&script, lua).expect("a script");
    let before = running.cpu_seconds();
    let mut command = on_its_cores("wrk", running);
    command.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{seconds}s"), "-s"]).arg(&script);
    command.arg(running.url(question.path));
    let output = command.output().expect("wrk runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let numbers = text
        .lines()
        .find_map(|line| line.strip_prefix("FIGURES "))
        .unwrap_or_else(|| panic!("wrk said: {text}"));
    let numbers: Vec<f64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
    let [requests, micros, p50, p99, errors] = numbers[..] else { panic!("wrk said: {text}") };
    assert!(errors == 0.0, "{}: {text}", running.candidate.name());
    let cpu = (running.cpu_seconds() - before) * 1e6 / requests;
    Figures { rate: requests / micros * 1e6, p50, p99, cpu }
}

/// Loads with as many requests as `amount` says.
fn h2load(running: &Running, amount: &[String]) -> Figures {
    let question = running.candidate.question();
    let (body, log) = (scratch(running, "body"), scratch(running, "log"));
    fs::write(&body, &question.body).expect("a body");
    let _ = fs::remove_file(&log);
    let before = running.cpu_seconds();
    let mut command = on_its_cores("h2load", running);
    command.args(amount);
    command.args(["-c", &GRPC_CONNECTIONS.to_string(), "-m", &GRPC_STREAMS.to_string()]);
    command.arg("-d").arg(&body).arg(format!("--log-file={}", log.display()));
    command.args(["-H", "content-type: application/grpc", "-H", "te: trailers"]);
    command.arg(running.url(question.path));
    let output = command.output().expect("h2load runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let rate = text.lines().find_map(|line| {
        line.strip_prefix("finished in ")?.split(", ").nth(1)?.split(' ').next()?.parse().ok()
    });
    let rate: f64 = rate.unwrap_or_else(|| panic!("h2load said: {text}"));
    let all = text.contains(" 0 failed, 0 errored, 0 timeout");
    assert!(all, "{}: {text}", running.candidate.name());
    let micros = latencies(&log);
    let cpu = (running.cpu_seconds() - before) * 1e6 / micros.len() as f64;
    let (p50, p99) = (micros[micros.len() / 2], micros[micros.len() * 99 / 100]);
    Figures { rate, p50, p99, cpu }
}

/// The log has a line for each request: when it began, its status, its microseconds.
fn latencies(log: &Path) -> Vec<f64> {
    let text = fs::read_to_string(log).expect("h2load's log");
    let micros = text.lines().filter_map(|line| line.split_whitespace().nth(2)?.parse().ok());
    let mut micros: Vec<f64> = micros.collect();
    micros.sort_by(f64::total_cmp);
    micros
}

fn scratch(running: &Running, name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("headgate-bench-{}", running.port)).join(name)
}

fn on_its_cores(program: &str, running: &Running) -> Command {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", running.load_cores, program]).stderr(Stdio::inherit());
    command
}
