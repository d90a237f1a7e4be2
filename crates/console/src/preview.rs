//! Preview of a limit, computed by the engine: one subject, two windows, two request patterns.

use std::time::Duration;

use headgate::{Cost, Limit, State, Timestamp};

/// Points of each pattern.
const STEPS: u64 = 120;

/// Windows that are previewed.
const WINDOWS: u32 = 2;

/// Load of the steady pattern, in percent of the limit.
const STEADY_PERCENT: u64 = 125;

/// Units admitted over two windows.
#[derive(Debug)]
pub struct Preview {
    /// Of a client that takes all units as soon as they are available.
    pub burst: Vec<Point>,
    /// Of a client with a steady rate, a quarter above the limit.
    pub steady: Vec<Point>,
}

/// Units requested and admitted so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time since the start.
    pub after: Duration,
    /// Units requested.
    pub asked: u64,
    /// Units admitted.
    pub admitted: u64,
}

/// A simulated subject with its own clock.
struct Subject<'l> {
    limit: &'l Limit,
    state: State,
    point: Point,
}

/// Start of the simulated clock: a multiple of every window that divides a day.
const EPOCH: Timestamp = Timestamp::from_micros(86_400_000_000_000);

impl Preview {
    /// Simulates both patterns under `limit`, over windows of this length.
    pub fn of(limit: &Limit, units: u64, window: Duration) -> Self {
        let asked = |step: u64| {
            let whole = u128::from(units) * u128::from(STEADY_PERCENT) * u128::from(WINDOWS);
            u64::try_from(whole * u128::from(step) / u128::from(STEPS) / 100).unwrap_or(u64::MAX)
        };
        Self {
            burst: walk(limit, window, |_, left| left),
            steady: walk(limit, window, |point, _| asked(point.0).saturating_sub(point.1)),
        }
    }
}

/// At each step, requests the units that `wants` returns for the step with the units requested so
/// far, and the remaining units.
fn walk(limit: &Limit, window: Duration, wants: impl Fn((u64, u64), u64) -> u64) -> Vec<Point> {
    let point = Point { after: Duration::ZERO, asked: 0, admitted: 0 };
    let mut subject = Subject { limit, state: State::default(), point };
    let all = window * WINDOWS;
    let at = |step: u64| Duration::from_micros((all.as_micros() as u64 / STEPS) * step);
    let step = |step| {
        let now = EPOCH + at(step);
        let wanted = wants((step, subject.point.asked), subject.left(now));
        subject.ask(wanted, now);
        subject.point.after = at(step);
        subject.point
    };
    (0..=STEPS).map(step).collect()
}

impl Subject<'_> {
    fn left(&self, now: Timestamp) -> u64 {
        self.limit.remaining(&self.state, now)
    }

    /// Requests `wanted` units, of which the remaining ones are admitted.
    fn ask(&mut self, wanted: u64, now: Timestamp) {
        let granted = wanted.min(self.left(now));
        self.point.asked = self.point.asked.saturating_add(wanted);
        let Ok(cost) = Cost::new(granted) else {
            return;
        };
        if self.limit.admit(&mut self.state, cost, now) {
            self.point.admitted += granted;
        }
    }
}

#[cfg(test)]
mod tests {
    use headgate::Algorithm;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn preview(algorithm: Algorithm, units: u64) -> Preview {
        Preview::of(&Limit::new(algorithm, units, MINUTE).unwrap(), units, MINUTE)
    }

    #[test]
    fn a_bucket_admits_its_burst_and_then_a_steady_rate() {
        let Preview { burst, steady } = preview(Algorithm::TokenBucket, 60);
        assert_eq!(burst.len(), 121);
        assert_eq!(burst[0].admitted, 60);
        assert_eq!((burst[60].after, burst[60].admitted), (MINUTE, 120));
        assert_eq!(burst[120].admitted, 180);
        let last = steady[120];
        assert_eq!((last.asked, last.admitted >= 140), (150, true), "{last:?}");
    }

    #[test]
    fn a_window_admits_its_limit_and_then_nothing_until_it_ends() {
        let Preview { burst, steady } = preview(Algorithm::FixedWindow, 60);
        assert_eq!((burst[0].admitted, burst[59].admitted), (60, 60));
        assert_eq!(burst[60].admitted, 120);
        assert!(steady.iter().all(|point| point.admitted <= point.asked));
    }

    #[test]
    fn the_largest_limit_takes_no_longer_than_the_smallest() {
        for algorithm in [Algorithm::SlidingWindow, Algorithm::SlidingWindowCounter] {
            let Preview { burst, .. } = preview(algorithm, 10_000);
            assert!(burst[0].admitted > 0, "{algorithm:?}");
        }
        let Preview { burst, .. } = preview(Algorithm::TokenBucket, u64::from(u32::MAX));
        assert!(burst[0].admitted > 0);
    }
}
