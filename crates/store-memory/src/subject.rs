//! A subject of a batch, while the batch is decided.

use std::time::Duration;

use headgate::{Account, Check, Grant, Outcome, Timestamp, Verb};

use crate::{fingerprint::Fingerprint, overflow::Overflow};

/// A subject that was taken out of the store while its batch is decided.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) account: Account,
    pub(crate) kept_in: KeptIn,
}

/// Location of a subject's state.
#[derive(Debug)]
pub(crate) enum KeptIn {
    /// A slot of its own.
    Slot,
    /// A slot of its own, but the store has no room for another holder: a concurrency limit admits
    /// none until a place is free. The sketch could not tell whose places are released.
    Full,
    /// Nowhere: an [exact](Check::exact) check is never counted in the sketch, and no slot is free.
    Nowhere,
    /// The cells of the sketch, which it shares with others. Nothing is returned to those, because
    /// it might be another subject's: refunds, and what settled, cancelled and expired reservations
    /// have left only age out. Nor is anything granted, or a settlement remembered.
    Overflow {
        /// Time until one more reservation can be kept; `None` if it can be now.
        no_lease_for: Option<Duration>,
    },
}

impl Subject {
    /// Other subjects are in the way, and it is unknown when there is room.
    const FULL_RETRY_AFTER: Duration = Duration::from_secs(1);

    pub(crate) fn permits(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        if matches!(self.kept_in, KeptIn::Full) {
            let id = verb.reservation().or_else(|| check.place().map(|place| place.id));
            return id.is_some_and(|id| self.account.holds(id));
        }
        if matches!(self.kept_in, KeptIn::Nowhere) {
            return false;
        }
        self.no_lease_for(verb).is_none() && self.account.permits(check, verb, now)
    }

    /// Applies `verb` once the whole batch is decided. `takes` is as in
    /// [`Account::act`](headgate::Account::act). Returns what is granted beyond the cost.
    pub(crate) fn act(
        &mut self,
        overflow: &Overflow,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        takes: bool,
    ) -> Option<Grant> {
        match self.kept_in {
            KeptIn::Slot | KeptIn::Full => {
                let grant = self.account.act(check, verb, now, takes);
                // Its usage from before it had a slot is deleted, too.
                if verb == Verb::Reset && takes {
                    overflow.clear(self.fingerprint, check.limit(), now);
                }
                grant
            }
            KeptIn::Nowhere => None,
            KeptIn::Overflow { .. } => {
                if verb != Verb::Peek {
                    overflow.count_decision();
                }
                if takes {
                    self.act_in_overflow(overflow, check, verb, now);
                }
                None
            }
        }
    }

    fn act_in_overflow(
        &mut self,
        overflow: &Overflow,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
    ) {
        let Self { fingerprint, account, .. } = self;
        let limit = check.limit();
        match verb {
            Verb::Peek | Verb::Refund | Verb::GiveBack => {}
            Verb::Acquire
            | Verb::Lease
            | Verb::Reserve { .. }
            | Verb::Use { .. }
            | Verb::Commit(_) => {
                account.perform(check, verb, now);
                overflow.charge(*fingerprint, check, &account.state, now);
                // What returned did not return to the cells.
                account.state = overflow.usage(*fingerprint, limit, now);
            }
            Verb::Cancel(id) => account.leases.retain(|lease| lease.id != id),
            Verb::Reset => {
                overflow.clear(*fingerprint, limit, now);
                *account = Account::default();
            }
        }
    }

    pub(crate) fn outcome(
        &self,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        allowed: bool,
    ) -> Outcome {
        let (limit, cost) = (check.limit(), check.cost());
        match self.kept_in {
            KeptIn::Slot => return self.account.outcome(limit, verb, cost, now, allowed),
            KeptIn::Full => {
                let mut outcome = self.account.outcome(limit, verb, cost, now, allowed);
                if !allowed {
                    outcome.remaining = 0;
                    outcome.retry_after = outcome.retry_after.max(Self::FULL_RETRY_AFTER);
                }
                return outcome;
            }
            KeptIn::Nowhere => {
                let mut outcome = self.account.outcome(limit, verb, cost, now, false);
                outcome.retry_after = Self::FULL_RETRY_AFTER;
                return outcome;
            }
            KeptIn::Overflow { .. } => {}
        }
        let standing = |id| self.account.standing(limit, id, now);
        let outcome = limit.outcome(&self.account.state, cost, now, allowed);
        let mut outcome = outcome.with_reservation(verb.reservation().map(standing));
        if !allowed && let Some(wait) = self.no_lease_for(verb) {
            outcome.retry_after = outcome.retry_after.max(wait);
        }
        outcome
    }

    const fn no_lease_for(&self, verb: Verb) -> Option<Duration> {
        match (&self.kept_in, verb) {
            (KeptIn::Overflow { no_lease_for }, Verb::Reserve { .. }) => *no_lease_for,
            _ => None,
        }
    }
}
