//! In process: nanoseconds of one thread.

use futures_util::FutureExt as _;
use headgate::{BatchLimiter, Limit};
use headgate_store_memory::MemoryStore;

use super::{Figures, Subjects, Work, now, rows, run};
use crate::options::Options;

const SUBJECTS: usize = 100_000;

pub(super) fn measure(options: Options) -> Vec<(String, Figures)> {
    let names: Vec<String> = (0..SUBJECTS).map(|i| format!("user:{i:06}")).collect();
    // A round takes milliseconds: thinner ones would be noise.
    let count = SUBJECTS;
    let measured = rows().map(|(algorithm, subjects, name)| {
        let limit = algorithm.limit();
        let names = match subjects {
            Subjects::Distinct => &names[..count],
            Subjects::One => &names[..1],
        };
        // Room for every settlement that is remembered.
        let store = || MemoryStore::builder().capacity(4_000_000).build();
        let limiters = [BatchLimiter::new(store()), BatchLimiter::new(store())];
        let of = |work: Work| nanos(&limiters[work as usize], work, names, count, &limit);
        // Subjects are known when timing starts.
        for work in [Work::Check, Work::ReserveAndSettle] {
            of(work);
        }
        (name, Figures::measure(options, of))
    });
    measured.collect()
}

/// Nanoseconds for each of `count` times.
fn nanos(limiter: &BatchLimiter, work: Work, names: &[String], count: usize, limit: &Limit) -> f64 {
    let started = now();
    for name in names.iter().cycle().take(count) {
        // A store in memory never waits.
        run(limiter, work, name, limit).now_or_never().expect("an answer at once");
    }
    started.elapsed().as_nanos() as f64 / count as f64
}
