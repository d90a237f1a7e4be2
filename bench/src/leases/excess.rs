//! What four instances admit of one limit: ours with leases, and limitador's with its cached Redis.

use std::{env, process::Command, sync::Arc, time::Duration};

use headgate::{Batch, Limit, Store, Verb};
use tokio::{
    task::JoinHandle,
    time::{Instant, interval},
};

use super::{Bench, Leased, check, tenth};
use crate::report::{Table, Verdict};

const INSTANCES: usize = 4;
const LIMIT: u64 = 20_000;
const LENGTH: Duration = Duration::from_secs(4);
/// No unit returns while it runs.
const WINDOW: Duration = Duration::from_hours(24);

/// Requests of each instance.
#[derive(Clone, Copy, Debug)]
enum Rate {
    PerMillisecond(u64),
    Most,
}

pub(super) fn report(bench: &Bench) {
    let mut table = Table::new(&["four instances, a limit of 20,000", "admitted", "over"]);
    let mut worst = 0;
    // At five in a millisecond, they reach the limit together after a second.
    for (rate, name) in
        [(Rate::PerMillisecond(5), "5,000 requests/s each"), (Rate::Most, "as fast as they can")]
    {
        let mut row = |who, admitted: u64| {
            let over = 100.0 * admitted.saturating_sub(LIMIT) as f64 / LIMIT as f64;
            table.row([format!("{who}, {name}"), admitted.to_string(), format!("{over:.0} %")]);
        };
        let instances = (0..INSTANCES).map(|_| bench.instance()).collect();
        let admitted = bench.runtime.block_on(admitted(instances, rate));
        row("headgate, leased", admitted);
        worst = worst.max(admitted);
        bench.redis.cli(&["FLUSHALL"]);
        if let Some(admitted) = admitted_by_limitador(&bench.redis.url(), rate) {
            row("limitador, cached", admitted);
        }
        bench.redis.cli(&["FLUSHALL"]);
    }
    println!("{table}");
    let bound = "nothing admitted over the limit";
    println!("{}", Verdict::new(bound, worst <= LIMIT, format!("{worst} of {LIMIT}")));
}

async fn admitted(instances: Vec<Arc<Leased>>, rate: Rate) -> u64 {
    let tasks = instances.into_iter().map(|instance| {
        tokio::spawn(async move {
            let limit = Limit::fixed_window(LIMIT, WINDOW).expect("a limit");
            let extra = tenth(&limit, Duration::from_millis(200));
            let batch = Batch::from(check("excess", &limit).with_extra(extra));
            let (mut ticks, end) = (interval(Duration::from_millis(1)), Instant::now() + LENGTH);
            let mut admitted = 0;
            while Instant::now() < end {
                let requests = match rate {
                    Rate::PerMillisecond(requests) => {
                        ticks.tick().await;
                        requests
                    }
                    Rate::Most => {
                        tokio::task::yield_now().await;
                        32
                    }
                };
                for _ in 0..requests {
                    let answer = instance.apply(Verb::Acquire, &batch).await.expect("an answer");
                    admitted += u64::from(answer[0].allowed);
                }
            }
            admitted
        })
    });
    sum(tasks.collect()).await
}

async fn sum(tasks: Vec<JoinHandle<u64>>) -> u64 {
    let mut admitted = 0;
    for task in tasks {
        admitted += task.await.expect("a task panicked");
    }
    admitted
}

/// The same by limitador, if `bench/run` could build its program (`limitador-cached`).
fn admitted_by_limitador(redis: &str, rate: Rate) -> Option<u64> {
    let mut command = Command::new(env::var_os("LIMITADOR_CACHED_BIN")?);
    command.arg(redis);
    if let Rate::PerMillisecond(requests) = rate {
        command.arg(requests.to_string());
    }
    let output = command.output().expect("limitador runs");
    let admitted = String::from_utf8_lossy(&output.stdout).trim().parse();
    Some(admitted.expect("limitador's instances print what they admit"))
}
