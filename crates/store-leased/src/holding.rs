//! What this process holds of one subject.

use std::{sync::Arc, time::Duration};

use headgate::{Check, Extra, Grant, Limit, Outcome, OwnedKey, Timestamp};
use smallvec::SmallVec;

use crate::{
    answer::{Answer, CallTimes},
    denial::Denial,
    flight::Ended,
    hand::Hand,
    pace::Pace,
    refill::Refill,
};

/// What this process holds of one subject under one limit, and knows about it.
#[derive(Debug)]
pub(crate) struct Holding {
    key: OwnedKey,
    limit: Limit,
    /// In the order of their ends.
    hands: SmallVec<[Hand; 2]>,
    /// Units granted under an earlier limit, which only go back, when they are due.
    outdated: Vec<Return>,
    denial: Option<Denial>,
    pub(crate) pace: Pace,
    refill: Refill,
    /// The call that is under way.
    pub(crate) flight: Option<Arc<Ended>>,
    /// Units needed by the requests that wait for it.
    pub(crate) waiting: u64,
    /// The last answer of the store.
    last: Answer,
}

/// Units to return.
#[derive(Debug)]
pub(crate) struct Return {
    pub(crate) key: OwnedKey,
    pub(crate) limit: Limit,
    pub(crate) hand: Hand,
}

/// The turn of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    New,
    /// It is about to call the store.
    Calls,
    /// It has waited for a call.
    Waited,
    /// The store has not admitted it.
    Refused,
}

/// A decision from what is known here.
pub(crate) enum Local {
    /// The cost was taken from this hand.
    Admitted(Outcome, Hand),
    /// A denial is remembered.
    Denied,
    Unknown,
}

impl Holding {
    /// Nothing of a subject that was seen before at `since`.
    pub(crate) fn new(check: &Check<'_>, since: u64) -> Self {
        Self {
            key: check.key().to_owned(),
            limit: check.limit().clone(),
            hands: SmallVec::new(),
            outdated: Vec::new(),
            denial: None,
            pace: Pace::new(since),
            refill: Refill::Never,
            flight: None,
            waiting: 0,
            last: Answer::none(since),
        }
    }

    /// Returns `true` if it is about this limit.
    pub(crate) fn is_of(&self, limit: &Limit) -> bool {
        self.limit == *limit
    }

    /// Starts anew under the limit of `check`. What was granted under the old one is not handed out:
    /// returns it, up to `most` grants; the rest goes back when it is due.
    ///
    /// It goes back under the new limit, which applies at the store from now on. Grants that have
    /// ended are dropped, so that their number is bounded even if no one gives them back.
    pub(crate) fn replace(
        &mut self,
        check: &Check<'_>,
        [since, now]: [u64; 2],
        most: usize,
    ) -> Vec<Return> {
        let mut all = self.end_all();
        for outdated in &mut all {
            outdated.limit = check.limit().clone();
        }
        let mut outdated = all.split_off(all.len().min(most));
        outdated.retain(|it| it.hand.until > now);
        *self = Self { outdated, ..Self::new(check, since) };
        all
    }

    /// Returns `true` if nothing would be lost without it, and it has not been used for a while.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        now.saturating_sub(self.pace.last_call()) > as_micros(Extra::MAX_HOLD)
            && self.flight.is_none()
            && self.waiting == 0
            && self.outdated.iter().all(|it| it.hand.until <= now)
            && self.hands.iter().all(|hand| hand.until <= now)
            && self.denial.is_none_or(|denial| denial.until <= now)
            && self.last.until <= now
    }

    /// Decides from what is held, if that is enough. Units that other requests are waiting for are
    /// left to them, and a request that asks for more decides nothing.
    pub(crate) fn decide(&mut self, check: &Check<'_>, turn: Turn, now: u64) -> Local {
        let cost = check.cost().get();
        if self.refills(check, turn, now) {
            return Local::Unknown;
        }
        if let Some(taken) = self.take(check, turn, now) {
            self.pace.count(cost);
            return Local::Admitted(self.admission(now), taken);
        }
        if turn == Turn::Refused || self.denial(check, now).is_none() {
            return Local::Unknown;
        }
        self.pace.count(cost);
        Local::Denied
    }

    /// Returns `true` if this request asks for more, although there may be enough for it.
    fn refills(&mut self, check: &Check<'_>, turn: Turn, now: u64) -> bool {
        let is_due = turn == Turn::New
            && check.extra().is_some()
            && self.flight.is_none()
            && self.refill.is_due(self.units(now), now);
        if is_due {
            self.refill = Refill::Claimed;
        }
        is_due || turn == Turn::Calls && self.refill == Refill::Claimed
    }

    /// Returns `true` if a call is needed for a check, or about to be made to have more.
    pub(crate) fn needs_call(&self, check: &Check<'_>, now: u64) -> bool {
        let needed = check.cost().get().saturating_add(self.waiting);
        self.units(now) < needed || self.refill == Refill::Claimed
    }

    /// The units to ask for now, so that at most `most` are held: what is worth it by the subject's
    /// pace, and what requests are waiting for.
    pub(crate) fn order(&mut self, now: u64, hold: u64, most: u64) -> u64 {
        self.refill = Refill::Never;
        let at = self.last.time(now);
        let length = Grant::end(&self.limit, micros(hold), at).since(at);
        let order = self.pace.order(now, hold, length).max(self.waiting);
        let left = self.units(now);
        // What ends soon goes back, as far as it is not used before.
        let ends = self.hands.last().map_or(0, |hand| hand.until.saturating_sub(now));
        let used = self.pace.expected_within(ends.saturating_sub(hold / 8), hold).min(left);
        order.saturating_sub(used).min(most.saturating_sub(left))
    }

    /// Takes the cost from what is held; the first to end is used first.
    fn take(&mut self, check: &Check<'_>, turn: Turn, now: u64) -> Option<Hand> {
        let cost = check.cost().get();
        let reserved = if matches!(turn, Turn::New | Turn::Calls) { self.waiting } else { 0 };
        if check.extra().is_none() || self.units(now) < cost.saturating_add(reserved) {
            return None;
        }
        let enough = |hand: &&mut Hand| hand.until > now && hand.units >= cost;
        let hand = self.hands.iter_mut().find(enough)?;
        hand.units -= cost;
        Some(Hand { units: cost, ..*hand })
    }

    /// The denial that is still in force for this cost. A larger one would have to wait longer.
    pub(crate) fn denial(&self, check: &Check<'_>, now: u64) -> Option<Outcome> {
        let denial = self.denial.filter(|it| it.until > now && it.cost == check.cost().get())?;
        let retry_after = micros(denial.retry_at.saturating_sub(now));
        let (reset_after, at) = (self.last.reset_after(now), self.last.time(now));
        let (capacity, left) = (self.limit.capacity(), denial.remaining);
        Some(Outcome::denial(capacity, left, reset_after, retry_after, at).leased())
    }

    /// What the store said a moment ago, for a batch that a remembered denial denies.
    pub(crate) fn recall(&self, check: &Check<'_>, now: u64) -> Option<Outcome> {
        let Answer { remaining, until, .. } = self.last;
        self.denial(check, now).or_else(|| {
            let is_known = until > now && remaining >= check.cost().get();
            let (reset_after, at) = (self.last.reset_after(now), self.last.time(now));
            let capacity = self.limit.capacity();
            is_known.then(|| Outcome::admission(capacity, remaining, reset_after, at).leased())
        })
    }

    /// Returns `true` if the last call was denied this cost, even if that is no longer in force.
    pub(crate) fn was_denied(&self, check: &Check<'_>) -> bool {
        self.is_of(check.limit()) && self.denial.is_some_and(|it| it.cost <= check.cost().get())
    }

    fn admission(&self, now: u64) -> Outcome {
        let (reset_after, at) = (self.last.reset_after(now), self.last.time(now));
        Outcome::admission(self.limit.capacity(), self.units(now), reset_after, at).leased()
    }

    /// Puts back units that were taken for a batch that was denied. Under another limit they are
    /// lost.
    pub(crate) fn put_back(&mut self, limit: &Limit, taken: Hand) {
        if self.is_of(limit) {
            self.add(taken);
        }
    }

    /// Learns from an answer of the store. Returns the units of grants that have ended, which are
    /// lost.
    pub(crate) fn learn(
        &mut self,
        check: &Check<'_>,
        outcome: &Outcome,
        times: CallTimes,
        hold: u64,
    ) -> u64 {
        let sent = times.sent;
        let ended = self.hands.iter().filter(|hand| hand.until <= sent);
        let lost = ended.map(|hand| hand.units).sum();
        self.hands.retain(|hand| hand.until > sent && hand.units > 0);
        let cost = check.cost().get();
        // As `at`, so that both together are the store's time of the reset, to the microsecond.
        let reset_at = sent.saturating_add(as_micros(outcome.reset_after));
        let (at, remaining, until) = (outcome.at, outcome.remaining, sent.saturating_add(hold));
        self.last = Answer { sent, at, reset_at, remaining, until };
        self.pace.count(cost);
        if outcome.allowed {
            let granted = outcome.grant().map_or(0, |grant| grant.units);
            self.pace.admitted(outcome.remaining.saturating_add(granted));
            self.denial = self.denial.filter(|denial| denial.cost > cost);
        } else {
            self.pace.denied();
        }
        self.denial = Denial::learned(check, outcome, times, hold).or(self.denial);
        if let Some(Grant { units, until }) = outcome.grant() {
            let length = until.since(outcome.at);
            let end = sent.saturating_add(length);
            self.add(Hand { units, until: end, granted_until: until });
            let units = self.units(sent);
            self.refill = Refill::after(units, outcome.remaining, [end, length, hold]);
        }
        lost
    }

    fn add(&mut self, new: Hand) {
        let same = |hand: &&mut Hand| hand.granted_until == new.granted_until;
        if let Some(hand) = self.hands.iter_mut().find(same) {
            hand.units += new.units;
            // Two calls measured the same end: the earlier one is safe for both.
            hand.until = hand.until.min(new.until);
        } else {
            let place = self.hands.partition_point(|hand| hand.until < new.until);
            self.hands.insert(place, new);
        }
    }

    /// Takes out the hand whose grant ends then, to return or forget it.
    pub(crate) fn end(&mut self, granted_until: Timestamp) -> Option<Return> {
        let ends = |hand: &Hand| hand.granted_until == granted_until;
        if let Some(place) = self.outdated.iter().position(|it| ends(&it.hand)) {
            return Some(self.outdated.swap_remove(place));
        }
        let hand = self.hands.iter().position(ends).map(|place| self.hands.remove(place))?;
        Some(Return { key: self.key.clone(), limit: self.limit.clone(), hand })
    }

    /// Takes out all hands.
    pub(crate) fn end_all(&mut self) -> Vec<Return> {
        let ends: SmallVec<[Timestamp; 2]> =
            self.hands.iter().map(|hand| hand.granted_until).collect();
        let mut all = std::mem::take(&mut self.outdated);
        all.extend(ends.into_iter().filter_map(|end| self.end(end)));
        all
    }

    /// Units that can be handed out.
    pub(crate) fn units(&self, now: u64) -> u64 {
        self.hands.iter().filter(|hand| hand.until > now).map(|hand| hand.units).sum()
    }

    /// The units that can be handed out, and the end of the last of them.
    pub(crate) fn held(&self, now: u64) -> Option<Grant> {
        let live = || self.hands.iter().filter(|hand| hand.until > now && hand.units > 0);
        let until = live().map(|hand| hand.granted_until).max()?;
        Some(Grant { units: live().map(|hand| hand.units).sum(), until })
    }

    /// Forgets what the store said: units have come back.
    pub(crate) fn forget_denial(&mut self) {
        self.denial = None;
        self.last.until = 0;
    }
}

pub(crate) const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(crate) fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
