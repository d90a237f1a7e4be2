//! Ids that are no policy's, for a second.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use headgate::Timestamp;

use crate::QuotaId;

/// Ids that were looked up in vain, so that guessing ids does not reach the database each time.
#[derive(Debug, Default)]
pub(super) struct Strangers(Mutex<HashMap<QuotaId, Timestamp>>);

/// How many are remembered.
const MAX: usize = 10_000;

/// For how long, in microseconds.
const FOR: u64 = 1_000_000;

impl Strangers {
    /// Whether this id was looked up in vain a moment ago.
    pub(super) fn knows(&self, id: &QuotaId, now: Timestamp) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(id).is_some_and(|seen| now >= *seen && now.since(*seen) < FOR)
    }

    /// Notes that it was.
    pub(super) fn remember(&self, id: &QuotaId, now: Timestamp) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= MAX {
            ids.clear();
        }
        ids.insert(id.clone(), now);
    }
}
