//! What this process holds of one subject.

use std::{sync::Arc, time::Duration};

use headgate::{Check, Grant, Limit, Outcome, OwnedKey, Timestamp};
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::{hand::Hand, pace::Pace};

/// What this process holds of one subject under one limit, and knows about it.
#[derive(Debug)]
pub(crate) struct Holding {
    key: OwnedKey,
    limit: Limit,
    /// In the order of their ends.
    hands: SmallVec<[Hand; 2]>,
    /// Units granted under an earlier limit, which only go back.
    outdated: Vec<Return>,
    denial: Option<Denial>,
    pub(crate) pace: Pace,
    /// The call that is under way.
    pub(crate) flight: Option<Arc<Notify>>,
    /// Units needed by the requests that wait for it.
    pub(crate) waiting: u64,
    last: Answer,
}

/// A denial by the store. Until it ends, nothing of its cost or more is admitted.
#[derive(Clone, Copy, Debug)]
struct Denial {
    cost: u64,
    remaining: u64,
    until: u64,
    retry_at: u64,
}

/// The last answer of the store.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Steady time from before the call.
    sent: u64,
    at: Timestamp,
    reset_at: u64,
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
    /// It has waited for a call.
    Waited,
}

/// A decision from what is known here.
pub(crate) enum Local {
    /// The cost was taken from this hand.
    Admitted(Outcome, Hand),
    Denied(Outcome),
    Unknown,
}

impl Holding {
    pub(crate) fn new(check: &Check<'_>, now: u64) -> Self {
        Self {
            key: check.key().to_owned(),
            limit: check.limit().clone(),
            hands: SmallVec::new(),
            outdated: Vec::new(),
            denial: None,
            pace: Pace::new(now),
            flight: None,
            waiting: 0,
            last: Answer { sent: now, at: Timestamp::default(), reset_at: now },
        }
    }

    /// Returns `true` if it is about this limit.
    pub(crate) fn is_of(&self, limit: &Limit) -> bool {
        self.limit == *limit
    }

    /// Starts anew under the limit of `check`. What was granted under the old one is not handed out.
    pub(crate) fn replace(&mut self, check: &Check<'_>, now: u64) {
        let outdated = self.end_all();
        *self = Self { outdated, ..Self::new(check, now) };
    }

    /// Returns `true` if nothing would be lost without it.
    pub(crate) fn is_idle(&self, now: u64) -> bool {
        self.flight.is_none()
            && self.waiting == 0
            && self.outdated.is_empty()
            && self.hands.iter().all(|hand| hand.until <= now)
            && self.denial.is_none_or(|denial| denial.until <= now)
    }

    /// Decides from what is held, if that is enough. Units that other requests are waiting for are
    /// left to them.
    pub(crate) fn decide(&mut self, check: &Check<'_>, turn: Turn, now: u64) -> Local {
        let cost = check.cost().get();
        if let Some(denial) = self.denial.filter(|denial| denial.until > now && denial.cost <= cost)
        {
            let retry_after = micros(denial.retry_at.saturating_sub(now));
            let (reset_after, at) = (self.reset_after(now), self.time(now));
            let capacity = self.limit.capacity();
            let left = denial.remaining;
            let outcome = Outcome::denial(capacity, left, reset_after, retry_after, at);
            return Local::Denied(outcome.leased());
        }
        let reserved = if turn == Turn::New { self.waiting } else { 0 };
        if check.extra().is_none() || self.units(now) < cost.saturating_add(reserved) {
            return Local::Unknown;
        }
        // The first to end is used first.
        let enough = |hand: &&mut Hand| hand.until > now && hand.units >= cost;
        let Some(hand) = self.hands.iter_mut().find(enough) else {
            return Local::Unknown;
        };
        hand.units -= cost;
        let taken = Hand { units: cost, ..*hand };
        self.pace.count(cost);
        Local::Admitted(self.admission(now), taken)
    }

    fn admission(&self, now: u64) -> Outcome {
        let (reset_after, at) = (self.reset_after(now), self.time(now));
        Outcome::admission(self.limit.capacity(), self.units(now), reset_after, at).leased()
    }

    fn reset_after(&self, now: u64) -> Duration {
        micros(self.last.reset_at.saturating_sub(now))
    }

    /// The time of the store, as far as it is known.
    fn time(&self, now: u64) -> Timestamp {
        self.last.at.plus(now.saturating_sub(self.last.sent))
    }

    /// Puts back units that were taken for a batch that was denied. Under another limit they are
    /// lost.
    pub(crate) fn put_back(&mut self, limit: &Limit, taken: Hand) {
        if self.is_of(limit) {
            self.add(taken);
        }
    }

    /// Learns from an answer of the store to a call that was sent at `sent`.
    pub(crate) fn learn(&mut self, check: &Check<'_>, outcome: &Outcome, sent: u64, hold: u64) {
        self.hands.retain(|hand| hand.until > sent);
        let cost = check.cost().get();
        let reset_at = sent.saturating_add(as_micros(outcome.reset_after));
        self.last = Answer { sent, at: outcome.at, reset_at };
        if outcome.allowed {
            self.denial = self.denial.filter(|denial| denial.cost > cost);
            self.pace.count(cost);
        } else if outcome.remaining < cost {
            let retry_at = sent.saturating_add(as_micros(outcome.retry_after));
            let until = retry_at.min(sent.saturating_add(hold));
            self.denial = Some(Denial { cost, remaining: outcome.remaining, until, retry_at });
        }
        if let Some(Grant { units, until }) = outcome.grant {
            let length = until.since(outcome.at);
            self.add(Hand { units, until: sent.saturating_add(length), granted_until: until });
        }
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

    pub(crate) fn forget_denial(&mut self) {
        self.denial = None;
    }
}

const fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn as_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
