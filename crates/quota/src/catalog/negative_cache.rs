//! A cache of ids that do not exist.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use headgate::Timestamp;

use crate::QuotaId;

/// Ids that were not found recently, so that guessing ids does not reach the database each time.
#[derive(Debug, Default)]
pub(super) struct NegativeCache(Mutex<HashMap<QuotaId, Timestamp>>);

/// Maximum number of ids.
const MAX_IDS: usize = 10_000;

/// Lifetime of an entry in microseconds.
const TTL: u64 = 1_000_000;

impl NegativeCache {
    /// Returns `true` if this id was not found recently.
    pub(super) fn contains(&self, id: &QuotaId, now: Timestamp) -> bool {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.get(id).is_some_and(|added| now >= *added && now.since(*added) < TTL)
    }

    /// Records that this id was not found.
    pub(super) fn insert(&self, id: &QuotaId, now: Timestamp) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() >= MAX_IDS {
            ids.clear();
        }
        ids.insert(id.clone(), now);
    }
}
