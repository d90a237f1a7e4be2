//! A subject whose state has no fixed size, or that has reservations or grants.

use headgate::{Account, State, Timestamp, Verb};

/// An account, with the times at which something of it ends.
#[derive(Debug)]
pub(crate) struct Heavy {
    pub(crate) account: Account,
    /// Time at which nothing of it is left, or a later one.
    pub(crate) until: Timestamp,
    /// Time at which the first reservation or grant ends, or an earlier one.
    pub(crate) next_end: Timestamp,
}

impl Heavy {
    /// An end that `verb` may have added, and no other change of the ends; `None` if all of them
    /// must be looked at.
    pub(crate) fn ends_after(&self, verb: Verb, now: Timestamp) -> Option<Timestamp> {
        match verb {
            _ if !self.account.grants.is_empty() => None,
            Verb::Reserve { lease, .. } => Some(now + lease),
            // It is remembered until the reservation would have ended.
            Verb::Commit(_) => Some(self.next_end),
            _ => None,
        }
    }

    pub(crate) fn weight(&self) -> usize {
        let entries = if let State::Log(log) = &self.account.state { log.len() } else { 0 };
        let Account { leases, settled, grants, .. } = &self.account;
        entries.max(1) + leases.len() + settled.len() + grants.len()
    }
}
