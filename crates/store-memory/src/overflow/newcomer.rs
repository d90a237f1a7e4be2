//! The verbs for a subject without a place of its own.

use std::time::Duration;

use headgate::{Account, Check, Outcome, Timestamp, Verb};

use super::Overflow;
use crate::fingerprint::Fingerprint;

/// A subject whose usage is known from shared cells alone. Nothing is given back to those, because
/// it might be another's: refunds, cancelled and expired reservations flow back with time.
#[derive(Debug)]
pub(crate) struct Newcomer {
    pub(crate) fingerprint: Fingerprint,
    pub(crate) account: Account,
    /// How long until another reservation of a newcomer ends, where no more can be remembered.
    pub(crate) no_lease_for: Option<Duration>,
}

impl Newcomer {
    pub(crate) fn permits(&self, check: &Check<'_>, verb: Verb, now: Timestamp) -> bool {
        let remembered = !matches!(verb, Verb::Reserve { .. }) || self.no_lease_for.is_none();
        remembered && self.account.permits(check.limit(), verb, check.cost(), now)
    }

    /// Does `verb`, once it is known whether this check and all that bind are permitted.
    pub(crate) fn act(
        &mut self,
        overflow: &Overflow,
        check: &Check<'_>,
        verb: Verb,
        now: Timestamp,
        takes: bool,
    ) {
        if verb != Verb::Peek {
            overflow.count_decision();
        }
        if !takes {
            return;
        }
        let Self { fingerprint, account, .. } = self;
        let limit = check.limit();
        match verb {
            Verb::Peek | Verb::Refund => {}
            Verb::Acquire | Verb::Reserve { .. } => {
                account.perform(limit, verb, check.cost(), now);
                overflow.raise(*fingerprint, limit, &account.state, now);
            }
            Verb::Commit(id) | Verb::Cancel(id) => account.leases.retain(|lease| lease.id != id),
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
        let mut outcome = check.limit().outcome(&self.account.state, check.cost(), now, allowed);
        if !allowed
            && matches!(verb, Verb::Reserve { .. })
            && let Some(wait) = self.no_lease_for
        {
            outcome.retry_after = outcome.retry_after.max(wait);
        }
        outcome
    }
}
