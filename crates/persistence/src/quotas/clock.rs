//! The database's time, which decides in which period something is counted.

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
/// From one measurement to the next it goes by the machine's steady counter: setting the machine's clock
/// changes nothing. Until the first measurement it shows the machine's time.
pub struct LedgerClock {
    machine: Arc<dyn Clock>,
    /// Whether the machine's clock is the database's, which then needs no measurement.
    own: bool,
    /// The database's microseconds less those of the steady counter.
    offset: AtomicI64,
}

/// When a transaction began, by the steady counter: between these two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Began {
    pub(super) asked: u64,
    pub(super) answered: u64,
}

/// No measurement yet.
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

    /// Reads the database's time from `row`, whose column `now` says when its transaction began: PostgreSQL's
    /// `now()`.
    pub(super) fn read(&self, row: &Row, began: Began) -> Result<Timestamp, RepositoryError> {
        if self.own {
            return Ok(self.machine.now());
        }
        let at = row.time("now").map_err(corrupt("the database's time"))?;
        self.measured(at, began);
        Ok(at)
    }

    /// Notes that the database's clock showed `at` when a transaction began. An offset that agrees
    /// with this stays: a slow answer proves little.
    fn measured(&self, at: Timestamp, Began { asked, answered }: Began) {
        let offset = |steady: u64| at.as_micros().wrapping_sub(steady).cast_signed();
        let (least, most) = (offset(answered.max(asked)), offset(asked));
        let known = match self.offset.load(Relaxed) {
            UNMEASURED => least.midpoint(most),
            known => known.clamp(least, most),
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

    /// A machine whose clock can be set while its counter goes on.
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

    fn began(asked: u64, answered: u64) -> Began {
        Began { asked, answered }
    }

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn setting_the_machines_clock_changes_nothing_once_it_is_measured() {
        let (machine, clock) = clock();
        assert_eq!((clock.now(), clock.skew()), (at(5_000), 0));
        clock.measured(at(1_000_000), began(10, 20));
        machine.counter.store(15, Relaxed);
        assert_eq!(clock.now(), at(1_000_000));
        machine.counter.store(115, Relaxed);
        machine.wall.store(9_000_100, Relaxed);
        assert_eq!((clock.now(), clock.skew()), (at(1_000_100), 8_000_000));
        machine.wall.store(100, Relaxed);
        assert_eq!((clock.now(), clock.skew()), (at(1_000_100), -1_000_000));
    }

    #[test]
    fn a_measurement_moves_it_only_as_far_as_it_proves() {
        let (machine, clock) = clock();
        clock.measured(at(1_000), began(0, 0));
        // The answer took long, and agrees.
        clock.measured(at(1_300), began(100, 900));
        assert_eq!(clock.now(), at(1_000));
        // The counter stood still for a while.
        clock.measured(at(5_000), began(1_000, 1_200));
        machine.counter.store(1_200, Relaxed);
        assert_eq!(clock.now(), at(5_000));
        // The database's clock was set back.
        clock.measured(at(2_000), began(1_300, 1_400));
        machine.counter.store(1_300, Relaxed);
        assert_eq!(clock.now(), at(2_000));
    }
}
