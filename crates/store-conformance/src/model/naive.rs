//! A naive implementation of the algorithms: it records every unit with its time, and adds up the
//! units that count for each check. It is slow and shares nothing with the engine's arithmetic, so
//! that they do not share mistakes.

use std::time::Duration;

use headgate::{
    Check, Cost, Extra, Grant, Lease, LeaseId, Limit, Settled, Spent, Timestamp, Verb,
    limit::Parameters,
};

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
    leases: Vec<Reserved>,
    settled: Vec<(LeaseId, u64, u64)>,
    /// Granted units and the ends of their grants.
    granted: Vec<(u64, u64)>,
    /// Holders of places: their leases, if they have names, places and ends.
    places: Vec<(Option<LeaseId>, u64, u64)>,
}

/// A pending reservation.
struct Reserved {
    id: LeaseId,
    units: u64,
    used: u64,
    at: u64,
    end: u64,
    /// Grains that return to a bucket.
    returns: u128,
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
        if let Parameters::Concurrency(_) = limit.parameters() {
            return self.apply_to_places(verb, check, now);
        }
        self.advance(limit, now);
        let until = check.grant_until().map(Timestamp::as_micros);
        let allowed = match verb {
            Verb::GiveBack => self.granted_until(until) >= cost,
            _ => self.permits(verb, check, now),
        };
        let mut granted = 0;
        // A verb that names a reservation or a grant is trusted with a lower rate only.
        let is_by_name =
            matches!(verb, Verb::Use { .. } | Verb::Commit(_) | Verb::Cancel(_) | Verb::GiveBack);
        if let Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) =
            limit.parameters()
            && !matches!(verb, Verb::Peek | Verb::Refund)
            && (!is_by_name || allowed && u128::from(bucket.rate()) < self.rate)
        {
            self.rate = bucket.rate().into();
        }
        if allowed && verb != Verb::Peek {
            self.perform(verb, check, now);
        }
        match (verb, check.extra(), until) {
            (Verb::Lease, Some(extra), _) if allowed => granted = self.grant(limit, extra, now),
            (Verb::GiveBack, _, Some(until)) if allowed => self.take_back(cost, until),
            _ => {}
        }
        (allowed, self.left(limit, now), granted)
    }

    fn apply_to_places(&mut self, verb: Verb, check: &Check<'_>, now: u64) -> (bool, u64, u64) {
        self.places.retain(|(_, _, end)| *end > now);
        let (limit, cost) = (check.limit(), check.cost().get());
        let in_use = |places: &[(_, u64, _)]| places.iter().map(|(_, units, _)| units).sum::<u64>();
        let fits = in_use(&self.places) + cost <= limit.capacity();
        let longest = limit.window().unwrap_or_default();
        let named = |id, lease: Duration| (Some(id), lease.min(longest));
        let ended = |id| (Some(id), Duration::ZERO);
        let (takes, (id, lease)) = match verb {
            Verb::Acquire => {
                (true, check.place().map_or((None, longest), |it| named(it.id, it.lease)))
            }
            Verb::Lease => (true, (None, longest)),
            Verb::Reserve { id, lease } => (true, named(id, lease)),
            Verb::Use { id, lease } => (false, named(id, lease)),
            Verb::Commit(id) | Verb::Cancel(id) => (false, ended(id)),
            Verb::Peek | Verb::Refund | Verb::GiveBack | Verb::Reset => (false, (None, longest)),
        };
        let end = now + lease.as_micros() as u64;
        let mut own = self.places.iter_mut().filter(|place| id.is_some() && place.0 == id);
        let is_held = own.next().map(|place| place.2 = end).is_some();
        let allowed = match verb {
            Verb::Peek => fits,
            Verb::GiveBack => false,
            Verb::Refund => true,
            Verb::Reset => {
                self.places.clear();
                true
            }
            Verb::Commit(_) => is_held || check.was_spent().is_some(),
            _ => is_held || takes && fits,
        };
        if takes && fits && !is_held {
            self.places.push((id, cost, end));
        }
        self.places.retain(|(_, _, end)| *end > now);
        (allowed, limit.capacity().saturating_sub(in_use(&self.places)), 0)
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
        while let Some(over) = self.leases.iter().position(|lease| lease.end <= now) {
            let lease = self.leases.remove(over);
            self.return_reserved(limit, &lease, lease.units, now);
        }
        self.settled.retain(|(_, _, until)| *until > now);
    }

    fn permits(&self, verb: Verb, check: &Check<'_>, now: u64) -> bool {
        let (limit, cost) = (check.limit(), check.cost().get());
        let is_pending = |id| self.leases.iter().any(|lease| lease.id == id);
        match verb {
            Verb::Peek | Verb::Acquire | Verb::Lease => self.fits(limit, cost, now),
            Verb::Reserve { id, .. } => {
                let is_settled = self.settled.iter().any(|settled| settled.0 == id);
                let has_room = self.leases.len() < Lease::MAX_PENDING && !is_settled;
                is_pending(id) || has_room && self.fits(limit, cost, now)
            }
            Verb::Use { id, .. } | Verb::Cancel(id) => is_pending(id),
            Verb::Commit(id) => {
                let before = self.settled.iter().rev().find(|settled| settled.0 == id);
                let same = |spent: Spent| before.is_some_and(|it| it.1 == spent.units());
                is_pending(id) || check.was_spent().is_some_and(same)
            }
            Verb::Refund | Verb::GiveBack | Verb::Reset => true,
        }
    }

    fn perform(&mut self, verb: Verb, check: &Check<'_>, now: u64) {
        let (limit, cost) = (check.limit(), check.cost().get());
        let lasts = |lease: Duration| now + lease.as_micros() as u64;
        match verb {
            Verb::Peek | Verb::GiveBack => {}
            Verb::Acquire | Verb::Lease => self.take(limit, cost, now),
            Verb::Reserve { id, .. } if self.leases.iter().any(|lease| lease.id == id) => {}
            Verb::Reserve { id, lease } => self.reserve(limit, id, (cost, 0), now, lasts(lease)),
            Verb::Use { id, lease } => {
                let spent = check.was_spent().unwrap_or(Spent::with_overdraft(cost));
                self.charge(limit, id, spent, now, lasts(lease));
            }
            Verb::Commit(id) => self.settle(check, id, now),
            Verb::Cancel(id) => {
                if let Some(lease) = self.end(id) {
                    self.return_reserved(limit, &lease, lease.units, now);
                }
            }
            Verb::Refund => {
                let at = check.was_taken_at().map(Timestamp::as_micros);
                self.refund(limit, cost, at, now);
            }
            Verb::Reset => *self = Self { seen: now, ..Self::default() },
        }
    }

    fn reserve(
        &mut self,
        limit: &Limit,
        id: LeaseId,
        (units, used): (u64, u64),
        at: u64,
        end: u64,
    ) {
        self.take(limit, units, at);
        let returns = u128::from(units) * window(limit);
        self.leases.push(Reserved { id, units, used, at, end, returns });
    }

    fn charge(&mut self, limit: &Limit, id: LeaseId, spent: Spent, now: u64, end: u64) {
        let Some(place) = self.leases.iter().position(|lease| lease.id == id) else { return };
        let lease = &mut self.leases[place];
        let before = if spent.is_total() { lease.used } else { 0 };
        let units = spent.units().saturating_sub(before);
        lease.used = (lease.used + units).min(Cost::MAX);
        lease.end = end;
        if lease.units >= 2 * units {
            lease.units -= units;
            lease.returns = lease.returns.min(u128::from(lease.units) * window(limit));
            return;
        }
        let lease = self.leases.remove(place);
        let beyond = units.saturating_sub(lease.units);
        self.take(limit, beyond.min(self.room(limit, now)), now);
        let rest = lease.units.saturating_sub(units);
        self.return_reserved(limit, &lease, rest, now);
        let anew = self.left(limit, now).min(units);
        self.reserve(limit, id, (anew, lease.used), now, end);
    }

    fn settle(&mut self, check: &Check<'_>, id: LeaseId, now: u64) {
        let Some(lease) = self.end(id) else { return };
        let Some(spent) = check.was_spent() else { return };
        let limit = check.limit();
        let unused = spent.units().saturating_sub(lease.used);
        self.return_reserved(limit, &lease, lease.units.saturating_sub(unused), now);
        let most = if spent.is_overdraft() { self.room(limit, now) } else { self.left(limit, now) };
        self.take(limit, unused.saturating_sub(lease.units).min(most), now);
        self.settled.push((id, spent.units(), lease.end));
        let too_many = self.settled.len().saturating_sub(Settled::MAX_REMEMBERED);
        self.settled.drain(..too_many);
    }

    fn end(&mut self, id: LeaseId) -> Option<Reserved> {
        let found = self.leases.iter().position(|lease| lease.id == id)?;
        Some(self.leases.remove(found))
    }

    /// Units that can be taken before the debt is as large as it can be.
    fn room(&self, limit: &Limit, now: u64) -> u64 {
        let most = limit.capacity().saturating_mul(Limit::MAX_DEBT + 1);
        self.left_of(
            match limit.parameters() {
                Parameters::SlidingWindowCounter(_) => most.min(u64::from(u32::MAX)),
                _ => most.min(Cost::MAX),
            },
            limit,
            now,
        )
    }

    /// Returns units of a reservation: to a bucket, only what has not refilled.
    fn return_reserved(&mut self, limit: &Limit, lease: &Reserved, units: u64, now: u64) {
        match limit.parameters() {
            Parameters::TokenBucket(_) | Parameters::LeakyBucket(_) => {
                let returned = lease.returns.min(u128::from(units) * window(limit));
                self.debt = self.debt.saturating_sub(returned);
            }
            _ => self.refund(limit, units, Some(lease.at), now),
        }
    }

    fn take(&mut self, limit: &Limit, cost: u64, now: u64) {
        match limit.parameters() {
            Parameters::TokenBucket(_) | Parameters::LeakyBucket(_) => {
                if cost > 0 {
                    self.note_refilled();
                }
                self.debt += u128::from(cost) * window(limit);
            }
            _ => self.taken.push((now, cost)),
        }
    }

    /// Before a take: all reservations together return at most the debt. Whatever exceeds it is no
    /// longer returned, the oldest first.
    fn note_refilled(&mut self) {
        let mut rest = self.debt;
        // From the newest on, each keeps what the newer ones leave.
        for lease in self.leases.iter_mut().rev() {
            lease.returns = lease.returns.min(rest);
            rest -= lease.returns;
        }
    }

    /// Returns `cost` units that were taken at `at`, if that is known.
    fn refund(&mut self, limit: &Limit, mut cost: u64, at: Option<u64>, now: u64) {
        if let Parameters::TokenBucket(bucket) | Parameters::LeakyBucket(bucket) =
            limit.parameters()
        {
            let elapsed = at.map_or(0, |at| now.saturating_sub(at));
            let refilled = u128::from(elapsed) * self.rate.max(bucket.rate().into());
            let grains = (u128::from(cost) * window(limit)).saturating_sub(refilled);
            self.debt = self.debt.saturating_sub(grains);
            return;
        }
        let from = counted_from(limit, now);
        // The log removes the newest that are not later than `at`, or else the oldest. In a window
        // it makes no difference which units return; the two counters subtract from the newer one.
        let logs = matches!(limit.parameters(), Parameters::SlidingWindow(_));
        let newest_first = !logs || at.is_some();
        let returns = |unit: u64| {
            let same = |at: u64| {
                if logs { unit <= at } else { window_start(limit, unit) == window_start(limit, at) }
            };
            unit >= from && at.is_none_or(same)
        };
        let mut counts: Vec<_> = self.taken.iter_mut().filter(|(unit, _)| returns(*unit)).collect();
        if newest_first {
            counts.reverse();
        }
        for (_, count) in counts {
            let back = cost.min(*count);
            *count -= back;
            cost -= back;
        }
    }

    fn fits(&self, limit: &Limit, cost: u64, now: u64) -> bool {
        cost <= self.left(limit, now)
    }

    fn left(&self, limit: &Limit, now: u64) -> u64 {
        self.left_of(limit.capacity(), limit, now)
    }

    fn left_of(&self, most: u64, limit: &Limit, now: u64) -> u64 {
        let most = u128::from(most);
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

/// Grains of a unit.
fn window(limit: &Limit) -> u128 {
    limit.window().map_or(0, |window| window.as_micros())
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
        Parameters::TokenBucket(_)
        | Parameters::LeakyBucket(_)
        | Parameters::SlidingWindow(_)
        | Parameters::Concurrency(_) => at,
    }
}
