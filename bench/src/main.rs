//! Headgate against its rivals and against the maximum of Redis itself: one run, one report of
//! ratios.
//!
//! | module | contents |
//! |---|---|
//! | `speed` | nanoseconds per decision: shapes, rounds, ratios |
//! | `memory`, `flood` | resident bytes, each measured in a `child` process |
//! | `redis` | decisions per second on Redis, against `redis-benchmark` |
//! | `reservations` | reserve and settle, in memory and on Redis, against one check |
//! | `leases` | decisions on Redis with leases: calls, speed, and nothing over the limit |
//! | `server` | checks per second over a socket, plain and over TLS, against handlers that do nothing |
//! | `envoy` | the latency of Envoy's requests with one and with ten descriptors, on Redis |
//! | `quota` | durable increments per second, against a transaction for each |
//! | `guard` | overhead of a layer per request, against `tower_governor` |
//! | `contestant`, `contestants` | ours and the rivals behind one trait |
//! | `shape`, `stream`, `zipf`, `random` | the traffic |
//! | `lap`, `rss`, `machine` | measuring |
//! | `report` | ratios, tables, bounds |

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the report is the product")]

mod child;
mod contestant;
mod contestants;
mod envoy;
mod flood;
mod guard;
mod lap;
mod leases;
mod machine;
mod memory;
mod options;
mod quota;
mod random;
mod redis;
mod report;
mod reservations;
mod rss;
mod server;
mod shape;
mod speed;
mod stream;
mod zipf;

use std::{env, process::ExitCode};

use crate::options::{Options, Part};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [first, what] = &arguments[..]
        && first == child::ARGUMENT
    {
        child::answer(what);
        return ExitCode::SUCCESS;
    }
    if let Some((first, rest)) = arguments.split_first()
        && first == server::ARGUMENT
    {
        server::serve(rest);
        return ExitCode::SUCCESS;
    }
    let Some(options) = Options::parse(arguments.into_iter()) else {
        eprintln!("{}", Options::USAGE);
        return ExitCode::FAILURE;
    };
    run(options);
    ExitCode::SUCCESS
}

fn run(options: Options) {
    machine::report();
    if options.wants(Part::Speed) {
        speed::report(options);
    }
    if options.wants(Part::Memory) {
        memory::report(options);
    }
    if options.wants(Part::Redis) {
        redis::report(options);
    }
    if options.wants(Part::Reservations) {
        reservations::report(options);
    }
    if options.wants(Part::Leases) {
        leases::report(options);
    }
    if options.wants(Part::Server) {
        server::report(options);
    }
    if options.wants(Part::Tls) {
        server::report_over_tls(options);
    }
    if options.wants(Part::Envoy) {
        envoy::report(options);
    }
    if options.wants(Part::Quota) {
        quota::report(options);
    }
    if options.wants(Part::Guard) {
        guard::report(options);
    }
}
