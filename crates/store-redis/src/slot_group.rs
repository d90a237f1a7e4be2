//! The checks of a batch that share a slot.

use headgate::{Check, CheckMode, Outcomes};

use crate::{call::Acquired, slot};

/// Checks that share a slot, with their positions in the batch.
pub(crate) struct SlotGroup<'a> {
    slot: u16,
    positions: Vec<usize>,
    checks: Vec<Check<'a>>,
}

impl<'a> SlotGroup<'a> {
    pub(crate) fn by_slot(checks: &[Check<'a>]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (position, check) in checks.iter().enumerate() {
            let slot = slot::of(check.key().to_string().as_bytes());
            let found = groups.iter().position(|group| group.slot == slot);
            let i = found.unwrap_or_else(|| {
                groups.push(Self { slot, positions: Vec::new(), checks: Vec::new() });
                groups.len() - 1
            });
            groups[i].positions.push(position);
            groups[i].checks.push(*check);
        }
        groups
    }

    pub(crate) fn positions(&self) -> &[usize] {
        &self.positions
    }

    pub(crate) fn checks(&self) -> &[Check<'a>] {
        &self.checks
    }

    /// Returns `true` if every binding check is allowed in this reply.
    pub(crate) fn binding_allowed(&self, reply: &Outcomes) -> bool {
        self.checks.len() == reply.len()
            && self
                .checks
                .iter()
                .zip(reply)
                .all(|(check, outcome)| outcome.allowed || !check.mode().can_block())
    }

    /// The checks that took units in this reply and are undone if another group denies, with their
    /// positions in this group. What an earlier request with the same id has taken stays.
    pub(crate) fn taken_together(&self, reply: &Outcomes, acquired: &[Acquired]) -> Self {
        let all = self.binding_allowed(reply);
        let replies = self.checks.iter().zip(reply).zip(acquired).enumerate();
        let taken = replies.filter(|(_, ((check, outcome), acquired))| {
            let mode = check.mode();
            mode.can_be_blocked() && mode.takes(outcome.allowed, all) && !acquired.existed
        });
        let (positions, checks) = taken
            .map(|(position, ((check, _), _))| (position, check.with_mode(CheckMode::Required)))
            .unzip();
        Self { slot: self.slot, positions, checks }
    }
}
