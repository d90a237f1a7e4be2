//! Servers on Redis, against the maximum of Redis itself with the same script.

use std::time::Duration;

use headgate_testkit::Redis;

use super::{
    FEWEST_OF_CEILING,
    candidate::{Candidate, Place, Running, Surface},
    load, open_loop,
};
use crate::{
    options::Options,
    redis::{Ceiling, Load, cores},
    report::{Ratio, Table, Verdict, median},
};

/// The same number of requests in flight as in the load of the servers.
const LOAD: Load = Load { connections: load::CONNECTIONS, pipeline: 1, decisions: 100_000 };

/// Bounds: minimum decisions per second, and maximum 99th percentile.
const FEWEST: f64 = 10_000.0;
const LATEST_MICROS: f64 = 10_000.0;

pub(super) fn report(options: Options) -> Result<(), String> {
    cores::share();
    let redis = Redis::start().map_err(|skip| skip.to_string())?;
    let ceiling = Ceiling::new(&redis)?;
    let url = redis.url();
    let place = Place::Beside { redis: &url, postgres: None };
    println!("### On Redis\n");
    throughput(&ceiling, place, options)?;
    println!("\nRedis, server and load share all cores, as Redis and redis-benchmark do.");
    let server = Candidate::Headgate(Surface::Rest).start(Place::OwnCoreWith { redis: &url });
    let server = server.ok_or("headgate does not start")?;
    let pinning = cores::separate(redis.pid());
    open(&server, options);
    println!("\n{} rounds. Open loop: {pinning}, the server with Redis.\n", options.rounds());
    Ok(())
}

fn throughput(ceiling: &Ceiling, place: Place<'_>, options: Options) -> Result<(), String> {
    let header =
        ["on Redis", "of redis-benchmark", "checks/s", "p50, us", "p99, us", "server CPU, us"];
    let mut table = Table::new(&header);
    let mut verdicts = Vec::new();
    let mut most = Vec::new();
    for surface in [Surface::Rest, Surface::Grpc] {
        load::tool(surface)?;
        let server = Candidate::Headgate(surface).start(place).ok_or("headgate does not start")?;
        let mut ours = Vec::new();
        let mut beside = Vec::new();
        for _ in 0..options.rounds() {
            beside.push(ceiling.rate(LOAD.thinned(options.thinning().min(2))));
            ours.push(load::run(&server, options));
        }
        let values = |pick: fn(&load::Figures) -> f64| ours.iter().map(pick).collect::<Vec<_>>();
        let ratio = Ratio::per_round(&values(|figures| figures.rate), &beside);
        table.row([
            format!("headgate, {surface}"),
            ratio.to_string(),
            format!("{:.0}", median(&values(|figures| figures.rate))),
            format!("{:.0}", median(&values(|figures| figures.p50))),
            format!("{:.0}", median(&values(|figures| figures.p99))),
            format!("{:.1}", median(&values(|figures| figures.cpu))),
        ]);
        let bound = format!("{surface} on Redis at least 0.6 of redis-benchmark");
        let holds = ratio.median >= FEWEST_OF_CEILING;
        verdicts.push(Verdict::new(bound, holds, format!("{:.2}", ratio.median)));
        most.extend(beside);
    }
    let rate = format!("{:.0}", median(&most));
    table.row(["redis-benchmark", "", &rate, "", "", ""].map(str::to_owned));
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
    Ok(())
}

/// Latency in an open loop, at half of the server's throughput.
fn open(server: &Running, options: Options) {
    let time = Duration::from_secs(if options.is_quick() { 2 } else { 5 });
    let mut table = Table::new(&[
        "keyed check, half of the most",
        "requests/s",
        "most",
        "p50, us",
        "p99, us",
        "p99.9, us",
    ]);
    let stretches: Vec<_> = (0..options.rounds())
        .map(|_| {
            let most = open_loop::closed(server.port, time).rate;
            (most, open_loop::open(server.port, time, most / 2.0))
        })
        .collect();
    let values = |pick: &dyn Fn(&(f64, open_loop::Stretch)) -> f64| {
        median(&stretches.iter().map(pick).collect::<Vec<_>>())
    };
    let most = values(&|(most, _)| *most);
    let late = values(&|(_, stretch)| stretch.per_mille(990));
    table.row([
        "token bucket, 100,000 keys".to_owned(),
        format!("{:.0}", values(&|(_, stretch)| stretch.rate)),
        format!("{most:.0}"),
        format!("{:.0}", values(&|(_, stretch)| stretch.per_mille(500))),
        format!("{late:.0}"),
        format!("{:.0}", values(&|(_, stretch)| stretch.per_mille(999))),
    ]);
    println!("\n{table}");
    let bound = "10,000 checks a second";
    println!("{}", Verdict::new(bound, most >= FEWEST, format!("{:.1}x", most / FEWEST)));
    let bound = "p99 under 10 ms at half of the most";
    println!("{}", Verdict::new(bound, late < LATEST_MICROS, format!("{:.1} ms", late / 1000.0)));
}
