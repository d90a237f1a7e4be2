//! All connections of a process: their number and buffered bytes.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, Instant},
};
use tracing::debug;

use crate::activity::{Activity, Expendable};

/// Time without progress after which a connection may be closed when others need its buffers.
const STALLED: Duration = Duration::from_secs(1);

/// The same for a connection that holds twice what another needs.
const HOARDED: Duration = Duration::from_millis(100);

/// Largest response that may exceed the bound, by up to a quarter, if it is the only one of its
/// connection.
const MODEST_BYTES: usize = 1024 * 1024;

/// Maximum number of connections scanned for one to close at once, and the pause before the next
/// ones are scanned.
const MAX_SCAN: usize = 1024;
const SCAN_INTERVAL: Duration = Duration::from_millis(20);

/// Bounds on all connections together.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of connections, those that were upgraded included. More wait to be accepted.
    pub max_connections: usize,
    /// Maximum number of buffered bytes: responses that peers have not read, and incomplete
    /// requests. One connection may hold half of them.
    pub max_buffered_bytes: usize,
}

/// Reason for which the server closed a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndReason {
    /// No request for too long.
    Idle,
    /// The peer did not read its responses for too long.
    Stalled,
    /// The peer did not read its responses while others needed the buffers.
    Pressure,
    /// It was idle, its streams were quiet for the idle timeout, or its peer had stalled, while
    /// others waited to be accepted.
    Crowded,
}

/// All connections of a process.
pub struct Connections {
    bounds: Bounds,
    room: Arc<Semaphore>,
    started: Instant,
    buffered: AtomicUsize,
    refused: AtomicU64,
    ended: [AtomicU64; EndReason::ALL.len()],
    live: Mutex<ConnectionTable>,
}

/// Open connections, oldest first.
#[derive(Default)]
struct ConnectionTable {
    by_age: BTreeMap<u64, Arc<Activity>>,
    next: u64,
    /// Start of the next scan for a connection to close.
    scan_from: u64,
    /// Connections scanned since the last idle one, or since there was room.
    not_idle: usize,
}

/// The slot of one connection, released on drop.
pub(crate) struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
    _room: Option<OwnedSemaphorePermit>,
}

// === impl EndReason ===

impl EndReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [Self::Idle, Self::Stalled, Self::Pressure, Self::Crowded];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Stalled => "stalled",
            Self::Pressure => "pressure",
            Self::Crowded => "crowded",
        }
    }
}

// === impl Connections ===

impl Connections {
    /// An empty set of connections.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        let slots = bounds.max_connections.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            bounds,
            room: Arc::new(Semaphore::new(slots)),
            started: Instant::now(),
            buffered: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            ended: EndReason::ALL.map(|_| AtomicU64::new(0)),
            live: Mutex::default(),
        })
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.live().by_age.len()
    }

    /// Number of buffered bytes. Less than 32 KiB of a connection are not counted.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered.load(Relaxed)
    }

    /// Number of responses and requests that were aborted because too many bytes were buffered.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Number of connections that were closed for this reason.
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.ended[reason as usize].load(Relaxed)
    }

    /// Waits for a slot. If there is none, closes an idle connection, as soon as there is one, or
    /// else one whose streams are quiet or whose peer has stalled.
    pub(crate) async fn slot(self: &Arc<Self>, activity: &Arc<Activity>) -> ConnectionSlot {
        let free = Arc::clone(&self.room).try_acquire_owned().ok();
        let was_full = free.is_none();
        let room = match free {
            Some(room) => Some(room),
            None => self.make_room().await,
        };
        let number = self.live().add(Arc::clone(activity), was_full);
        ConnectionSlot { connections: Arc::clone(self), number, _room: room }
    }

    /// Waits for a connection to end, and closes the first that is expendable. Never `None`: the
    /// semaphore is not closed.
    async fn make_room(&self) -> Option<OwnedSemaphorePermit> {
        let mut room = pin!(Arc::clone(&self.room).acquire_owned());
        // Busy connections become idle without notice: it would cost every request.
        while !self.close_expendable() {
            if let Ok(room) = time::timeout(SCAN_INTERVAL, &mut room).await {
                return room.ok();
            }
        }
        room.await.ok()
    }

    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Updates the buffered bytes of one connection.
    pub(crate) fn report(&self, before: usize, now: usize) {
        // Wraps around if it decreases.
        self.buffered.fetch_add(now.wrapping_sub(before), Relaxed);
    }

    /// Returns `true` if one connection may buffer `buffered` bytes, of which `new` are new.
    ///
    /// A response that is the only one of its connection may exceed the share of the connection. If
    /// others hold all buffers, a stalled one of them is closed.
    pub(crate) fn accepts(&self, activity: &Activity, buffered: usize, new: usize) -> bool {
        let is_alone = buffered <= new + 2 * crate::activity::STREAM_BYTES;
        let is_within_share = is_alone || buffered <= self.bounds.max_buffered_bytes / 2;
        let others = self.buffered.load(Relaxed).saturating_sub(activity.reported());
        let max = self.bounds.max_buffered_bytes;
        // A quarter more for connections with one modest response.
        let is_modest = is_alone && buffered <= MODEST_BYTES;
        let has_room = match (is_alone, is_modest) {
            (_, true) => others < max + max / 4,
            (true, false) => others < max,
            (false, _) => others + buffered <= max,
        };
        let accepts = is_within_share && (has_room || self.close_stalled(buffered));
        if !accepts {
            self.refused.fetch_add(1, Relaxed);
        }
        accepts
    }

    /// Counts a connection that the server closed.
    pub(crate) fn count_end(&self, reason: EndReason) {
        self.ended[reason as usize].fetch_add(1, Relaxed);
        debug!(reason = reason.name(), "closed a connection");
    }

    /// Closes the connection that has been stalled for longest or, if there is none, the one that
    /// holds most, if that is twice the bytes `needed`. Returns `true` if there was one.
    fn close_stalled(&self, needed: usize) -> bool {
        let now = self.now();
        let since = |one: &Activity| Duration::from_millis(now.saturating_sub(one.moved_at()));
        let live = self.live();
        let holding = || live.by_age.values().filter(|one| one.reported() > 0 && !one.is_ending());
        let longest =
            holding().filter(|one| since(one) >= STALLED).min_by_key(|one| one.moved_at());
        let most = || {
            let hoards =
                |one: &&Arc<Activity>| since(one) >= HOARDED && one.reported() / 2 >= needed;
            holding().filter(hoards).max_by_key(|one| one.reported())
        };
        let ended = longest.or_else(most);
        ended.inspect(|one| one.end(EndReason::Pressure)).is_some()
    }

    /// Closes an expendable connection. Returns `false` if none of those scanned is; the next scan
    /// continues after them.
    fn close_expendable(&self) -> bool {
        let found = self.live().find_expendable(self.now());
        found.inspect(|one| one.end(EndReason::Crowded)).is_some()
    }

    fn live(&self) -> MutexGuard<'_, ConnectionTable> {
        // The table is consistent even after a panic elsewhere.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ConnectionTable ===

impl ConnectionTable {
    fn add(&mut self, activity: Arc<Activity>, was_full: bool) -> u64 {
        if !was_full {
            self.not_idle = 0;
        }
        let number = self.next;
        self.next += 1;
        self.by_age.insert(number, activity);
        number
    }

    /// Scans the next connections, up to an idle one. Returns that or, if all have been scanned and
    /// none is idle, a quiet one; or else one that has stalled, or a new one.
    fn find_expendable(&mut self, now: u64) -> Option<Arc<Activity>> {
        let from = self.scan_from;
        let (mut last, mut scanned) = (from, 0);
        let (mut idle, mut quiet, mut stalled, mut new) = (None, None, None, None);
        let later = self.by_age.range(from..);
        for (&number, one) in later.chain(self.by_age.range(..from)).take(MAX_SCAN) {
            (last, scanned) = (number, scanned + 1);
            match one.expendable(now) {
                Some(Expendable::Idle) => {
                    idle = Some(one);
                    break;
                }
                Some(Expendable::Quiet) => quiet = quiet.or(Some(one)),
                Some(Expendable::Stalled) => stalled = stalled.or(Some(one)),
                Some(Expendable::New) => new = new.or(Some(one)),
                None => {}
            }
        }
        self.scan_from = last + 1;
        self.not_idle = if idle.is_some() { 0 } else { self.not_idle + scanned };
        let all_scanned = self.not_idle >= self.by_age.len();
        idle.or(quiet.or(stalled).or(new).filter(|_| all_scanned)).cloned()
    }
}

// === impl ConnectionSlot ===

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.live().by_age.remove(&self.number);
    }
}

#[cfg(test)]
mod tests;
