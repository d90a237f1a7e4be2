//! Time that advances from event to event.

use std::{
    cmp::{Ordering, Reverse},
    collections::BinaryHeap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

use headgate::{Clock, Timestamp};

/// Time, and the timers that wait for it. In microseconds since the Unix epoch.
#[derive(Debug)]
pub(crate) struct VirtualTime {
    now: AtomicU64,
    timers: Mutex<Timers>,
}

#[derive(Debug, Default)]
struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    /// Number of timers so far: those for the same time end in the order in which they began.
    count: u64,
}

#[derive(Debug)]
struct Timer {
    at: u64,
    number: u64,
    waker: Waker,
}

/// Waits until a time.
#[derive(Debug)]
pub(crate) struct Sleep {
    time: Arc<VirtualTime>,
    until: u64,
    is_waiting: bool,
}

/// The clock of an instance: its steady clock starts anywhere, and its wall clock is wrong.
#[derive(Clone, Debug)]
pub(crate) struct InstanceClock {
    pub(crate) time: Arc<VirtualTime>,
    pub(crate) offset: u64,
}

impl VirtualTime {
    pub(crate) fn starting_at(now: u64) -> Arc<Self> {
        Arc::new(Self { now: AtomicU64::new(now), timers: Mutex::default() })
    }

    pub(crate) fn micros(&self) -> u64 {
        self.now.load(Relaxed)
    }

    pub(crate) fn sleep(self: &Arc<Self>, micros: u64) -> Sleep {
        Sleep { time: Arc::clone(self), until: self.micros() + micros, is_waiting: false }
    }

    /// The time of the next timer.
    pub(crate) fn next(&self) -> Option<u64> {
        self.timers().heap.peek().map(|Reverse(timer)| timer.at)
    }

    /// Moves on, and wakes the timers that have ended.
    pub(crate) fn advance_to(&self, now: u64) {
        self.now.store(now, Relaxed);
        let mut timers = self.timers();
        while timers.heap.peek().is_some_and(|Reverse(timer)| timer.at <= now) {
            if let Some(Reverse(timer)) = timers.heap.pop() {
                timer.waker.wake();
            }
        }
    }

    fn timers(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for VirtualTime {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.micros())
    }
}

impl Clock for InstanceClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.offset)
    }

    fn steady(&self) -> u64 {
        self.time.micros() - self.offset
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.time.micros() >= self.until {
            return Poll::Ready(());
        }
        if !self.is_waiting {
            let mut timers = self.time.timers();
            let (at, number, waker) = (self.until, timers.count, context.waker().clone());
            timers.count += 1;
            timers.heap.push(Reverse(Timer { at, number, waker }));
            drop(timers);
            self.is_waiting = true;
        }
        Poll::Pending
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Timer {}
