//! One limit under the traffic of the plots.

use std::{error::Error, time::Duration};

use headgate::{Algorithm, Cost, Key, Limit, ManualClock, Timestamp, limit::Parameters};
use headgate_store_memory::MemoryStore;

pub(crate) const LIMIT: u64 = 100;
pub(crate) const WINDOW: Duration = Duration::from_secs(60);
pub(crate) const SECONDS: u64 = 300;

const SECOND: u64 = 1_000_000;

/// A multiple of the window, so that windows begin at 0 s, 60 s, 120 s of the plot.
const EPOCH: u64 = 1_800_000_000 * SECOND;

/// Requests at a steady pace: start, end and interval, in microseconds.
struct Phase {
    from: u64,
    until: u64,
    every: u64,
}

/// Twice the limit right before a window's boundary, again right after it, then twice the rate.
const PHASES: [Phase; 3] = [
    Phase { from: 58 * SECOND, until: 60 * SECOND, every: SECOND / 100 },
    Phase { from: 60 * SECOND, until: 62 * SECOND, every: SECOND / 100 },
    Phase { from: 100 * SECOND, until: SECONDS * SECOND, every: SECOND * 3 / 10 },
];

/// The requests that a limit admitted; times are microseconds since the start of the plot.
pub(crate) struct Run {
    pub(crate) algorithm: Algorithm,
    /// Capacity of a bucket, if it differs from the limit.
    pub(crate) burst: Option<u64>,
    pub(crate) asked: Vec<u64>,
    pub(crate) admitted: Vec<u64>,
}

// === impl Run ===

impl Run {
    pub(crate) fn of(limit: &Limit) -> Result<Self, Box<dyn Error>> {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(&clock).build();
        let key = Key::new("subject")?;
        let asked: Vec<u64> = PHASES.iter().flat_map(Phase::requests).collect();
        let mut admitted = Vec::new();
        for at in &asked {
            clock.set(Timestamp::from_micros(EPOCH + at));
            if store.acquire(key, limit, Cost::ONE)?.allowed {
                admitted.push(*at);
            }
        }
        let burst = match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                Some(bucket.burst().into())
            }
            _ => None,
        };
        let burst = burst.filter(|burst| *burst != LIMIT);
        Ok(Self { algorithm: limit.algorithm(), burst, asked, admitted })
    }

    /// Maximum number of admitted requests in any window.
    pub(crate) fn peak(&self) -> usize {
        self.admitted.iter().map(|at| self.in_window_until(*at)).max().unwrap_or(0)
    }

    /// Number of admitted requests in the window that ends with this second.
    pub(crate) fn in_last_window(&self, second: u64) -> usize {
        self.in_window_until(second * SECOND)
    }

    fn in_window_until(&self, at: u64) -> usize {
        let from = (at + 1).saturating_sub(WINDOW.as_micros() as u64);
        between(&self.admitted, from, at + 1)
    }
}

// === impl Phase ===

impl Phase {
    fn requests(&self) -> impl Iterator<Item = u64> {
        (self.from..self.until).step_by(self.every as usize)
    }
}

/// Number of times in each phase.
pub(crate) fn by_phase(times: &[u64]) -> [usize; 3] {
    PHASES.map(|phase| between(times, phase.from, phase.until))
}

/// Number of times in each interval of `seconds`.
pub(crate) fn per(seconds: u64, times: &[u64]) -> impl Iterator<Item = usize> {
    let bins = 0..SECONDS / seconds;
    bins.map(move |bin| between(times, bin * seconds * SECOND, (bin + 1) * seconds * SECOND))
}

fn between(times: &[u64], from: u64, until: u64) -> usize {
    times.partition_point(|at| *at < until) - times.partition_point(|at| *at < from)
}
