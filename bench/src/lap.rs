//! One timed run of one contestant.

use std::{sync::Barrier, thread, time::Instant};

use crate::{contestant::Contestant, stream::Keys};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Lap {
    /// Nanoseconds per decision, by each thread's own clock.
    pub(crate) nanos: f64,
    /// The share of decisions that admitted.
    pub(crate) admitted: f64,
}

/// Decides on all `keys`, divided among `threads` that start together.
pub(crate) fn run(contestant: &dyn Contestant, keys: &Keys<'_>, threads: usize) -> Lap {
    let start = Barrier::new(threads);
    let results: Vec<(f64, usize)> = thread::scope(|scope| {
        let work = |i| {
            let (start, part) = (&start, keys.part(i, threads));
            scope.spawn(move || timed(contestant, part, start))
        };
        let workers: Vec<_> = (0..threads).map(work).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker panicked")).collect()
    });
    let total = keys.len() as f64;
    Lap {
        nanos: results.iter().map(|(nanos, _)| nanos).sum::<f64>() / total,
        admitted: results.iter().map(|(_, admitted)| *admitted as f64).sum::<f64>() / total,
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures real time")]
fn timed(contestant: &dyn Contestant, keys: Keys<'_>, start: &Barrier) -> (f64, usize) {
    start.wait();
    let started = Instant::now();
    let admitted = contestant.decide(keys, 1);
    (started.elapsed().as_nanos() as f64, admitted)
}
