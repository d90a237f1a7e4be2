//! One hot subject: in memory, on Redis, and on Redis with leases.

use std::{sync::Arc, time::Duration};

use headgate::Limit;
use headgate_store_memory::MemoryStore;

use super::{Bench, Questions, Round, tenth};
use crate::report::{Ratio, Table, Verdict, median};

/// Redis calls per second of an instance.
pub(super) const MOST_CALLS: f64 = 20.0;

pub(super) fn report(bench: &Bench) {
    // More than two cores use up in all rounds.
    let limit = Limit::token_bucket(4_000_000_000, Duration::from_mins(1)).expect("a limit");
    let extra = tenth(&limit, Duration::from_millis(200));
    let plain = Questions::one("hot", limit.clone(), None);
    let leased = Questions::one("hot-leased", limit, Some(extra));
    let (memory, redis) = (Arc::new(MemoryStore::default()), Arc::new(bench.store()));
    let instance = bench.instance();
    let mut rounds: [Vec<Round>; 3] = Default::default();
    for _ in 0..bench.options.rounds() {
        rounds[0].push(bench.round(&memory, &plain));
        rounds[1].push(bench.round(&redis, &plain));
        rounds[2].push(bench.round(&instance, &leased));
    }
    let header = ["one hot subject, library", "of memory", "decisions/s", "Redis calls/s"];
    let mut table = Table::new(&header);
    let rates = rounds.each_ref().map(|rounds| values(rounds, |round| round.rate));
    for (name, (rounds, rate)) in
        ["in memory", "on Redis", "on Redis, leased"].into_iter().zip(rounds.iter().zip(&rates))
    {
        table.row([
            name.to_owned(),
            Ratio::per_round(rate, &rates[0]).to_string(),
            format!("{:.0}", median(rate)),
            format!("{:.1}", median(&values(rounds, |round| round.calls))),
        ]);
    }
    println!("{table}");
    let calls = median(&values(&rounds[2], |round| round.calls));
    let bound = "at most 20 Redis calls a second for a hot subject, library";
    println!("{}\n", Verdict::new(bound, calls <= MOST_CALLS, format!("{calls:.1}")));
}

pub(super) fn values(rounds: &[Round], pick: impl Fn(&Round) -> f64) -> Vec<f64> {
    rounds.iter().map(pick).collect()
}
