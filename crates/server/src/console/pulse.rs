//! What was decided in each of the last seconds. One task looks once a second, however many watch.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::Duration,
};

use headgate::Timestamp;
use tokio::time::{self, MissedTickBehavior};

use crate::{metrics::Totals, services::Services};

/// How often it looks.
pub(crate) const EVERY: Duration = Duration::from_secs(1);

/// How many beats are kept: five minutes.
const KEPT: usize = 300;

/// After how many beats the store is asked whether it is there.
const PROBE_EVERY: u64 = 3;

/// The last beats, and how those are on whom the server depends.
#[derive(Default)]
pub(crate) struct Pulse {
    beats: Mutex<VecDeque<Beat>>,
    store_error: RwLock<Option<String>>,
}

/// What was decided in about a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beat {
    /// Its place: later ones have larger places.
    pub(crate) seq: u64,
    /// When it ended.
    pub(crate) at: Timestamp,
    /// How long it was.
    pub(crate) micros: u64,
    pub(crate) totals: Totals,
}

// === impl Pulse ===

impl Pulse {
    /// The beats after this place, the oldest first.
    pub(crate) fn after(&self, seq: u64) -> Vec<Beat> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().filter(|beat| beat.seq > seq).copied().collect()
    }

    /// Why the store did not answer when it was last asked.
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

    async fn probe(&self, services: &Services) {
        let answer = services.probe.ask().await;
        services.metrics.store_is(answer.is_ok());
        let error = answer.err().map(|error| error.to_string());
        *self.store_error.write().unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// Looks once a second, for ever.
pub(crate) async fn run(services: Arc<Services>) {
    let pulse = &services.console.pulse;
    let (mut before, mut began) = (services.metrics.totals(), services.clock.now());
    let mut ticks = time::interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for seq in 1.. {
        if seq % PROBE_EVERY == 1 {
            pulse.probe(&services).await;
        }
        ticks.tick().await;
        let (after, at) = (services.metrics.totals(), services.clock.now());
        let micros = at.since(began).max(1);
        pulse.keep(Beat { seq, at, micros, totals: after.since(&before) });
        (before, began) = (after, at);
    }
}
