//! What instances and a store agree on about grants, and mistakes that one could make.
//!
//! The sound protocol is the engine's own [`Account`]. Each mistake changes one thing; the tests
//! beside this file must find every one of them.

use std::time::Duration;

use headgate::{Account, Check, Cost, Extra, Grant, Key, Limit, Timestamp, Verb};

/// The protocol, or a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Sound,
    /// Granted units are recorded when they are granted, not when their grant ends.
    RecordedAtOnce,
    /// Units are granted that will only be available when the grant ends.
    AdmittedAtTheEnd,
    /// An instance counts from the arrival of the answer, not from before the call was sent.
    HeldFromTheAnswer,
    /// Units come back after their grant has ended.
    ReturnedLate,
    /// A call that returns units is sent again, and applied twice.
    ReturnedTwice,
    /// A grant lasts beyond the window in which it was made.
    OutlivesTheWindow,
}

/// A limit of one subject, and how long its units are held.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) protocol: Protocol,
    pub(super) limit: Limit,
    pub(super) hold: Duration,
}

/// A request that the store admitted, and what it granted beyond the cost.
pub(super) struct Admission {
    pub(super) grant: Option<Grant>,
}

impl Protocol {
    pub(super) const MISTAKES: [Self; 6] = [
        Self::RecordedAtOnce,
        Self::AdmittedAtTheEnd,
        Self::HeldFromTheAnswer,
        Self::ReturnedLate,
        Self::ReturnedTwice,
        Self::OutlivesTheWindow,
    ];
}

impl Terms {
    /// Decides a request that takes nothing in advance.
    pub(super) fn take(&self, account: &mut Account, units: u64, now: Timestamp) -> bool {
        self.apply(account, Verb::Acquire, units, now, |check| check).is_some()
    }

    /// Decides a request for one unit, and as much of `extra` as is available.
    pub(super) fn lease(
        &self,
        account: &mut Account,
        extra: u32,
        now: Timestamp,
    ) -> Option<Admission> {
        match self.protocol {
            Protocol::RecordedAtOnce => self.record_at_once(account, extra, now),
            Protocol::AdmittedAtTheEnd => self.grant_what_will_be_there(account, extra, now),
            Protocol::OutlivesTheWindow => {
                let until = now + self.hold;
                let grant = self.lease_as_built(account, extra, now)?.grant;
                Some(Admission { grant: grant.map(|grant| Grant { until, ..grant }) })
            }
            _ => self.lease_as_built(account, extra, now),
        }
    }

    /// Takes back units of a grant.
    pub(super) fn give_back(
        &self,
        account: &mut Account,
        units: u64,
        until: Timestamp,
        now: Timestamp,
    ) {
        match self.protocol {
            Protocol::RecordedAtOnce if now >= until => {}
            Protocol::RecordedAtOnce => self.refund(account, units, now),
            Protocol::ReturnedTwice => {
                self.give_back_as_built(account, units, until, now);
                self.give_back_as_built(account, units, until, now);
            }
            Protocol::ReturnedLate => {
                if !self.give_back_as_built(account, units, until, now) {
                    self.refund(account, units, now);
                }
            }
            _ => {
                self.give_back_as_built(account, units, until, now);
            }
        }
    }

    fn give_back_as_built(
        &self,
        account: &mut Account,
        units: u64,
        until: Timestamp,
        now: Timestamp,
    ) -> bool {
        self.apply(account, Verb::GiveBack, units, now, |check| check.from_grant_until(until))
            .is_some()
    }

    fn refund(&self, account: &mut Account, units: u64, now: Timestamp) {
        self.apply(account, Verb::Refund, units, now, |check| check);
    }

    /// The end of a grant by the clock of an instance, which sent its call at `sent` and hears the
    /// answer at `now`. The store decided at `at`.
    pub(super) fn end_for_holder(
        &self,
        grant: Grant,
        [sent, at, now]: [Timestamp; 3],
    ) -> Timestamp {
        let from = if self.protocol == Protocol::HeldFromTheAnswer { now } else { sent };
        from.plus(grant.until.since(at))
    }

    fn lease_as_built(
        &self,
        account: &mut Account,
        extra: u32,
        now: Timestamp,
    ) -> Option<Admission> {
        let extra = Extra::new(extra, self.hold);
        self.apply(account, Verb::Lease, 1, now, |check| check.with_extra(extra))
    }

    fn record_at_once(
        &self,
        account: &mut Account,
        extra: u32,
        now: Timestamp,
    ) -> Option<Admission> {
        if !self.take(account, 1, now) {
            return None;
        }
        let left = self.limit.remaining(&account.state, now).min(extra.into());
        let until = Grant::end(&self.limit, self.hold, now);
        let grant = Cost::new(left).ok().map(|units| {
            self.limit.record(&mut account.state, units, now);
            Grant { units: left, until }
        });
        Some(Admission { grant })
    }

    fn grant_what_will_be_there(
        &self,
        account: &mut Account,
        extra: u32,
        now: Timestamp,
    ) -> Option<Admission> {
        if !self.take(account, 1, now) {
            return None;
        }
        let until = Grant::end(&self.limit, self.hold, now);
        let last = Timestamp::from_micros(until.as_micros() - 1);
        let granted: u64 = account.grants.iter().map(|grant| grant.units).sum();
        let left = self.limit.remaining(&account.state, last).saturating_sub(granted);
        let grant = Grant { units: left.min(extra.into()), until };
        if grant.units == 0 {
            return Some(Admission { grant: None });
        }
        match account.grants.iter_mut().find(|other| other.until == until) {
            Some(same) => same.units += grant.units,
            None => account.grants.push(grant),
        }
        account.grants.sort_by_key(|grant| grant.until);
        Some(Admission { grant: Some(grant) })
    }

    fn apply(
        &self,
        account: &mut Account,
        verb: Verb,
        units: u64,
        now: Timestamp,
        terms: impl for<'a> Fn(Check<'a>) -> Check<'a>,
    ) -> Option<Admission> {
        let (key, cost) = (Key::new("u").unwrap(), Cost::new(units).unwrap());
        let check = terms(Check::new(key, &self.limit, cost).unwrap());
        account.settle(&self.limit, now);
        let permitted = account.permits(&check, verb, now);
        let grant = account.act(&check, verb, now, permitted);
        permitted.then_some(Admission { grant })
    }
}
