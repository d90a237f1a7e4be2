//! Decisions per second on Redis, against the maximum of Redis itself with the same script.

mod ceiling;
mod client;
pub(crate) mod cores;

use headgate_testkit::Redis;

use crate::{
    options::Options,
    report::{Ratio, Table, Verdict, median},
};

use self::client::Client;

pub(crate) use self::ceiling::Ceiling;

/// Requests in flight: connections times requests on each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) connections: usize,
    pub(crate) pipeline: usize,
    pub(crate) decisions: usize,
}

const LOADS: [Load; 2] = [
    Load { connections: 32, pipeline: 1, decisions: 100_000 },
    Load { connections: 32, pipeline: 16, decisions: 200_000 },
];

/// Number of distinct keys.
const SUBJECTS: usize = 100_000;

const FEWEST_OF_CEILING: f64 = 0.8;
const MOST_FOR_TEN: f64 = 1.5;

pub(crate) fn report(options: Options) {
    println!("## Redis: decisions per second\n");
    if let Err(reason) = measure(options) {
        println!("skipped: {reason}\n");
    }
}

fn measure(options: Options) -> Result<(), String> {
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    let pinning = cores::separate(redis.pid());
    let ceiling = Ceiling::new(&redis)?;
    let client = Client::connect(&redis);

    throughput(&client, &ceiling, options);
    latency(&client, options);
    let rounds = options.rounds();
    println!("\n{rounds} interleaved rounds. Token bucket, {SUBJECTS} keys; {pinning}.\n");
    Ok(())
}

fn throughput(client: &Client, ceiling: &Ceiling, options: Options) {
    let mut table = Table::new(&["in flight", "ours / redis-benchmark", "ours", "redis-benchmark"]);
    let mut verdicts = Vec::new();
    for load in LOADS.map(|load| load.thinned(options.thinning())) {
        let [ours, most] = rounds(options, || client.rate(load), || ceiling.rate(load));
        let ratio = Ratio::per_round(&ours, &most);
        let in_flight = load.in_flight().to_string();
        let rate = |rates| format!("{:.0}", median(rates));
        table.row([in_flight, ratio.to_string(), rate(&ours), rate(&most)]);

        let bound = format!("at least 0.8 of redis-benchmark, {} in flight", load.in_flight());
        let holds = ratio.median >= FEWEST_OF_CEILING;
        verdicts.push(Verdict::new(bound, holds, format!("{:.2}", ratio.median)));
    }
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
}

fn latency(client: &Client, options: Options) {
    let samples = 4_000 / options.thinning();
    let round = |seed| client.latencies([1, 10], samples, seed as u64);
    let rounds = (0..options.rounds()).map(round);
    let (one, ten): (Vec<_>, Vec<_>) = rounds.map(|[one, ten]| (one, ten)).unzip();
    let ratio = Ratio::per_round(&ten, &one);
    let micros = |samples| format!("{:.0}", median(samples));
    let header = ["latency, p50", "10 limits / 1 limit", "1 limit, us", "10 limits, us"];
    let mut table = Table::new(&header);
    table.row(["one batch at a time".to_owned(), ratio.to_string(), micros(&one), micros(&ten)]);
    println!("\n{table}");
    let bound = "10 limits in one batch cost at most 1.5x the latency of one";
    let figure = format!("{:.2}", ratio.median);
    println!("{}", Verdict::new(bound, ratio.median <= MOST_FOR_TEN, figure));
}

/// Runs two measurements alternately; returns their figures.
fn rounds(
    options: Options,
    mut first: impl FnMut() -> f64,
    mut second: impl FnMut() -> f64,
) -> [Vec<f64>; 2] {
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    for round in 0..options.rounds() {
        if round % 2 == 0 {
            firsts.push(first());
            seconds.push(second());
        } else {
            seconds.push(second());
            firsts.push(first());
        }
    }
    [firsts, seconds]
}

// === impl Load ===

impl Load {
    const fn in_flight(self) -> usize {
        self.connections * self.pipeline
    }

    pub(crate) const fn thinned(self, thinning: usize) -> Self {
        Self { decisions: self.decisions / thinning, ..self }
    }
}
