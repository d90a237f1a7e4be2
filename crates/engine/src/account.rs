//! The state of one subject under one limit, with its pending reservations.

use std::time::Duration;

use crate::{
    Check, Cost, Lease, LeaseId, Limit, Outcome, State, Timestamp, Verb, algorithm::TakenAt,
};

/// The state of one subject, and the reference implementation of every [`Verb`].
///
/// Stores may represent states differently, and make the same decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The state of the algorithm.
    pub state: State,
    /// Pending reservations.
    pub leases: Vec<Lease>,
}

impl Account {
    /// Returns the units of expired reservations.
    pub fn settle(&mut self, limit: &Limit, now: Timestamp) {
        let Self { state, leases } = self;
        leases.retain(|lease| {
            let pending = lease.expires_at > now;
            if !pending {
                limit.give_back(state, lease.cost, TakenAt::Known(lease.taken_at), now);
            }
            pending
        });
    }

    /// Returns `true` if this limit permits `verb`.
    pub fn permits(&self, limit: &Limit, verb: Verb, cost: Cost, now: Timestamp) -> bool {
        match verb {
            Verb::Peek | Verb::Acquire => limit.admits(&self.state, cost, now),
            Verb::Reserve { .. } => {
                self.leases.len() < Lease::MAX_PENDING && limit.admits(&self.state, cost, now)
            }
            Verb::Commit(id) | Verb::Cancel(id) => self.lease(id).is_some(),
            Verb::Refund | Verb::Reset => true,
        }
    }

    /// Applies `verb`, which must be [permitted](Self::permits).
    pub fn perform(&mut self, limit: &Limit, verb: Verb, cost: Cost, now: Timestamp) {
        if verb != Verb::Peek {
            limit.adopt(&mut self.state, now);
        }
        match verb {
            Verb::Peek => {}
            Verb::Acquire => {
                limit.admit(&mut self.state, cost, now);
            }
            Verb::Reserve { id, lease } => {
                limit.admit(&mut self.state, cost, now);
                let expires_at = now + lease;
                self.leases.push(Lease { id, cost, taken_at: now, expires_at });
            }
            Verb::Commit(id) => {
                self.release(id);
            }
            Verb::Cancel(id) => {
                if let Some(lease) = self.release(id) {
                    let taken = TakenAt::Known(lease.taken_at);
                    limit.give_back(&mut self.state, lease.cost, taken, now);
                }
            }
            Verb::Refund => limit.give_back(&mut self.state, cost, TakenAt::Unknown, now),
            Verb::Reset => *self = Self::default(),
        }
    }

    /// Applies `verb` once the whole batch is decided. `takes` is the result of
    /// [`CheckMode::takes`](crate::CheckMode::takes).
    pub fn act(&mut self, check: &Check<'_>, verb: Verb, now: Timestamp, takes: bool) {
        if check.mode().is_read_only() {
            return;
        }
        if takes {
            self.perform(check.limit(), verb, check.cost(), now);
        } else {
            self.refuse(check.limit(), verb, now);
        }
    }

    /// Records that `verb` was denied: if the limit has changed, the new one applies from here on.
    pub fn refuse(&mut self, limit: &Limit, verb: Verb, now: Timestamp) {
        if verb != Verb::Peek {
            limit.adopt(&mut self.state, now);
        }
    }

    /// Returns the outcome of `verb` and `cost`, given the state after the decision.
    pub fn outcome(
        &self,
        limit: &Limit,
        verb: Verb,
        cost: Cost,
        now: Timestamp,
        allowed: bool,
    ) -> Outcome {
        let mut outcome = limit.outcome(&self.state, cost, now, allowed);
        if self.leases.is_empty() {
            return outcome;
        }
        // Reservations that expire return their units, possibly before the algorithm does.
        let mut state = self.state.clone();
        let mut leases = self.leases.clone();
        leases.sort_unstable_by_key(|lease| lease.expires_at);
        let reserves = matches!(verb, Verb::Reserve { .. });
        if reserves && !allowed && leases.len() >= Lease::MAX_PENDING {
            // Too many reservations are pending: one more fits only when the first of them expires.
            outcome.retry_after = Duration::MAX;
        }
        for lease in leases {
            let then = lease.expires_at;
            limit.give_back(&mut state, lease.cost, TakenAt::Known(lease.taken_at), then);
            let after = |micros| Duration::from_micros(then.since(now) + micros);
            outcome.reset_after = outcome.reset_after.min(after(limit.reset_after(&state, then)));
            let retry = after(limit.retry_after(&state, cost, then));
            outcome.retry_after = outcome.retry_after.min(retry);
        }
        outcome
    }

    fn lease(&self, id: LeaseId) -> Option<usize> {
        self.leases.iter().position(|lease| lease.id == id)
    }

    fn release(&mut self, id: LeaseId) -> Option<Lease> {
        self.lease(id).map(|found| self.leases.remove(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CheckMode, Key};

    #[test]
    fn read_only_checks_do_not_even_apply_a_new_rate() {
        let now = Timestamp::from_micros(1_000_000);
        let window = Duration::from_secs(60);
        let before = Limit::token_bucket(10, window).unwrap();
        let mut account = Account::default();
        account.perform(&before, Verb::Acquire, Cost::ONE, now);
        let after = Limit::token_bucket(20, window).unwrap();
        let check = Check::new(Key::new("u").unwrap(), &after, Cost::ONE).unwrap();
        for mode in [CheckMode::Probe, CheckMode::Report] {
            let mut checked = account.clone();
            checked.act(&check.with_mode(mode), Verb::Acquire, now, false);
            assert_eq!(checked, account, "{mode:?}");
        }
        let mut denied = account.clone();
        denied.act(&check, Verb::Acquire, now, false);
        assert_ne!(denied, account, "a denial applies the new rate");
    }

    #[test]
    fn reservations_beyond_the_maximum_are_denied_although_units_are_left() {
        let now = Timestamp::from_micros(1_000_000);
        let limit = Limit::token_bucket(1_000_000, Duration::from_secs(60)).unwrap();
        let mut account = Account::default();
        let reserve = |n: usize| {
            let id = LeaseId::from(n as u64);
            Verb::Reserve { id, lease: Duration::from_secs(10) }
        };
        for n in 0..Lease::MAX_PENDING {
            assert!(account.permits(&limit, reserve(n), Cost::ONE, now), "{n}");
            account.perform(&limit, reserve(n), Cost::ONE, now);
        }
        assert!(!account.permits(&limit, reserve(Lease::MAX_PENDING), Cost::ONE, now));
        assert!(account.permits(&limit, Verb::Acquire, Cost::ONE, now));
        assert!(account.permits(&limit, Verb::Refund, Cost::ONE, now));
        assert!(!account.permits(&limit, Verb::Commit(LeaseId::from(999_999)), Cost::ONE, now));
    }
}
