//! Overhead in process: nanoseconds and allocations around a handler that does nothing.

use std::{
    env,
    net::{IpAddr, Ipv4Addr},
    process::{Command, Stdio},
    time::Instant,
};

use super::{Entrant, Layers};
use crate::{
    options::Options,
    report::{Ratio, Table, Verdict, median},
};

/// Numbers of clients, one per series.
const CLIENTS: [usize; 4] = [1, 1_000, 100_000, 1_000_000];

const REQUESTS: usize = 4_000_000;

/// Requests between two readings of the clock: about a millisecond. Contestants alternate after each
/// slice, and a round counts as the median of its slices, so that a slice in which the thread was
/// preempted does not count.
const SLICE: usize = 10_000;

/// Maximum ratio of our overhead to the rival's, for few clients and for many.
const MOST_FOR_FEW: f64 = 1.1;
const MOST_FOR_MANY: f64 = 1.0;

/// From this number of clients on, the bound for many applies.
const MANY: usize = 100_000;

/// Rounds for one number of clients: nanoseconds per request, by contestant.
struct Series {
    clients: usize,
    nanos: [Vec<f64>; Entrant::ALL.len()],
}

pub(super) fn report(options: Options) {
    let all: Vec<Series> = CLIENTS.into_iter().map(|clients| measure(clients, options)).collect();
    println!("{}", table(&all));
    for series in &all {
        println!("{}", series.verdict());
    }
    match allocations() {
        Ok(counts) => {
            let told = counts.iter().map(|(name, count)| format!("{name} {count}"));
            let told = told.collect::<Vec<_>>().join(", ");
            let [bare, ours, _] = [0, 1, 2].map(|i| counts[i].1);
            println!(
                "{}",
                Verdict::new("no allocation for an admitted request", ours <= bare, told)
            );
        }
        Err(reason) => println!("skipped allocations: {reason}"),
    }
    println!(
        "\n{} rounds of interleaved slices of {SLICE} requests; a round's figure is the median of its",
        options.rounds()
    );
    println!("slices. The service is called directly, on one thread, and no header is written to");
    println!(
        "an admitted response. What is added is the time beyond that of the bare handler; the"
    );
    println!("ratio is the median of the rounds' ratios (least..most). Allocations are of 1,000");
    println!("requests of a client that is known.\n");
}

fn measure(clients: usize, options: Options) -> Series {
    let addresses: Vec<IpAddr> = (0..clients as u64).map(address).collect();
    let layers = Layers::new();
    let mut series = Series { clients, nanos: Default::default() };
    for entrant in Entrant::ALL {
        entrant.send(&addresses, 1, &layers);
    }
    for _ in 0..options.rounds() {
        let slices = measure_round(&addresses, REQUESTS / options.thinning() / SLICE, &layers);
        for (nanos, slices) in series.nanos.iter_mut().zip(slices) {
            nanos.push(median(&slices));
        }
    }
    series
}

/// Nanoseconds per request in each slice of a round, by contestant.
fn measure_round(
    addresses: &[IpAddr],
    slices: usize,
    layers: &Layers,
) -> [Vec<f64>; Entrant::ALL.len()] {
    let mut nanos: [Vec<f64>; Entrant::ALL.len()] = Default::default();
    let times = (SLICE / addresses.len()).max(1);
    for (slice, clients) in addresses.chunks(SLICE).cycle().take(slices).enumerate() {
        for i in 0..Entrant::ALL.len() {
            // Rotate the order, so that no contestant always follows the same one.
            let at = (i + slice) % Entrant::ALL.len();
            let took = timed(|| Entrant::ALL[at].send(clients, times, layers));
            nanos[at].push(took / (times * clients.len()) as f64);
        }
    }
    nanos
}

/// A pseudorandom address.
fn address(i: u64) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits((i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32))
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn timed(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_nanos() as f64
}

fn table(all: &[Series]) -> Table {
    let header = ["clients", "ours / tower_governor", "bare, ns", "ours adds, ns", "it adds, ns"];
    let mut table = Table::new(&header);
    for series in all {
        table.row([
            series.clients.to_string(),
            series.ratio().to_string(),
            format!("{:.0}", median(series.of(Entrant::Bare))),
            format!("{:.0}", median(&series.added(Entrant::Ours))),
            format!("{:.0}", median(&series.added(Entrant::TowerGovernor))),
        ]);
    }
    table
}

/// Runs a separate program with a counting allocator.
fn allocations() -> Result<Vec<(String, u64)>, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let program = program.with_file_name("guard-allocations");
    let output = Command::new(program).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("guard-allocations: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    let counts: Vec<_> = text.lines().filter_map(count).collect();
    if counts.len() == Entrant::ALL.len() { Ok(counts) } else { Err(format!("it said: {text}")) }
}

// === impl Series ===

impl Series {
    fn of(&self, entrant: Entrant) -> &[f64] {
        &self.nanos[entrant as usize]
    }

    fn added(&self, entrant: Entrant) -> Vec<f64> {
        let bare = self.of(Entrant::Bare);
        self.of(entrant).iter().zip(bare).map(|(with, bare)| with - bare).collect()
    }

    fn ratio(&self) -> Ratio {
        Ratio::per_round(&self.added(Entrant::Ours), &self.added(Entrant::TowerGovernor))
    }

    fn verdict(&self) -> Verdict {
        let ratio = self.ratio();
        let most = if self.clients < MANY { MOST_FOR_FEW } else { MOST_FOR_MANY };
        let bound =
            format!("at most {most:.1}x of what tower_governor adds, {} clients", self.clients);
        Verdict::new(bound, ratio.median <= most, ratio.to_string())
    }
}
