//! A sketch that counts new subjects while the store is full.
//!
//! A secret hash maps every new subject to one cell in each of four rows. A cell holds an upper
//! bound of what each subject mapped to it has used, as a share of its limit. The lowest of the
//! four bounds decides, so one cell with room is enough; an admission then raises all four to at
//! least the new usage (a count-min sketch with conservative update). Since no bound is ever below
//! a subject's real usage, no subject gets more than its limit. A subject whose four cells were all
//! filled by others is denied although it has used nothing.
//!
//! | module | contents |
//! |---|---|
//! | `group` | the limits that share a table |
//! | `level` | usage that decreases steadily or ends with a window, as a point in time |
//! | `held` | usage of sliding windows, held until a window has passed without any |
//! | `charged_limits` | which usage may move to a slot |

mod charged_limits;
mod group;
mod held;
mod level;

use std::{
    array,
    collections::hash_map::RandomState,
    hash::BuildHasher,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use headgate::{Check, Limit, State, Timestamp};

use self::{
    charged_limits::ChargedLimits,
    group::{Encoding, Group},
};
use crate::fingerprint::Fingerprint;

/// Shared usage of all subjects without a slot.
///
/// Cells are read and raised without a lock: the lock of a subject's shard keeps two decisions
/// about the same subject apart, and different subjects only ever raise each other's cells.
#[derive(Debug)]
pub(crate) struct Overflow {
    /// One for each row, so that clients cannot predict which subjects share a cell.
    secrets: [u64; Self::ROWS],
    /// Cells in a row.
    width: usize,
    /// Allocated for the first new subject of the group.
    tables: [OnceLock<Box<[AtomicU64]>>; Group::COUNT],
    /// Latest time at which any cell is in use, in microseconds.
    live_until: AtomicU64,
    charged_limits: ChargedLimits,
    decisions: AtomicU64,
}

impl Overflow {
    /// Cells of a subject.
    pub(crate) const ROWS: usize = 4;

    /// Fewest cells in a row: 4 KiB in all.
    const MIN_WIDTH: usize = 16;

    /// Tables of at most `bytes` together.
    pub(crate) fn new(bytes: usize) -> Self {
        let random = RandomState::new();
        let cells = bytes / (Group::COUNT * Self::ROWS * size_of::<AtomicU64>());
        Self {
            secrets: array::from_fn(|row| random.hash_one(row)),
            width: cells.max(Self::MIN_WIDTH),
            tables: [const { OnceLock::new() }; Group::COUNT],
            live_until: AtomicU64::new(0),
            charged_limits: ChargedLimits::default(),
            decisions: AtomicU64::new(0),
        }
    }

    /// Returns `true` if any usage still counts.
    #[inline]
    pub(crate) fn is_live(&self, now: Timestamp) -> bool {
        self.live_until.load(Relaxed) >= now.as_micros()
    }

    /// Number of decisions.
    pub(crate) fn decisions(&self) -> u64 {
        self.decisions.load(Relaxed)
    }

    pub(crate) fn count_decision(&self) {
        self.decisions.fetch_add(1, Relaxed);
    }

    /// Upper bound of the subject's usage.
    pub(crate) fn usage(&self, fingerprint: Fingerprint, limit: &Limit, now: Timestamp) -> State {
        match (self.lowest(fingerprint, limit, now), Group::of(limit).encoding()) {
            (None, _) => State::Fresh,
            (Some(cell), Encoding::Level) => level::decode(cell, limit, now),
            (Some(cell), Encoding::Held) => held::decode(cell, limit, now),
        }
    }

    /// Returns `true` if the subject may have usage, even if it is less than a unit of `limit`: of
    /// a larger limit it may be several.
    pub(crate) fn is_charged(
        &self,
        fingerprint: Fingerprint,
        limit: &Limit,
        now: Timestamp,
    ) -> bool {
        match (self.lowest(fingerprint, limit, now), Group::of(limit).encoding()) {
            (None, _) => false,
            (Some(cell), Encoding::Level) => level::is_live(cell, limit, now),
            (Some(cell), Encoding::Held) => cell > 0,
        }
    }

    /// Returns `true` if the usage under the check's limit is known in units, and not only as a
    /// share: no other limit was charged.
    pub(crate) fn is_known_in_units(&self, check: &Check<'_>, now: Timestamp) -> bool {
        self.charged_limits.is_only(check.key(), check.limit(), now)
    }

    /// The lowest of the subject's cells, if any is in use.
    fn lowest(&self, fingerprint: Fingerprint, limit: &Limit, now: Timestamp) -> Option<u64> {
        let group = Group::of(limit);
        if !self.is_live(now) || self.tables[group.index()].get().is_none() {
            return None;
        }
        let cells = self.cells(group, fingerprint).map(|cell| cell.load(Relaxed));
        Some(match group.encoding() {
            Encoding::Level => level::lowest(cells),
            Encoding::Held => held::lowest(cells, now),
        })
    }

    /// Charges the usage after the admission of `check` at `now` to the subject.
    pub(crate) fn charge(
        &self,
        fingerprint: Fingerprint,
        check: &Check<'_>,
        state: &State,
        now: Timestamp,
    ) {
        let until = self.raise(fingerprint, check.limit(), state, now);
        self.charged_limits.record(check.key(), check.limit(), until, now);
    }

    /// Raises the subject's cells to its usage after an admission at `now`. Returns the time until
    /// which it counts.
    fn raise(
        &self,
        fingerprint: Fingerprint,
        limit: &Limit,
        state: &State,
        now: Timestamp,
    ) -> Timestamp {
        let group = Group::of(limit);
        let cells = self.cells(group, fingerprint);
        let until = match group.encoding() {
            Encoding::Level => {
                let value = level::encode(state, limit);
                for cell in cells {
                    cell.fetch_max(value, Relaxed);
                }
                // In a window, usage counts until the window ends, regardless of the time in the
                // cell.
                now.plus(limit.reset_after(state, now)).as_micros()
            }
            Encoding::Held => {
                let value = held::encode(state, limit, now);
                for cell in cells {
                    let merge = |old| Some(held::merge(old, value, now));
                    let _ = cell.fetch_update(Relaxed, Relaxed, merge);
                }
                held::until(value)
            }
        };
        self.live_until.fetch_max(until, Relaxed);
        Timestamp::from_micros(until)
    }

    /// Deletes the subject's usage: clears its lowest cell, which is enough. Others in that cell
    /// are reset as well, if it is their lowest.
    pub(crate) fn clear(&self, fingerprint: Fingerprint, limit: &Limit, now: Timestamp) {
        let group = Group::of(limit);
        if !self.is_live(now) || self.tables[group.index()].get().is_none() {
            return;
        }
        let cells = self.cells(group, fingerprint);
        if let Some(lowest) = cells.iter().min_by_key(|cell| cell.load(Relaxed)) {
            lowest.store(0, Relaxed);
        }
    }

    /// The subject's cell in each row.
    fn cells(&self, group: Group, fingerprint: Fingerprint) -> [&AtomicU64; Self::ROWS] {
        let table = self.tables[group.index()].get_or_init(|| {
            (0..Self::ROWS * self.width).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>()
        });
        array::from_fn(|row| {
            let hash = mix(fingerprint.get() ^ self.secrets[row]);
            let column = (u128::from(hash) * self.width as u128) >> 64;
            &table[row * self.width + column as usize]
        })
    }
}

/// Spreads every bit over all others.
const fn mix(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
