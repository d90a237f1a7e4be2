//! Reservations: a reserve and its settlement, against one check.

mod memory;
mod redis;
mod server;

use std::time::{Duration, Instant};

use headgate::{Batch, BatchLimiter, Check, Cost, Key, Limit, Spent};

use crate::{
    options::Options,
    report::{Ratio, Table, Verdict, median},
};

const MOST: f64 = 2.2;

/// Units that are reserved, and units that are spent of them.
const RESERVED: u64 = 3;
const SPENT: u64 = 2;
const LEASE: Duration = Duration::from_secs(30);

/// The same limit under two algorithms: high enough that everything is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    TokenBucket,
    FixedWindow,
}

/// How many subjects there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subjects {
    Distinct,
    One,
}

/// What is done with each subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    Check,
    ReserveAndSettle,
}

/// Figures of one row, by round: the higher, the slower.
struct Figures {
    check: Vec<f64>,
    reservation: Vec<f64>,
}

pub(crate) fn report(options: Options) {
    println!("## Reservations: reserve and settle, against one check\n");
    let header = ["store", "subjects", "reserve + settle / check", "check", "reserve + settle"];
    let mut table = Table::new(&header);
    let mut verdicts = Vec::new();
    let mut skipped = Vec::new();
    let measured = [
        ("memory", "ns", Ok(memory::measure(options))),
        ("Redis", "us", redis::measure(options)),
        ("server, memory", "us", server::in_memory(options)),
        ("server, Redis", "us", server::on_redis(options)),
    ];
    for (store, unit, rows) in measured {
        match rows {
            Ok(rows) => {
                for (name, figures) in &rows {
                    table.row(figures.row(store, name, unit));
                }
                verdicts.push(verdict(store, &rows));
            }
            Err(reason) => skipped.push(format!("skipped {store}: {reason}")),
        }
    }
    println!("{table}");
    for verdict in verdicts {
        println!("{verdict}");
    }
    for skipped in skipped {
        println!("{skipped}");
    }
    println!(
        "\n{} alternating rounds; a ratio is the median of the rounds' ratios (least..most). Both sides are",
        options.rounds()
    );
    println!(
        "`BatchLimiter` on the same store: a check of {RESERVED} units, or a reservation of {RESERVED} that is settled"
    );
    println!(
        "for {SPENT}. On Redis, one over throughput with {} in flight on one core. Servers over REST: CPU",
        redis::IN_FLIGHT
    );
    println!("of the server and of Redis.\n");
}

/// Does `work` once with a subject.
async fn run(limiter: &BatchLimiter, work: Work, name: &str, limit: &Limit) {
    let key = Key::new(name).expect("a key");
    let cost = Cost::new(RESERVED).expect("a cost");
    let batch = Batch::from(Check::new(key, limit, cost).expect("a cost that fits"));
    match work {
        Work::Check => {
            let decision = limiter.check(&batch).await.expect("an answer");
            assert!(decision.allowed, "the limit is too low for the bench");
        }
        Work::ReserveAndSettle => {
            let (reservation, _) = limiter.reserve(&batch, LEASE).await.expect("a reservation");
            let spent = Spent::within_the_limit(SPENT);
            let settled = limiter.settle(&reservation, spent).await.expect("a settlement");
            assert_eq!(settled[0].settled, SPENT);
        }
    }
}

fn verdict(store: &str, rows: &[(String, Figures)]) -> Verdict {
    let ratios = rows.iter().map(|(name, figures)| (name, figures.ratio().median));
    let most = ratios.max_by(|(_, a), (_, b)| a.total_cmp(b));
    let (name, ratio) = most.expect("a bench has rows");
    let bound = format!("reserve and settle take at most {MOST}x of a check, {store}");
    Verdict::new(bound, ratio <= MOST, format!("at most {ratio:.2}x ({name})"))
}

// === impl Algorithm ===

impl Algorithm {
    const ALL: [Self; 2] = [Self::TokenBucket, Self::FixedWindow];

    fn limit(self) -> Limit {
        let (number, window) = (4_000_000, Duration::from_mins(10));
        let limit = match self {
            Self::TokenBucket => {
                Limit::token_bucket(100, window).and_then(|limit| limit.with_burst(number))
            }
            Self::FixedWindow => Limit::fixed_window(number, window),
        };
        limit.expect("a limit")
    }

    const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token bucket",
            Self::FixedWindow => "fixed window",
        }
    }
}

// === impl Subjects ===

impl Subjects {
    const ALL: [Self; 2] = [Self::Distinct, Self::One];

    const fn name(self) -> &'static str {
        match self {
            Self::Distinct => "distinct",
            Self::One => "one",
        }
    }
}

// === impl Figures ===

impl Figures {
    /// Measures both kinds of work alternately.
    fn measure(options: Options, mut of: impl FnMut(Work) -> f64) -> Self {
        let mut figures = Self { check: Vec::new(), reservation: Vec::new() };
        for round in 0..options.rounds() {
            let order = [Work::Check, Work::ReserveAndSettle];
            for i in 0..order.len() {
                let work = order[(i + round) % order.len()];
                let figure = of(work);
                match work {
                    Work::Check => figures.check.push(figure),
                    Work::ReserveAndSettle => figures.reservation.push(figure),
                }
            }
        }
        figures
    }

    fn ratio(&self) -> Ratio {
        Ratio::per_round(&self.reservation, &self.check)
    }

    fn row(&self, store: &str, name: &str, unit: &str) -> [String; 5] {
        let figure = |figures: &[f64]| format!("{:.1} {unit}", median(figures));
        let (check, reservation) = (figure(&self.check), figure(&self.reservation));
        [store.to_owned(), name.to_owned(), self.ratio().to_string(), check, reservation]
    }
}

/// The name of every row.
fn rows() -> impl Iterator<Item = (Algorithm, Subjects, String)> {
    Algorithm::ALL.into_iter().flat_map(|algorithm| {
        Subjects::ALL.into_iter().map(move |subjects| {
            (algorithm, subjects, format!("{}, {}", algorithm.name(), subjects.name()))
        })
    })
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn now() -> Instant {
    Instant::now()
}
