//! One hot subject over a socket: the server in memory, and on Redis with leases.

use std::time::Duration;

use headgate_testkit::Redis;

use super::{commands::Commands, hot::MOST_CALLS, now};
use crate::{
    options::Options,
    redis::cores,
    report::{Ratio, Table, Verdict, median},
    server::{
        candidate::{Candidate, Place, Running, Surface},
        load,
    },
};

const FEWEST_OF_MEMORY: f64 = 0.9;
const MOST_OF_TAIL: f64 = 1.5;

/// Rounds, also of a quick run: a tail needs many.
const ROUNDS: usize = 9;

/// Figures of both servers, a pair for each round: in memory, and leased.
#[derive(Debug, Default)]
struct Figures {
    rates: [Vec<f64>; 2],
    tails: [Vec<f64>; 2],
    /// Redis calls per second of the leased one.
    calls: Vec<f64>,
}

pub(super) fn report(options: Options) -> Result<(), String> {
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    let pinning = cores::separate(redis.pid());
    let url = redis.url();
    let header = ["one hot subject, server", "of memory", "checks/s", "p99, us", "Redis calls/s"];
    let mut table = Table::new(&header);
    let mut verdicts = Vec::new();
    for surface in [Surface::Rest, Surface::Grpc] {
        load::tool(surface)?;
        let start =
            |place| Candidate::Headgate(surface).start(place).ok_or("headgate does not start");
        let servers = [start(Place::OwnCore)?, start(Place::OwnCoreLeasing { redis: &url })?];
        let figures = Figures::measure(&servers, &redis, options);
        figures.describe(surface, &mut table);
        verdicts.extend(figures.verdicts(surface));
    }
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
    println!(
        "\n{ROUNDS} rounds in turns, p99 at half of the most that memory does; {pinning}, the \
         server with Redis.\n"
    );
    cores::share();
    Ok(())
}

impl Figures {
    fn measure(servers: &[Running; 2], redis: &Redis, options: Options) -> Self {
        let mut figures = Self::default();
        // The pace is learned, and connections are open.
        for server in servers {
            load::run(server, options);
        }
        for round in 0..ROUNDS {
            for which in in_turns(round) {
                let (before, started) = (Commands::read(redis), now());
                figures.rates[which].push(load::run(&servers[which], options).rate);
                let calls = Commands::read(redis).since(before).calls;
                if which == 1 {
                    figures.calls.push(calls / started.elapsed().as_secs_f64());
                }
            }
        }
        let half = median(&figures.rates[0]) / 2.0;
        for round in 0..ROUNDS {
            for which in in_turns(round) {
                let tail = load::tail(&servers[which], half, Duration::from_secs(1));
                figures.tails[which].push(tail);
            }
        }
        figures
    }

    fn describe(&self, surface: Surface, table: &mut Table) {
        let calls = [0.0, median(&self.calls)];
        for (which, name) in ["in memory", "leased"].into_iter().enumerate() {
            table.row([
                format!("{surface}, {name}"),
                Ratio::per_round(&self.rates[which], &self.rates[0]).to_string(),
                format!("{:.0}", median(&self.rates[which])),
                format!("{:.0}", median(&self.tails[which])),
                format!("{:.1}", calls[which]),
            ]);
        }
    }

    fn verdicts(&self, surface: Surface) -> [Verdict; 3] {
        let rate = Ratio::per_round(&self.rates[1], &self.rates[0]);
        let tail = Ratio::per_round(&self.tails[1], &self.tails[0]);
        let calls = median(&self.calls);
        let bound = |bound| format!("{surface}, leased: {bound}");
        [
            Verdict::new(
                bound("at least 0.9 of memory"),
                rate.median >= FEWEST_OF_MEMORY,
                rate.to_string(),
            ),
            Verdict::new(
                bound("p99 within 1.5x of memory's"),
                tail.median <= MOST_OF_TAIL,
                tail.to_string(),
            ),
            Verdict::new(
                bound("at most 20 Redis calls a second"),
                calls <= MOST_CALLS,
                format!("{calls:.1}"),
            ),
        ]
    }
}

/// Each round starts with the other one.
const fn in_turns(round: usize) -> [usize; 2] {
    [round % 2, (round + 1) % 2]
}
