//! One hot subject over a socket: the server in memory, and on Redis with leases.

use headgate_testkit::Redis;

use super::{commands::Commands, hot::MOST_CALLS, now};
use crate::{
    options::Options,
    redis::cores,
    report::{Ratio, Table, Verdict, median},
    server::{
        candidate::{Candidate, Place, Surface},
        load::{self, Figures},
    },
};

const FEWEST_OF_MEMORY: f64 = 0.9;
const MOST_OF_TAIL: f64 = 1.5;

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
        let memory = start(Place::OwnCore)?;
        let leased = start(Place::OwnCoreLeasing { redis: &url })?;
        let (mut ours, mut most, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.rounds() {
            most.push(load::run(&memory, options));
            let (before, started) = (Commands::read(&redis), now());
            ours.push(load::run(&leased, options));
            let made = Commands::read(&redis).since(before).calls;
            calls.push(made / started.elapsed().as_secs_f64());
        }
        let of = |figures: &[Figures], pick: fn(&Figures) -> f64| {
            figures.iter().map(pick).collect::<Vec<_>>()
        };
        let over = |pick: fn(&Figures) -> f64| Ratio::per_round(&of(&ours, pick), &of(&most, pick));
        let (rate, tail) = (over(|it| it.rate), over(|it| it.p99));
        let calls = median(&calls);
        for (name, figures, calls) in [("in memory", &most, 0.0), ("leased", &ours, calls)] {
            table.row([
                format!("{surface}, {name}"),
                Ratio::per_round(&of(figures, |it| it.rate), &of(&most, |it| it.rate)).to_string(),
                format!("{:.0}", median(&of(figures, |it| it.rate))),
                format!("{:.0}", median(&of(figures, |it| it.p99))),
                format!("{calls:.1}"),
            ]);
        }
        let bound = format!("{surface}, leased: at least 0.9 of memory");
        verdicts.push(Verdict::new(bound, rate.median >= FEWEST_OF_MEMORY, rate.to_string()));
        let bound = format!("{surface}, leased: p99 within 1.5x of memory's");
        verdicts.push(Verdict::new(bound, tail.median <= MOST_OF_TAIL, tail.to_string()));
        let bound = format!("{surface}, leased: at most 20 Redis calls a second");
        verdicts.push(Verdict::new(bound, calls <= MOST_CALLS, format!("{calls:.1}")));
    }
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
    println!("\n{} rounds; {pinning}, the server with Redis.\n", options.rounds());
    cores::share();
    Ok(())
}
