//! Where the engine learns the time: the only module that reads the machine's clock.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::Timestamp;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// The present time. A later call may answer earlier (machines' clocks are
    /// set back); stores never let that run a subject's time backwards.
    fn now(&self) -> Timestamp;

    /// Microseconds since some moment that stays the same, for how long something took: setting the
    /// machine's clock must not make it longer.
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

/// How often the system clock looks at the wall clock, in microseconds.
const REANCHOR_EVERY: u64 = 1_000_000;

/// The machine's time at the price of reading a cycle counter.
///
/// Between looks at the wall clock (one a second) it advances by the cycle
/// counter, which costs a third of a wall-clock read. It follows the wall clock
/// forwards at once, so suspended machines wake up right; it follows it
/// backwards only past a second, so that ordinary time synchronisation never
/// makes it step back.
#[derive(Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    /// What the counter showed at first.
    origin: u64,
    /// What a tick of the counter is of a microsecond, times 2^64.
    tick: u64,
    /// Wall-clock microseconds at `origin`, as last seen.
    anchor: AtomicI64,
    /// Counter microseconds at which the wall clock is looked at again.
    look_again_at: AtomicU64,
}

/// Shows a time that only its owner moves, for tests.
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
    /// A clock that shows the machine's time.
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let origin = counter.raw();
        Self {
            origin,
            tick: tick_of(&counter),
            counter,
            anchor: AtomicI64::new(wall_micros()),
            look_again_at: AtomicU64::new(REANCHOR_EVERY),
        }
    }

    #[cold]
    fn look_at_wall_clock(&self, elapsed: u64) {
        self.look_again_at.store(elapsed + REANCHOR_EVERY, Relaxed);
        let seen = wall_micros() - elapsed as i64;
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
        if elapsed >= self.look_again_at.load(Relaxed) {
            self.look_at_wall_clock(elapsed);
        }
        Timestamp::from_micros(self.anchor.load(Relaxed).wrapping_add_unsigned(elapsed) as u64)
    }

    #[inline]
    fn steady(&self) -> u64 {
        micros(self.counter.raw().saturating_sub(self.origin), self.tick)
    }
}

/// The anchor after the wall clock was seen to be at `seen`: see [`SystemClock`].
const fn follow(held: i64, seen: i64) -> i64 {
    let is_slightly_ahead = seen <= held && held - seen <= REANCHOR_EVERY as i64;
    if is_slightly_ahead { held } else { seen }
}

#[inline]
fn micros(ticks: u64, tick: u64) -> u64 {
    ((u128::from(ticks) * u128::from(tick)) >> 64) as u64
}

/// See [`SystemClock::tick`]. Counters count several times in a microsecond.
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

    /// Moves the clock to `now`, backwards too.
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
    fn the_system_clock_shows_the_wall_clock() {
        let clock = SystemClock::new();
        let apart = clock.now().as_micros().abs_diff(wall_micros() as u64);
        assert!(apart < 1_000_000, "{apart} us from the wall clock");
        assert!(wall_micros() > 1_700_000_000_000_000, "the wall clock is before this test");
    }

    #[test]
    fn ticks_are_as_long_as_the_counter_says() {
        let counter = quanta::Clock::new();
        let tick = tick_of(&counter);
        for ticks in [1, 1_000, 1_000_000_007, 1 << 40, 1 << 55] {
            let expected = counter.delta_as_nanos(0, ticks) / 1_000;
            // Of years, the counter itself tells no more than this.
            let apart = micros(ticks, tick).abs_diff(expected);
            assert!(apart <= 1 + (expected >> 32), "{ticks} ticks: {apart} us from {expected}");
        }
    }

    #[test]
    fn how_long_something_took_does_not_follow_the_wall_clock() {
        let clock = SystemClock::new();
        let began = clock.steady();
        clock.anchor.store(clock.anchor.load(Relaxed) + 3_600_000_000, Relaxed);
        assert!(clock.steady() - began < 60_000_000);
    }

    #[test]
    fn a_clock_follows_the_wall_clock_forwards_and_backwards_only_past_a_second() {
        const SECOND: i64 = REANCHOR_EVERY as i64;
        assert_eq!(follow(10 * SECOND, 10 * SECOND + 1), 10 * SECOND + 1);
        assert_eq!(follow(10 * SECOND, 10 * SECOND), 10 * SECOND);
        assert_eq!(follow(10 * SECOND, 9 * SECOND), 10 * SECOND);
        assert_eq!(follow(10 * SECOND, 9 * SECOND - 1), 9 * SECOND - 1);
        assert_eq!(follow(10 * SECOND, -SECOND), -SECOND);
    }

    #[test]
    fn the_wall_clock_is_looked_at_once_a_second() {
        let clock = SystemClock::new();
        clock.anchor.store(0, Relaxed);
        let before = wall_micros();
        clock.look_at_wall_clock(5_000_000);
        let anchor = clock.anchor.load(Relaxed) + 5_000_000;
        assert!((before..=wall_micros()).contains(&anchor), "{anchor} is not the wall clock's");
        assert_eq!(clock.look_again_at.load(Relaxed), 6_000_000);

        // Not before its time has come.
        clock.anchor.store(0, Relaxed);
        clock.look_again_at.store(u64::MAX, Relaxed);
        assert!(clock.now().as_micros() < 3_600_000_000);
        clock.look_again_at.store(0, Relaxed);
        assert!(clock.now().as_micros() as i64 >= before);
    }

    #[test]
    fn steady_time_passes() {
        let clock = SystemClock::new();
        assert!((0..100_000_000).any(|_| clock.steady() > 1_000), "a millisecond never passed");
    }

    #[test]
    fn a_borrowed_or_shared_clock_shows_what_the_clock_shows() {
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
        // One that tells only the time measures by it.
        assert_eq!(ManualClock::new(Timestamp::from_micros(9)).steady(), 9);
    }
}
