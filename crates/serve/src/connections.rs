//! All connections of a process: how many there are, and how many bytes are buffered for them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use crate::activity::Activity;

/// How long a peer may leave what is buffered for it alone while others need the room.
const STALLED: Duration = Duration::from_secs(1);

/// The same, of one that takes more room than the other needs.
const HOARDED: Duration = Duration::from_millis(100);

/// The largest answer that finds room though other answers hold all of it.
const MODEST_BYTES: usize = 1024 * 1024;

/// How many connections are looked at to find an idle one.
const LOOKS: usize = 1024;

/// The bounds of all connections together.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of connections. More wait to be accepted.
    pub max_connections: usize,
    /// Maximum number of bytes that are buffered for peers: answers that they have not taken, and
    /// requests that they have not sent completely. One connection may hold half of them.
    pub max_buffered_bytes: usize,
}

/// Why the server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// It asked nothing for too long.
    Idle,
    /// The peer did not take its answers for too long.
    Stalled,
    /// The peer did not take its answers while others needed the room.
    Pressure,
    /// It was idle while others waited to be accepted.
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
    live: Mutex<Live>,
}

/// The connections that are there, the oldest first.
#[derive(Default)]
struct Live {
    by_age: BTreeMap<u64, Arc<Activity>>,
    next: u64,
    /// Where the search for an idle one goes on.
    looked_at: u64,
}

/// The place of one connection, until it is dropped.
pub(crate) struct Place {
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
    /// No connections yet, and these bounds.
    pub fn new(bounds: Bounds) -> Arc<Self> {
        let places = bounds.max_connections.min(Semaphore::MAX_PERMITS);
        Arc::new(Self {
            bounds,
            room: Arc::new(Semaphore::new(places)),
            started: Instant::now(),
            buffered: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            ended: EndReason::ALL.map(|_| AtomicU64::new(0)),
            live: Mutex::default(),
        })
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.live().by_age.len()
    }

    /// Bytes that are buffered for peers. Less than 32 KiB of a connection are not counted.
    pub fn buffered_bytes(&self) -> usize {
        self.buffered.load(Relaxed)
    }

    /// Answers and requests that were broken off because too many bytes were buffered.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Connections that were ended for this reason.
    pub fn ended(&self, reason: EndReason) -> u64 {
        self.ended[reason as usize].load(Relaxed)
    }

    /// A place for one more connection. If all are taken, one that is idle makes room.
    pub(crate) async fn place(self: &Arc<Self>, activity: &Arc<Activity>) -> Place {
        let mut room = Arc::clone(&self.room).try_acquire_owned().ok();
        if room.is_none() {
            self.end_an_idle_one();
            // Nobody closes it: there is a place, or there will be.
            room = Arc::clone(&self.room).acquire_owned().await.ok();
        }
        let number = self.live().add(Arc::clone(activity));
        Place { connections: Arc::clone(self), number, _room: room }
    }

    /// Milliseconds since the process began to serve.
    pub(crate) fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Counts what is buffered for one connection.
    pub(crate) fn report(&self, before: usize, now: usize) {
        // Wraps around where it becomes less.
        self.buffered.fetch_add(now.wrapping_sub(before), Relaxed);
    }

    /// Whether `buffered` bytes can be buffered for one connection, `new` of them just now.
    ///
    /// An answer that is alone on its connection may be larger than the connection's share. Where
    /// others hold all that may be buffered, one of them that has stalled is ended.
    pub(crate) fn accepts(&self, activity: &Activity, buffered: usize, new: usize) -> bool {
        let is_alone = buffered <= new + 2 * crate::activity::STREAM_BYTES;
        let is_within_share = is_alone || buffered <= self.bounds.max_buffered_bytes / 2;
        let others = self.buffered.load(Relaxed).saturating_sub(activity.reported());
        let max = self.bounds.max_buffered_bytes;
        // A quarter more is for those who ask for one thing at a time.
        let is_modest = is_alone && buffered <= MODEST_BYTES;
        let has_room = match (is_alone, is_modest) {
            (_, true) => others < max + max / 4,
            (true, false) => others < max,
            (false, _) => others + buffered <= max,
        };
        let accepts = is_within_share && (has_room || self.end_a_stalled_one(buffered));
        if !accepts {
            self.refused.fetch_add(1, Relaxed);
        }
        accepts
    }

    pub(crate) fn count_end(&self, reason: EndReason) {
        self.ended[reason as usize].fetch_add(1, Relaxed);
    }

    /// Ends the connection whose peer has left what is buffered for it alone for longest; or, where
    /// none has for long, the one that holds most, if that is twice of what is `needed`. Whether
    /// there was one.
    fn end_a_stalled_one(&self, needed: usize) -> bool {
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

    fn end_an_idle_one(&self) {
        let mut live = self.live();
        let from = live.looked_at;
        let later = live.by_age.range(from..);
        let mut looked = later.chain(live.by_age.range(..from)).take(LOOKS);
        let idle = looked.find(|(_, one)| one.is_idle() && !one.is_ending());
        if let Some((&number, one)) = idle {
            one.end(EndReason::Crowded);
            live.looked_at = number + 1;
        }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        // A panic elsewhere leaves nothing half done that would matter here.
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Live ===

impl Live {
    fn add(&mut self, activity: Arc<Activity>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.by_age.insert(number, activity);
        number
    }
}

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.live().by_age.remove(&self.number);
    }
}
