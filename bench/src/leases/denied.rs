//! A subject that is denied as often as possible.

use std::time::Duration;

use headgate::Limit;

use super::{
    Bench, Questions,
    hot::{MOST_CALLS, values},
    tenth,
};
use crate::report::{Table, Verdict, median};

pub(super) fn report(bench: &Bench) {
    let limit = Limit::token_bucket(100, Duration::from_hours(1)).expect("a limit");
    let extra = tenth(&limit, Duration::from_millis(200));
    let mut table = Table::new(&["a denied subject", "decisions/s", "Redis calls/s"]);
    let mut verdicts = Vec::new();
    for (name, extra) in [("without leases", None), ("leased", Some(extra))] {
        let questions = Questions::one(&format!("denied, {name}"), limit.clone(), extra);
        let instance = bench.instance();
        let rounds: Vec<_> =
            (0..bench.options.rounds()).map(|_| bench.round(&instance, &questions)).collect();
        assert!(rounds.iter().all(|round| round.admitted < 100), "it is denied");
        let calls = median(&values(&rounds, |round| round.calls));
        let rate = median(&values(&rounds, |round| round.rate));
        table.row([name.to_owned(), format!("{rate:.0}"), format!("{calls:.1}")]);
        let bound = format!("at most 20 Redis calls a second for a denied subject, {name}");
        verdicts.push(Verdict::new(bound, calls <= MOST_CALLS, format!("{calls:.1}")));
    }
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
    println!();
}
