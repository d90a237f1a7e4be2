//! What four instances with leases admit of one limit.

use std::{sync::Arc, time::Duration};

use headgate::{Batch, Limit, Store, Verb};
use tokio::{
    task::JoinHandle,
    time::{Interval, interval},
};

use super::{Bench, Leased, check, tenth};
use crate::report::{Table, Verdict};

const INSTANCES: usize = 4;
const LIMIT: u64 = 20_000;
/// Requests of an instance in a millisecond: together, they reach the limit after a second.
const PER_MILLISECOND: u64 = 5;
const LENGTH: Duration = Duration::from_secs(4);
/// No unit returns while it runs.
const WINDOW: Duration = Duration::from_hours(24);

pub(super) fn report(bench: &Bench) {
    let instances: Vec<Arc<Leased>> = (0..INSTANCES).map(|_| bench.instance()).collect();
    let admitted = bench.runtime.block_on(admitted(instances));
    let mut table = Table::new(&["four instances, a limit of 20,000", "admitted", "over"]);
    let over = 100.0 * admitted.saturating_sub(LIMIT) as f64 / LIMIT as f64;
    table.row(["headgate, leased".to_owned(), admitted.to_string(), format!("{over:.1} %")]);
    println!("{table}");
    let bound = "nothing admitted over the limit";
    println!("{}", Verdict::new(bound, admitted <= LIMIT, format!("{admitted} of {LIMIT}")));
}

async fn admitted(instances: Vec<Arc<Leased>>) -> u64 {
    let tasks = instances.into_iter().map(|instance| {
        tokio::spawn(async move {
            let limit = Limit::fixed_window(LIMIT, WINDOW).expect("a limit");
            let extra = tenth(&limit, Duration::from_millis(200));
            let batch = Batch::from(check("excess", &limit).with_extra(extra));
            let (mut admitted, mut requests) = (0, Requests::new());
            while requests.next().await {
                let answer = instance.apply(Verb::Acquire, &batch).await.expect("an answer");
                admitted += u64::from(answer[0].allowed);
            }
            admitted
        })
    });
    sum(tasks.collect()).await
}

/// Requests at a steady pace, for a while.
struct Requests {
    ticks: Interval,
    made: u64,
}

impl Requests {
    fn new() -> Self {
        Self { ticks: interval(Duration::from_millis(1)), made: 0 }
    }

    /// Waits for the next one; returns `false` after the last.
    async fn next(&mut self) -> bool {
        if self.made.is_multiple_of(PER_MILLISECOND) {
            self.ticks.tick().await;
        }
        self.made += 1;
        u128::from(self.made) <= LENGTH.as_millis() * u128::from(PER_MILLISECOND)
    }
}

async fn sum(tasks: Vec<JoinHandle<u64>>) -> u64 {
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.expect("a task panicked");
    }
    admitted
}
