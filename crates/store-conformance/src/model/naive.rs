//! A naive implementation of the algorithms: it records every unit with its time, and adds up the
//! units that count for each check. It is slow and shares nothing with the engine's arithmetic, so
//! that they do not share mistakes.

use headgate::{Check, Extra, Grant, Lease, LeaseId, Limit, Timestamp, Verb, limit::Parameters};

/// Units taken by one subject.
#[derive(Default)]
pub(super) struct Naive {
    /// Units still counted and when they were taken, oldest first.
    taken: Vec<(u64, u64)>,
    /// A bucket's debt, in grains (`window` grains are a token), at `seen`.
    debt: u128,
    /// Grains that return every microsecond: the rate of the last limit that applied.
    rate: u128,
    seen: u64,
    leases: Vec<(LeaseId, u64, u64, u64)>,
    /// Granted units and the ends of their grants.
    granted: Vec<(u64, u64)>,
}

impl Naive {
    /// Applies `verb`; returns whether it was allowed, how many units are left, and how many were
    /// granted.
    pub(super) fn apply(
        &mut self,
        verb: Verb,
        check: &Check<'_>,
        now: Timestamp,
    ) -> (bool, u64, u64) {
        let now = now.as_micros();
        let (limit, cost) = (check.limit(), check.cost().get());
        self.advance(limit, now);
        let until = check.grant_until().map(Timestamp::as_micros);
        let allowed = match verb {
            Verb::GiveBack => self.granted_until(until) >= cost,
            _ => self.permits(verb, limit, cost, now),
        };
        let mut granted = 0;
        if verb != Verb::Peek {
            if let Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) =
                limit.parameters()
            {
                self.rate = bucket.rate().into();
            }
            if allowed {
                self.perform(verb, limit, cost, now);
            }
        }
        match (verb, check.extra(), until) {
            (Verb::Lease, Some(extra), _) if allowed => granted = self.grant(limit, extra, now),
            (Verb::GiveBack, _, Some(until)) if allowed => self.take_back(cost, until),
            _ => {}
        }
        (allowed, self.left(limit, now), granted)
    }

    /// Moves on to `now`: granted units are taken in the last microsecond of their grant, and
    /// reservations expire.
    fn advance(&mut self, limit: &Limit, now: u64) {
        self.granted.sort_by_key(|(_, until)| *until);
        while let Some((units, until)) = self.granted.first().copied().filter(|it| it.1 <= now) {
            self.granted.remove(0);
            self.flow(until - 1);
            self.expire(limit, until - 1);
            self.take(limit, units, until - 1);
        }
        self.flow(now);
        self.expire(limit, now);
    }

    fn grant(&mut self, limit: &Limit, extra: Extra, now: u64) -> u64 {
        let step = (extra.hold().as_micros() as u64 / 2).max(1);
        let until = ((now / step + 2) * step).min(window_end(limit, now));
        let mut ends: Vec<u64> = self.granted.iter().map(|(_, until)| *until).collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.len() >= Grant::MAX_ENDS && !ends.contains(&until) {
            return 0;
        }
        let units = self.left(limit, now).min(extra.units());
        self.granted.extend((units > 0).then_some((units, until)));
        units
    }

    fn granted_until(&self, end: Option<u64>) -> u64 {
        self.granted.iter().filter(|(_, until)| Some(*until) == end).map(|(units, _)| units).sum()
    }

    fn take_back(&mut self, mut cost: u64, end: u64) {
        for (units, _) in self.granted.iter_mut().filter(|(_, until)| *until == end) {
            let back = cost.min(*units);
            *units -= back;
            cost -= back;
        }
        self.granted.retain(|(units, _)| *units > 0);
    }

    fn flow(&mut self, now: u64) {
        let flown = u128::from(now - self.seen) * self.rate;
        (self.debt, self.seen) = (self.debt.saturating_sub(flown), now);
    }

    fn expire(&mut self, limit: &Limit, now: u64) {
        let (pending, over) = self.leases.iter().partition(|(_, _, _, end)| *end > now);
        self.leases = pending;
        let over: Vec<(LeaseId, u64, u64, u64)> = over;
        for (_, cost, at, _) in over {
            self.give_back(limit, cost, Some(at), now);
        }
    }

    fn permits(&self, verb: Verb, limit: &Limit, cost: u64, now: u64) -> bool {
        match verb {
            Verb::Peek | Verb::Acquire | Verb::Lease => self.fits(limit, cost, now),
            Verb::Reserve { .. } => {
                self.leases.len() < Lease::MAX_PENDING && self.fits(limit, cost, now)
            }
            Verb::Commit(id) | Verb::Cancel(id) => self.leases.iter().any(|lease| lease.0 == id),
            Verb::Refund | Verb::GiveBack | Verb::Reset => true,
        }
    }

    fn perform(&mut self, verb: Verb, limit: &Limit, cost: u64, now: u64) {
        match verb {
            Verb::Peek | Verb::GiveBack => {}
            Verb::Acquire | Verb::Lease => self.take(limit, cost, now),
            Verb::Reserve { id, lease } => {
                self.take(limit, cost, now);
                self.leases.push((id, cost, now, now + lease.as_micros() as u64));
            }
            Verb::Commit(id) => drop(self.end(id)),
            Verb::Cancel(id) => {
                if let Some((_, cost, at, _)) = self.end(id) {
                    self.give_back(limit, cost, Some(at), now);
                }
            }
            Verb::Refund => self.give_back(limit, cost, None, now),
            Verb::Reset => *self = Self { seen: now, ..Self::default() },
        }
    }

    fn end(&mut self, id: LeaseId) -> Option<(LeaseId, u64, u64, u64)> {
        let found = self.leases.iter().position(|lease| lease.0 == id)?;
        Some(self.leases.remove(found))
    }

    fn take(&mut self, limit: &Limit, cost: u64, now: u64) {
        match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                self.debt += u128::from(cost) * u128::from(bucket.window());
            }
            _ => self.taken.push((now, cost)),
        }
    }

    /// Removes `cost` units: those taken at `at`, or those that the algorithm returns first.
    fn give_back(&mut self, limit: &Limit, mut cost: u64, at: Option<u64>, now: u64) {
        if let Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) =
            limit.parameters()
        {
            let grains = u128::from(cost) * u128::from(bucket.window());
            self.debt = self.debt.saturating_sub(grains);
            return;
        }
        let (from, current) = (counted_from(limit, now), window_start(limit, now));
        // In a window it makes no difference which units return. The log removes the oldest, and
        // the two counters subtract from the newer one first.
        let logs = matches!(limit.parameters(), Parameters::SlidingWindow(_));
        let same_window = |unit: u64, at: u64| {
            if logs { unit == at } else { window_start(limit, unit) == window_start(limit, at) }
        };
        let two = matches!(limit.parameters(), Parameters::SlidingWindowCounter(_));
        let passes: &[fn(u64, u64) -> bool] =
            if two { &[|unit, current| unit >= current, |_, _| true] } else { &[|_, _| true] };
        for pass in passes {
            for (unit, count) in &mut self.taken {
                let counts = *unit >= from && at.is_none_or(|at| same_window(*unit, at));
                if counts && pass(*unit, current) {
                    let back = cost.min(*count);
                    *count -= back;
                    cost -= back;
                }
            }
        }
    }

    fn fits(&self, limit: &Limit, cost: u64, now: u64) -> bool {
        cost <= self.left(limit, now)
    }

    fn left(&self, limit: &Limit, now: u64) -> u64 {
        let most = u128::from(limit.capacity());
        let between = |from: u64, to: u64| -> u128 {
            let counted = self.taken.iter().filter(|(at, _)| (from..to).contains(at));
            counted.map(|(_, count)| u128::from(*count)).sum()
        };
        let left = match limit.parameters() {
            Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) => {
                let window = u128::from(bucket.window());
                (most * window).saturating_sub(self.debt) / window
            }
            Parameters::SlidingWindowCounter(counter) => {
                let (start, window) = (window_start(limit, now), counter.window());
                let covered = u128::from(window - (now - start));
                let weight = between(start - window, start) * covered
                    + between(start, u64::MAX) * u128::from(window);
                (most * u128::from(window)).saturating_sub(weight) / u128::from(window)
            }
            _ => most.saturating_sub(between(counted_from(limit, now), u64::MAX)),
        };
        let granted: u64 = self.granted.iter().map(|(units, _)| units).sum();
        (left as u64).saturating_sub(granted)
    }
}

/// The earliest time whose units still count at `now`.
fn counted_from(limit: &Limit, now: u64) -> u64 {
    match limit.parameters() {
        Parameters::SlidingWindow(log) => (now + 1).saturating_sub(log.window()),
        Parameters::SlidingWindowCounter(counter) => window_start(limit, now) - counter.window(),
        _ => window_start(limit, now),
    }
}

/// The end of the aligned window that `at` is in; none where there are no windows.
fn window_end(limit: &Limit, at: u64) -> u64 {
    match limit.parameters() {
        Parameters::FixedWindow(fixed) => window_start(limit, at) + fixed.window(),
        Parameters::SlidingWindowCounter(counter) => window_start(limit, at) + counter.window(),
        Parameters::Calendar(calendar) => calendar.bounds(Timestamp::from_micros(at)).1,
        _ => u64::MAX,
    }
}

/// The start of the aligned window that `at` is in; `at` itself where there are none.
fn window_start(limit: &Limit, at: u64) -> u64 {
    match limit.parameters() {
        Parameters::FixedWindow(fixed) => at - at % fixed.window(),
        Parameters::SlidingWindowCounter(counter) => at - at % counter.window(),
        Parameters::Calendar(calendar) => calendar.bounds(Timestamp::from_micros(at)).0,
        Parameters::TokenBucket(_) | Parameters::LeakyBucket(_) | Parameters::SlidingWindow(_) => {
            at
        }
    }
}
