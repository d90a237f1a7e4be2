//! Decisions in each of the last seconds. One task samples once a second for all open pages.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use headgate::Timestamp;
use headgate_stores::Probe;
use headgate_telemetry::metrics::Totals;
use tokio::time::{self, MissedTickBehavior};

use super::Console;

/// Time between two samples.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// Beats that are kept: five minutes.
const KEPT: usize = 300;

/// Beats between two probes of the store.
const PROBE_EVERY: u64 = 3;

/// The last beats, and the last error of the store.
#[derive(Default)]
pub(crate) struct Pulse {
    beats: Mutex<VecDeque<Beat>>,
    store_error: RwLock<Option<String>>,
}

/// The decisions of about a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// Sequence number.
    pub(crate) seq: u64,
    /// End of the interval.
    pub(crate) at: Timestamp,
    /// Its length.
    pub(crate) micros: u64,
    pub(crate) totals: Totals,
}

// === impl Pulse ===

impl Pulse {
    /// Returns the beats after this position, oldest first.
    pub(crate) fn after(&self, seq: u64) -> Vec<Beat> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().filter(|beat| beat.seq > seq).copied().collect()
    }

    /// The error of the last probe of the store, if it failed.
    pub(crate) fn store_error(&self) -> Option<String> {
        self.store_error.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn keep(&self, beat: Beat) {
        let mut beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        if beats.len() == KEPT {
            beats.pop_front();
        }
        beats.push_back(beat);
    }

    async fn probe(&self, store: &Probe) {
        let error = store.ask().await.err().map(|error| error.to_string());
        *self.store_error.write().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// The task that samples.
pub(crate) struct Sampler {
    console: Arc<Console>,
    store: Probe,
    /// All decisions so far.
    totals: Box<dyn Fn() -> Totals + Send + Sync>,
}

impl Sampler {
    pub(crate) fn new(
        console: Arc<Console>,
        store: Probe,
        totals: impl Fn() -> Totals + Send + Sync + 'static,
    ) -> Self {
        Self { console, store, totals: Box::new(totals) }
    }

    /// Samples once a second. Never returns.
    pub(crate) async fn run(self) {
        let Self { console, store, totals } = self;
        let (mut before, mut began) = (totals(), console.now());
        let mut ticks = time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for seq in 1.. {
            if seq % PROBE_EVERY == 1 {
                console.pulse.probe(&store).await;
            }
            ticks.tick().await;
            let (after, at) = (totals(), console.now());
            let micros = at.since(began).max(1);
            console.pulse.keep(Beat { seq, at, micros, totals: after.since(&before) });
            (before, began) = (after, at);
        }
    }
}
