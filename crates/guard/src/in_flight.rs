//! Limits on concurrent requests or connections.
//!
//! | module | contents |
//! |---|---|
//! | here | [`InFlight`]: counts in this process |
//! | `shared` | [`SharedInFlight`]: limits over all instances |

mod shared;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    hash::{BuildHasher, Hash, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use thiserror::Error;

pub use self::shared::{SharedInFlight, SharedInFlightError};

/// Maximum number of concurrent requests or connections. 0 denies all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlightLimits {
    /// Of one client.
    pub per_key: u32,
    /// Of all clients together. Bounds the memory, too.
    pub total: u32,
}

/// Counts requests or connections in flight by client. Clients without any take no memory.
///
/// ```
/// use headgate_guard::{Busy, InFlight, InFlightLimits};
///
/// let downloads = InFlight::new();
/// let limits = InFlightLimits::new(1, 100);
/// let permit = downloads.acquire("198.51.100.7", limits)?;
/// assert_eq!(downloads.acquire("198.51.100.7", limits).err(), Some(Busy::PerKey(1)));
/// drop(permit);
/// assert!(downloads.acquire("198.51.100.7", limits).is_ok());
/// # Ok::<(), Busy>(())
/// ```
pub struct InFlight {
    hasher: RandomState,
    shards: Box<[Mutex<HashMap<u64, u32>>]>,
    total: AtomicU32,
}

/// A slot in an [`InFlight`], released on drop.
#[must_use = "the slot is released when the permit is dropped"]
pub struct Permit {
    counts: Arc<InFlight>,
    fingerprint: u64,
}

/// Too many requests or connections in flight.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Busy {
    /// The client is at its limit.
    #[error("too many requests in flight for one client: the limit is {0}")]
    PerKey(u32),
    /// All clients together are at their limit.
    #[error("too many requests in flight in total: the limit is {0}")]
    Total(u32),
}

// === impl InFlightLimits ===

impl InFlightLimits {
    /// At most `per_key` of one client and `total` of all.
    pub const fn new(per_key: u32, total: u32) -> Self {
        Self { per_key, total }
    }

    /// The total without a limit per client.
    pub(crate) const fn total_only(self) -> Self {
        Self { per_key: u32::MAX, total: self.total }
    }
}

// === impl InFlight ===

impl InFlight {
    const SHARDS: usize = 16;

    /// An empty counter.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            hasher: RandomState::new(),
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            total: AtomicU32::new(0),
        })
    }

    /// Takes a slot for `key`, if `limits` allow it.
    pub fn acquire(
        self: &Arc<Self>,
        key: impl Hash,
        limits: InFlightLimits,
    ) -> Result<Permit, Busy> {
        let room = |open: u32| (open < limits.total).then(|| open + 1);
        let all = self.total.fetch_update(Relaxed, Relaxed, room);
        all.map_err(|_| Busy::Total(limits.total))?;
        let fingerprint = self.hasher.hash_one(key);
        let mut shard = self.shard(fingerprint);
        let open = shard.get(&fingerprint).copied().unwrap_or_default();
        if open >= limits.per_key {
            drop(shard);
            self.total.fetch_sub(1, Relaxed);
            return Err(Busy::PerKey(limits.per_key));
        }
        shard.insert(fingerprint, open + 1);
        drop(shard);
        Ok(Permit { counts: Arc::clone(self), fingerprint })
    }

    /// Number of slots taken.
    pub fn total(&self) -> u32 {
        self.total.load(Relaxed)
    }

    /// Number of clients with a slot.
    pub fn clients(&self) -> usize {
        (0..Self::SHARDS as u64).map(|shard| self.shard(shard).len()).sum()
    }

    fn release(&self, fingerprint: u64) {
        if let Entry::Occupied(mut open) = self.shard(fingerprint).entry(fingerprint) {
            *open.get_mut() -= 1;
            if *open.get() == 0 {
                open.remove();
            }
        }
        self.total.fetch_sub(1, Relaxed);
    }

    fn shard(&self, fingerprint: u64) -> MutexGuard<'_, HashMap<u64, u32>> {
        let shard = &self.shards[fingerprint as usize % Self::SHARDS];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlight").field("total", &self.total()).finish_non_exhaustive()
    }
}

// === impl Permit ===

impl Drop for Permit {
    fn drop(&mut self) {
        self.counts.release(self.fingerprint);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}
