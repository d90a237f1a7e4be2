//! The part of a batch that is decided in one call.

use headgate::{Check, CheckMode, Outcomes};

use crate::slot;

/// Checks that can be decided in one call, with their places in the batch.
pub(crate) struct Group<'a> {
    slot: u16,
    places: Vec<usize>,
    checks: Vec<Check<'a>>,
}

impl<'a> Group<'a> {
    pub(crate) fn by_slot(checks: &[Check<'a>]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        for (place, check) in checks.iter().enumerate() {
            let slot = slot::of(check.key().to_string().as_bytes());
            let known = groups.iter().position(|group| group.slot == slot);
            let i = known.unwrap_or_else(|| {
                groups.push(Self { slot, places: Vec::new(), checks: Vec::new() });
                groups.len() - 1
            });
            groups[i].places.push(place);
            groups[i].checks.push(*check);
        }
        groups
    }

    pub(crate) fn places(&self) -> &[usize] {
        &self.places
    }

    pub(crate) fn checks(&self) -> &[Check<'a>] {
        &self.checks
    }

    /// Whether everything that binds has room, as this answer says.
    pub(crate) fn binding_have_room(&self, answer: &Outcomes) -> bool {
        self.checks.len() == answer.len()
            && self
                .checks
                .iter()
                .zip(answer)
                .all(|(check, outcome)| outcome.allowed || !check.mode().can_block())
    }

    /// Those that this answer took from and that others' refusals stop, with their places in this group.
    pub(crate) fn taken_together(&self, answer: &Outcomes) -> Self {
        let all = self.binding_have_room(answer);
        let taken = self.checks.iter().zip(answer).enumerate().filter(|(_, (check, outcome))| {
            check.mode().can_be_blocked() && check.mode().takes(outcome.allowed, all)
        });
        let (places, checks) =
            taken.map(|(place, (check, _))| (place, check.with_mode(CheckMode::Required))).unzip();
        Self { slot: self.slot, places, checks }
    }
}
