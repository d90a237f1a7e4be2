//! Clocks. This is the only module that reads the system's clock.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::Timestamp;

/// A source of time.
pub trait Clock: Send + Sync {
    /// The current time. It may go backwards when the system's clock is set; stores make sure that
    /// a subject's time never does.
    fn now(&self) -> Timestamp;

    /// Microseconds since a fixed point in time, to measure durations: setting the system's clock
    /// does not affect it.
    fn steady(&self) -> u64 {
        self.now().as_micros()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn steady(&self) -> u64 {
        (**self).steady()
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Timestamp {
        (**self).now()
    }

    fn steady(&self) -> u64 {
        (**self).steady()
    }
}

/// Interval at which the system clock reads the wall clock, in microseconds.
const REANCHOR_EVERY: u64 = 1_000_000;

/// Maximum time in which both clocks must have been read to be compared, in microseconds.
const MAX_READING_TIME: u64 = 1_000;

/// The system's time, for the cost of reading a cycle counter.
///
/// It reads the wall clock once a second and advances by the cycle counter in between, which costs
/// a third of a read of the wall clock. It follows the wall clock forwards at once, so that it is
/// right after a suspend, and backwards only by more than a second, so that ordinary time
/// synchronisation never makes it go backwards.
#[derive(Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    /// Value of the counter at the start.
    origin: u64,
    /// Length of a tick in microseconds, times 2^64.
    tick: u64,
    /// Wall-clock microseconds at `origin`, as last read.
    anchor: AtomicI64,
    /// Counter microseconds at which the wall clock is read again.
    reanchor_at: AtomicU64,
}

/// A clock for tests, which only advances when a test moves it.
///
/// ```
/// use std::{sync::Arc, time::Duration};
///
/// use headgate::{Cost, Key, Limit, ManualClock};
/// use headgate_store_memory::MemoryStore;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let clock = Arc::new(ManualClock::default());
/// let store = MemoryStore::builder().clock(Arc::clone(&clock)).build();
/// let cooldown = Limit::cooldown(Duration::from_secs(300))?;
/// let key = Key::new("user:42")?;
///
/// assert!(store.acquire(key, &cooldown, Cost::ONE)?.allowed);
/// clock.advance(Duration::from_secs(299));
/// assert!(!store.acquire(key, &cooldown, Cost::ONE)?.allowed);
/// clock.advance(Duration::from_secs(1));
/// assert!(store.acquire(key, &cooldown, Cost::ONE)?.allowed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

// === impl SystemClock ===

impl SystemClock {
    /// A clock that shows the system's time.
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let tick = tick_of(&counter);
        // The wall clock first: a thread that stands still in between leaves the clock behind, which
        // it makes up for, and not ahead, which it stays.
        let anchor = AtomicI64::new(wall_micros());
        Self {
            origin: counter.raw(),
            tick,
            counter,
            anchor,
            reanchor_at: AtomicU64::new(REANCHOR_EVERY),
        }
    }

    #[cold]
    fn reanchor(&self, elapsed: u64) {
        let wall = wall_micros();
        let now = self.steady();
        // A thread that stood still has read the two clocks at different times. It reads them again.
        if now.saturating_sub(elapsed) > MAX_READING_TIME {
            return;
        }
        self.reanchor_at.store(now + REANCHOR_EVERY, Relaxed);
        let seen = wall - now as i64;
        self.anchor.store(follow(self.anchor.load(Relaxed), seen), Relaxed);
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let elapsed = self.steady();
        if elapsed >= self.reanchor_at.load(Relaxed) {
            self.reanchor(elapsed);
        }
        Timestamp::from_micros(self.anchor.load(Relaxed).wrapping_add_unsigned(elapsed) as u64)
    }

    #[inline]
    fn steady(&self) -> u64 {
        micros(self.counter.raw().saturating_sub(self.origin), self.tick)
    }
}

/// The new anchor after the wall clock was read: see [`SystemClock`].
const fn follow(held: i64, seen: i64) -> i64 {
    let is_slightly_ahead = seen <= held && held - seen <= REANCHOR_EVERY as i64;
    if is_slightly_ahead { held } else { seen }
}

#[inline]
fn micros(ticks: u64, tick: u64) -> u64 {
    ((u128::from(ticks) * u128::from(tick)) >> 64) as u64
}

/// See [`SystemClock::tick`]. Counters have several ticks per microsecond.
fn tick_of(counter: &quanta::Clock) -> u64 {
    const TICKS: u32 = 40;
    let nanos = counter.delta_as_nanos(0, 1 << TICKS);
    u64::try_from((u128::from(nanos) << (64 - TICKS)) / 1_000).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
fn wall_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64)
}

// === impl ManualClock ===

impl ManualClock {
    /// A clock that shows `start` until it is moved.
    pub const fn new(start: Timestamp) -> Self {
        Self(AtomicU64::new(start.as_micros()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }

    /// Moves the clock to `now`, which may be earlier.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_shows_wall_clock_time() {
        let clock = SystemClock::new();
        let apart = clock.now().as_micros().abs_diff(wall_micros() as u64);
        // This thread may stand still between the two.
        assert!(apart < 60_000_000, "{apart} us from the wall clock");
        assert!(wall_micros() > 1_700_000_000_000_000, "the wall clock is before this test");
    }

    #[test]
    fn ticks_convert_to_microseconds_like_the_counter_does() {
        let counter = quanta::Clock::new();
        let tick = tick_of(&counter);
        for ticks in [1, 1_000, 1_000_000_007, 1 << 40, 1 << 55] {
            let expected = counter.delta_as_nanos(0, ticks) / 1_000;
            // Over years, the counter itself is no more precise.
            let apart = micros(ticks, tick).abs_diff(expected);
            assert!(apart <= 1 + (expected >> 32), "{ticks} ticks: {apart} us from {expected}");
        }
    }

    #[test]
    fn steady_time_does_not_follow_the_wall_clock() {
        let clock = SystemClock::new();
        let began = clock.steady();
        clock.anchor.store(clock.anchor.load(Relaxed) + 3_600_000_000, Relaxed);
        assert!(clock.steady() - began < 60_000_000);
    }

    #[test]
    fn the_clock_steps_back_only_by_more_than_a_second() {
        const SECOND: i64 = REANCHOR_EVERY as i64;
        assert_eq!(follow(10 * SECOND, 10 * SECOND + 1), 10 * SECOND + 1);
        assert_eq!(follow(10 * SECOND, 10 * SECOND), 10 * SECOND);
        assert_eq!(follow(10 * SECOND, 9 * SECOND), 10 * SECOND);
        assert_eq!(follow(10 * SECOND, 9 * SECOND - 1), 9 * SECOND - 1);
        assert_eq!(follow(10 * SECOND, -SECOND), -SECOND);
    }

    #[test]
    fn the_wall_clock_is_read_once_a_second() {
        let clock = SystemClock::new();
        clock.anchor.store(0, Relaxed);
        let before = wall_micros();
        // This thread may stand still.
        while clock.anchor.load(Relaxed) == 0 {
            clock.reanchor(clock.steady());
        }
        let read_at = clock.reanchor_at.load(Relaxed) - REANCHOR_EVERY;
        let read = clock.anchor.load(Relaxed) + read_at as i64;
        assert!((before..=wall_micros()).contains(&read), "{read} is not the wall clock's");

        // Not earlier than that.
        clock.anchor.store(0, Relaxed);
        clock.reanchor_at.store(u64::MAX, Relaxed);
        assert!(clock.now().as_micros() < 3_600_000_000);
        clock.reanchor_at.store(0, Relaxed);
        assert!((0..1_000).any(|_| clock.now().as_micros() as i64 >= before));
    }

    #[test]
    fn the_wall_clock_is_read_again_if_the_thread_stood_still() {
        let clock = SystemClock::new();
        clock.anchor.store(0, Relaxed);
        while clock.steady() <= MAX_READING_TIME {}
        clock.reanchor(0);
        assert_eq!(clock.anchor.load(Relaxed), 0);
        assert_eq!(clock.reanchor_at.load(Relaxed), REANCHOR_EVERY);
    }

    #[test]
    fn steady_time_passes() {
        let clock = SystemClock::new();
        assert!((0..100_000_000).any(|_| clock.steady() > 1_000), "a millisecond never passed");
    }

    #[test]
    fn borrowed_and_shared_clocks_show_the_same_time() {
        struct Fixed;
        impl Clock for Fixed {
            fn now(&self) -> Timestamp {
                Timestamp::from_micros(7)
            }

            fn steady(&self) -> u64 {
                8
            }
        }
        fn shown(clock: impl Clock) -> (u64, u64) {
            (clock.now().as_micros(), clock.steady())
        }
        assert_eq!(shown(&Fixed), (7, 8));
        assert_eq!(shown(std::sync::Arc::new(Fixed)), (7, 8));
        // By default, durations are measured with `now`.
        assert_eq!(ManualClock::new(Timestamp::from_micros(9)).steady(), 9);
    }
}
