//! The limits under which subjects were charged, by the space of their keys.
//!
//! A cell of the sketch holds a share of the limit that was charged, but not which one that was. A
//! slot counts units instead: if half of 1,000 moved to a slot as half of 10, 995 of 1,000 would be
//! left. So a subject takes its usage along only if all of its key space was charged under the same
//! limit. Otherwise, as with limits by plan, it stays in the sketch until its usage there has
//! ended.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use headgate::{Key, Limit, Timestamp, limit::Parameters};

use crate::fingerprint::Shape;

/// For each key space and shape, the millisecond until which its usage counts (42 bits) and a hash
/// of the limit (22 bits). Spaces that share a cell have several limits, unless these are the same.
#[derive(Debug)]
pub(super) struct ChargedLimits {
    random: RandomState,
    spaces: Box<[AtomicU64]>,
}

const HASH_BITS: u32 = 22;
const HASH: u64 = (1 << HASH_BITS) - 1;
const MAX_MILLIS: u64 = (1 << (u64::BITS - HASH_BITS)) - 1;

/// Instead of a hash.
const SEVERAL: u64 = 0;

impl ChargedLimits {
    /// Cells: 8 KiB in all.
    const SPACES: u64 = 1_024;

    /// Records a charge under `limit` that counts until `until`.
    pub(super) fn record(&self, key: Key<'_>, limit: &Limit, until: Timestamp, now: Timestamp) {
        let charged = self.hash(limit);
        let millis = until.as_micros().div_ceil(1_000).min(MAX_MILLIS);
        let merge = |cell: u64| {
            let is_only = has_ended(cell, now) || cell & HASH == charged;
            let hash = if is_only { charged } else { SEVERAL };
            Some(millis.max(cell >> HASH_BITS) << HASH_BITS | hash)
        };
        let _ = self.cell(key, limit).fetch_update(Relaxed, Relaxed, merge);
    }

    /// Returns `true` if no other limit was charged in the space of `key`.
    pub(super) fn is_only(&self, key: Key<'_>, limit: &Limit, now: Timestamp) -> bool {
        let cell = self.cell(key, limit).load(Relaxed);
        has_ended(cell, now) || cell & HASH == self.hash(limit)
    }

    fn cell(&self, key: Key<'_>, limit: &Limit) -> &AtomicU64 {
        let hash = self.random.hash_one((key.space(), Shape::of(limit)));
        &self.spaces[(hash % Self::SPACES) as usize]
    }

    /// Hash of what a share of the limit is multiplied by.
    fn hash(&self, limit: &Limit) -> u64 {
        let units = match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                bucket.rate().into()
            }
            _ => limit.capacity(),
        };
        (self.random.hash_one(units) & HASH).max(SEVERAL + 1)
    }
}

impl Default for ChargedLimits {
    fn default() -> Self {
        let spaces = (0..Self::SPACES).map(|_| AtomicU64::new(0)).collect();
        Self { random: RandomState::new(), spaces }
    }
}

const fn has_ended(cell: u64, now: Timestamp) -> bool {
    (cell >> HASH_BITS) * 1_000 <= now.as_micros()
}
