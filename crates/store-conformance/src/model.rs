//! The reference: the engine's accounts in a map.

use std::collections::HashMap;

use headgate::{Account, Check, Holders, Outcome, Timestamp, Verb};

/// The reference that every store must agree with.
#[derive(Debug, Default)]
pub struct Model {
    accounts: HashMap<String, Account>,
}

impl Model {
    /// Applies `verb` to `checks`, all or nothing, each at its own time: the parts of a cluster
    /// have clocks of their own.
    pub fn apply(&mut self, verb: Verb, checks: &[Check<'_>], times: &[Timestamp]) -> Vec<Outcome> {
        let mut permitted = Vec::new();
        for (check, now) in checks.iter().zip(times) {
            let account = self.accounts.entry(check.key().to_string()).or_default();
            account.settle(check.limit(), *now);
            permitted.push(account.permits(check, verb, *now));
        }
        let all =
            checks.iter().zip(&permitted).all(|(check, room)| *room || !check.mode().can_block());
        let mut outcomes = Vec::new();
        for ((check, now), permitted) in checks.iter().zip(times).zip(permitted) {
            let account = self.accounts.entry(check.key().to_string()).or_default();
            let grant = account.act(check, verb, *now, check.mode().takes(permitted, all));
            let outcome = account.outcome(check.limit(), verb, check.cost(), *now, permitted);
            outcomes.push(outcome.with_grant(grant));
        }
        outcomes
    }

    /// Lists the holders of the concurrency limit of `check`.
    pub fn holders(&self, check: &Check<'_>, max: usize, now: Timestamp) -> Holders {
        let account = self.accounts.get(&check.key().to_string());
        Holders::of(&account.cloned().unwrap_or_default().state, max, now)
    }
}

#[cfg(test)]
mod explorer;
#[cfg(test)]
mod holders;
#[cfg(test)]
mod naive;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod random;
#[cfg(test)]
mod returns;
#[cfg(test)]
mod tests;
