//! Prints the tables of `docs/scale.md`, or one of them:
//! `cargo run --release -p headgate-simulation --example scale [rates]`.

#![expect(clippy::print_stdout, reason = "the tables are the product")]

use std::time::Duration;

use headgate::{Algorithm, Limit};
use headgate_simulation::{Faults, Report, Scenario, run};

const SHARE_PERCENT: u64 = 10;

fn main() {
    let only = std::env::args().nth(1);
    let tables: [(&str, fn()); 5] = [
        ("subjects", subjects),
        ("holds", holds),
        ("rates", rates),
        ("instances", instances),
        ("exactness", exactness),
    ];
    for (name, print) in tables {
        if only.as_ref().is_none_or(|only| only == name) {
            print();
        }
    }
}

/// A limit that no subject reaches.
fn wide() -> Limit {
    Limit::token_bucket(1_000_000, Duration::from_secs(1)).expect("a limit")
}

fn fleet(instances: usize, subjects: usize, rate: f64, hold: u64, length: u64) -> Report {
    let scenario = Scenario::new(instances, subjects, rate, wide());
    let scenario = scenario.leasing(SHARE_PERCENT, Duration::from_millis(hold));
    run(&Scenario { length: Duration::from_secs(length), ..scenario })
}

fn subjects() {
    println!("## Calls by subjects and hold (10 instances, 10,000 decisions/s each)\n");
    println!(
        "| subjects | hold 200 ms | hold 1 s | lease calls, 1 s | returned subjects, 1 s | over |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for count in [100, 1_000, 10_000, 100_000, 1_000_000] {
        let [short, long] = [200, 1_000].map(|hold| fleet(10, count, 10_000.0, hold, 5));
        println!(
            "| {count} | {:.3} | {:.3} | {:.3} | {:.3} | {} |",
            short.calls_per_decision(),
            long.calls_per_decision(),
            long.lease_calls as f64 / long.decisions as f64,
            long.returned_subjects as f64 / long.decisions as f64,
            short.over + long.over
        );
    }
}

fn holds() {
    println!("\n## Calls by hold (1 instance, 40,000 decisions/s, 1 million subjects)\n");
    println!("| hold, ms | calls a decision |\n| --- | ---: |");
    for hold in [10, 50, 100, 200, 500, 1_000] {
        println!(
            "| {hold} | {:.3} |",
            fleet(1, 1_000_000, 40_000.0, hold, 10).calls_per_decision()
        );
    }
}

fn rates() {
    println!("\n## Calls by decisions of an instance (2 instances, hold 1 s)\n");
    println!("| decisions/s of an instance | 1,000 subjects | 100,000 subjects | over |");
    println!("| --- | ---: | ---: | ---: |");
    for rate in [2_000, 10_000, 40_000, 100_000] {
        let [few, many] = [1_000, 100_000].map(|count| fleet(2, count, f64::from(rate), 1_000, 4));
        let calls = [few, many].map(|report| report.calls_per_decision());
        let over = few.over + many.over;
        println!("| {rate} | {:.3} | {:.3} | {over} |", calls[0], calls[1]);
    }
}

fn instances() {
    println!("\n## Calls by instances (2,000 decisions/s each, 1,000 subjects, hold 1 s)\n");
    println!("| instances | decisions/s | calls a decision | over |\n| --- | ---: | ---: | ---: |");
    for count in [1, 10, 100, 1_000] {
        let report = fleet(count, 1_000, 2_000.0, 1_000, 3);
        let total = count * 2_000;
        println!("| {count} | {total} | {:.3} | {} |", report.calls_per_decision(), report.over);
    }
}

fn exactness() {
    println!("\n## Limits that are exceeded (2,000 decisions/s an instance, 1,000 subjects)\n");
    println!(
        "| algorithm | instances | faults | over | under, % | unanswered, % | withheld, % of the limit | calls a decision |"
    );
    println!("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    let bad = Faults { lost_per_mille: 10, partition: true, kills_per_second: 10 };
    for algorithm in Algorithm::ALL {
        if matches!(algorithm, Algorithm::Calendar | Algorithm::Concurrency) {
            continue;
        }
        for (instances, faults, name) in [
            (1, Faults::default(), "none"),
            (10, Faults::default(), "none"),
            (100, Faults::default(), "none"),
            (10, bad, "all"),
        ] {
            // As many units for each instance, however many there are.
            let units = 200 * instances as u64;
            let limit = Limit::new(algorithm, units, Duration::from_secs(2)).expect("a limit");
            let scenario = Scenario::new(instances, 1_000, 2_000.0, limit);
            let scenario = scenario.leasing(SHARE_PERCENT, Duration::from_millis(200));
            let report = run(&Scenario { faults, length: Duration::from_secs(4), ..scenario });
            println!(
                "| {algorithm} | {instances} | {name} | {} | {:.2} | {:.2} | {:.0} | {:.3} |",
                report.over,
                report.under_percent(),
                100.0 * report.unanswered as f64 / report.decisions as f64,
                100.0 * report.most_withheld as f64 / units as f64,
                report.calls_per_decision()
            );
        }
    }
}
