//! The effect of a verb on the items read: all or nothing, without I/O.

use headgate::{Account, Check, Outcomes, Timestamp, Verb};

use crate::item::{Expected, Item};

/// State of a key as read, and the condition of a write to it.
#[derive(Clone, Debug)]
pub(crate) struct ReadState {
    pub(crate) account: Account,
    /// Time of the last change.
    pub(crate) at: Timestamp,
    pub(crate) expected: Expected,
}

/// A decision, and the writes that it needs.
#[derive(Debug)]
pub(crate) struct Transition {
    pub(crate) outcomes: Outcomes,
    pub(crate) changes: Vec<Change>,
}

/// The write of one key, with its position in the batch.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) position: usize,
    pub(crate) expected: Expected,
    /// `None` deletes the item.
    pub(crate) item: Option<Item>,
}

// === impl Transition ===

impl Transition {
    /// Applies `verb` to all checks at the time of the clock, or of the latest change if the clock
    /// is behind it.
    pub(crate) fn decide(
        verb: Verb,
        checks: &[Check<'_>],
        seen: &[ReadState],
        clock: Timestamp,
    ) -> Self {
        let now = seen.iter().map(|seen| seen.at).fold(clock, Ord::max);
        let settled = checks.iter().zip(seen).map(|(check, seen)| {
            let mut account = seen.account.clone();
            account.settle(check.limit(), now);
            let allowed = account.permits(check, verb, now);
            (account, allowed)
        });
        let settled: Vec<(Account, bool)> = settled.collect();
        let has_room =
            |(check, (_, room)): (&Check<'_>, &(Account, bool))| *room || !check.mode().can_block();
        let all_allowed = checks.iter().zip(&settled).all(has_room);

        let mut transition = Self { outcomes: Outcomes::new(), changes: Vec::new() };
        for (position, (mut account, allowed)) in settled.into_iter().enumerate() {
            let (check, seen) = (&checks[position], &seen[position]);
            let (limit, cost) = (check.limit(), check.cost());
            let grant = account.act(check, verb, now, check.mode().takes(allowed, all_allowed));
            let outcome = account.outcome(limit, verb, cost, now, allowed);
            transition.outcomes.push(outcome.with_grant(grant));
            if verb != Verb::Peek && !check.mode().is_read_only() {
                transition.changes.extend(Change::between(position, check, seen, account, now));
            }
        }
        transition
    }
}

// === impl Change ===

impl Change {
    /// The write that changes a key from `seen` to this account, if it differs.
    fn between(
        position: usize,
        check: &Check<'_>,
        seen: &ReadState,
        account: Account,
        now: Timestamp,
    ) -> Option<Self> {
        let expected = seen.expected;
        match Item::new(check, account, now) {
            Some(item) if item.account == seen.account => None,
            None if Item::new(check, seen.account.clone(), now).is_none() => None,
            item => Some(Self { position, expected, item }),
        }
    }
}
