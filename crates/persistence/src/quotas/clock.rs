//! The database's time, which decides the period.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::Relaxed},
};

use headgate::{Clock, Timestamp};
use headgate_quota::RepositoryError;

use super::corrupt;
use crate::row::Row;

/// Shows the database's time, as last measured.
///
/// Between measurements it advances with the machine's monotonic clock, so that setting the
/// machine's wall clock changes nothing. Until the first measurement it shows the machine's time.
pub struct LedgerClock {
    machine: Arc<dyn Clock>,
    /// True if the database uses the machine's clock, which then needs no measurement.
    own: bool,
    /// Microseconds of the database's clock minus those of the monotonic clock.
    offset: AtomicI64,
}

/// Bounds of the time at which a transaction began, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct BeginTime {
    pub(super) earliest: u64,
    pub(super) latest: u64,
}

/// Value of `offset` before the first measurement.
const UNMEASURED: i64 = i64::MIN;

// === impl LedgerClock ===

impl LedgerClock {
    pub(super) const fn new(machine: Arc<dyn Clock>, own: bool) -> Self {
        Self { machine, own, offset: AtomicI64::new(UNMEASURED) }
    }

    /// Microseconds by which the machine's clock is ahead of the database's; negative if behind. 0
    /// until it was measured.
    pub fn skew(&self) -> i64 {
        match self.offset.load(Relaxed) {
            UNMEASURED => 0,
            _ => self.machine.now().as_micros().wrapping_sub(self.now().as_micros()).cast_signed(),
        }
    }

    /// Reads the database's time from the column `now` of `row`: the time at which its transaction
    /// began, PostgreSQL's `now()`.
    pub(super) fn read(&self, row: &Row, began: BeginTime) -> Result<Timestamp, RepositoryError> {
        if self.own {
            return Ok(self.machine.now());
        }
        let at = row.time("now").map_err(corrupt("the database's time"))?;
        self.measure(at, began);
        Ok(at)
    }

    /// Updates the offset: the database's clock showed `at` when a transaction began. An offset
    /// within the bounds is kept, because a slow response is inaccurate.
    fn measure(&self, at: Timestamp, BeginTime { earliest, latest }: BeginTime) {
        let offset = |steady: u64| at.as_micros().wrapping_sub(steady).cast_signed();
        let (min, max) = (offset(latest.max(earliest)), offset(earliest));
        let known = match self.offset.load(Relaxed) {
            UNMEASURED => min.midpoint(max),
            known => known.clamp(min, max),
        };
        self.offset.store(known, Relaxed);
    }
}

impl Clock for LedgerClock {
    fn now(&self) -> Timestamp {
        match self.offset.load(Relaxed) {
            UNMEASURED => self.machine.now(),
            offset => Timestamp::from_micros(self.steady().wrapping_add_signed(offset)),
        }
    }

    fn steady(&self) -> u64 {
        self.machine.steady()
    }
}

impl std::fmt::Debug for LedgerClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LedgerClock").field("own", &self.own).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A machine whose wall clock can be set while its monotonic clock runs.
    #[derive(Default)]
    struct Machine {
        wall: AtomicU64,
        counter: AtomicU64,
    }

    impl Clock for Machine {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.wall.load(Relaxed))
        }

        fn steady(&self) -> u64 {
            self.counter.load(Relaxed)
        }
    }

    fn clock() -> (Arc<Machine>, LedgerClock) {
        let machine = Arc::new(Machine::default());
        machine.wall.store(5_000, Relaxed);
        (Arc::clone(&machine), LedgerClock::new(machine, false))
    }

    fn began(earliest: u64, latest: u64) -> BeginTime {
        BeginTime { earliest, latest }
    }

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn setting_the_machines_clock_changes_nothing_after_a_measurement() {
        let (machine, clock) = clock();
        assert_eq!((clock.now(), clock.skew()), (at(5_000), 0));
        clock.measure(at(1_000_000), began(10, 20));
        machine.counter.store(15, Relaxed);
        assert_eq!(clock.now(), at(1_000_000));
        machine.counter.store(115, Relaxed);
        machine.wall.store(9_000_100, Relaxed);
        assert_eq!((clock.now(), clock.skew()), (at(1_000_100), 8_000_000));
        machine.wall.store(100, Relaxed);
        assert_eq!((clock.now(), clock.skew()), (at(1_000_100), -1_000_000));
    }

    #[test]
    fn a_measurement_moves_the_offset_only_into_its_bounds() {
        let (machine, clock) = clock();
        clock.measure(at(1_000), began(0, 0));
        // The response was slow, and the offset is within its bounds.
        clock.measure(at(1_300), began(100, 900));
        assert_eq!(clock.now(), at(1_000));
        // The monotonic clock stood still for a while.
        clock.measure(at(5_000), began(1_000, 1_200));
        machine.counter.store(1_200, Relaxed);
        assert_eq!(clock.now(), at(5_000));
        // The database's clock was set back.
        clock.measure(at(2_000), began(1_300, 1_400));
        machine.counter.store(1_300, Relaxed);
        assert_eq!(clock.now(), at(2_000));
    }
}
