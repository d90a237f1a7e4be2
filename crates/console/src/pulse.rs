//! Decisions in each of the last seconds.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError, RwLock},
};

use headgate::Timestamp;
use headgate_stores::Probe;
use headgate_telemetry::metrics::Totals;

/// Beats that are kept: five minutes.
const KEPT: usize = 300;

/// The last beats, and the last error of the store.
#[derive(Default)]
pub struct Pulse {
    beats: Mutex<VecDeque<Beat>>,
    store_error: RwLock<Option<String>>,
}

/// The decisions of about a second.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// Sequence number.
    pub seq: u64,
    /// End of the interval.
    pub at: Timestamp,
    /// Its length.
    pub micros: u64,
    /// Its decisions.
    pub totals: Totals,
}

// === impl Pulse ===

impl Pulse {
    /// Returns the beats after this position, oldest first.
    pub fn after(&self, seq: u64) -> Vec<Beat> {
        let beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        beats.iter().filter(|beat| beat.seq > seq).copied().collect()
    }

    /// The error of the last probe of the store, if it failed.
    pub fn store_error(&self) -> Option<String> {
        self.store_error.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn keep(&self, beat: Beat) {
        let mut beats = self.beats.lock().unwrap_or_else(PoisonError::into_inner);
        if beats.len() == KEPT {
            beats.pop_front();
        }
        beats.push_back(beat);
    }

    pub(crate) async fn probe(&self, store: &Probe) {
        let error = store.ask().await.err().map(|error| error.to_string());
        *self.store_error.write().unwrap_or_else(PoisonError::into_inner) = error;
    }
}
