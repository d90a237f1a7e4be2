//! A million subjects, by Zipf's law and uniform, over the hold.

use std::{sync::Arc, time::Duration};

use headgate::{Extra, Limit};

use super::{Bench, Questions, Round, hot::values, tenth};
use crate::{
    random::Random,
    report::{Ratio, Table, Verdict, median},
    zipf::Zipf,
};

const SUBJECTS: usize = 1_000_000;
const HOLDS_MS: [u64; 4] = [50, 200, 500, 1_000];
const MOST_CALLS_PER_DECISION: f64 = 0.7;
const NOISE: f64 = 0.95;

pub(super) fn report(bench: &Bench) {
    let zipf = Arc::new(Zipf::new(SUBJECTS));
    let by_rank = move |random: &mut Random| zipf.draw(random);
    let holds = HOLDS_MS.map(Some);
    let all = [None].into_iter().chain(holds);
    let [first, .., last] = &measure(bench, "Zipf", all, by_rank)[..] else { return };
    let calls = median(&values(last, |round| round.calls_per_decision));
    let bound = "Zipf, hold of 1 s: at most 0.7 Redis calls a decision";
    println!("{}", Verdict::new(bound, calls <= MOST_CALLS_PER_DECISION, format!("{calls:.2}")));
    let faster = over(last, first);
    let bound = "Zipf, hold of 1 s: faster than without leases";
    println!("{}\n", Verdict::new(bound, faster.median > 1.0, faster.to_string()));

    let uniform = |random: &mut Random| random.below(SUBJECTS);
    let [without, with] = &measure(bench, "uniform", [None, Some(1_000)], uniform)[..] else {
        return;
    };
    let ratio = over(with, without);
    let bound = "uniform, hold of 1 s: no slower than without, within 5 %";
    println!("{}\n", Verdict::new(bound, ratio.median >= NOISE, ratio.to_string()));
}

/// Measures each hold in turns, and prints a row for each.
fn measure(
    bench: &Bench,
    name: &str,
    holds: impl IntoIterator<Item = Option<u64>>,
    draw: impl Fn(&mut Random) -> usize + Clone + Send + Sync + 'static,
) -> Vec<Vec<Round>> {
    let limit = Limit::token_bucket(1_000_000, Duration::from_mins(1)).expect("a limit");
    let extra = |ms| tenth(&limit, Duration::from_millis(ms));
    let questions = |extra: Option<Extra>| {
        let names = (0..SUBJECTS).map(|n| format!("{name}:{n}")).collect();
        let draw = Box::new(draw.clone());
        Arc::new(Questions { names, limit: limit.clone(), extra, draw })
    };
    let all: Vec<_> = holds.into_iter().map(|ms| (ms, questions(ms.map(extra)))).collect();
    let mut rounds = vec![Vec::new(); all.len()];
    for round in 0..bench.options.rounds() {
        for i in 0..all.len() {
            // Rotate the order, so that none always follows the same one.
            let at = (i + round) % all.len();
            // A new one, which starts without knowing any pace.
            let instance = bench.instance();
            rounds[at].push(bench.round(&instance, &all[at].1));
            bench.runtime.block_on(instance.give_back_all());
        }
    }
    let title = format!("1 million subjects, {name}");
    let header =
        [&title, "of no leases", "decisions/s", "calls a decision", "Redis, us a decision"];
    let mut table = Table::new(&header);
    for ((ms, _), these) in all.iter().zip(&rounds) {
        table.row([
            ms.map_or("no leases".to_owned(), |ms| format!("hold {ms} ms")),
            over(these, &rounds[0]).to_string(),
            format!("{:.0}", median(&values(these, |round| round.rate))),
            format!("{:.3}", median(&values(these, |round| round.calls_per_decision))),
            format!("{:.1}", median(&values(these, |round| round.redis_micros))),
        ]);
    }
    println!("{table}");
    rounds
}

fn over(these: &[Round], others: &[Round]) -> Ratio {
    Ratio::per_round(&values(these, |round| round.rate), &values(others, |round| round.rate))
}
