//! What a verb does to what was read: all or nothing, and no I/O.

use headgate::{Account, Check, Outcomes, Timestamp, Verb};

use crate::item::{Expected, Item};

/// What is known of one subject, and what must still be there when it is written.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) account: Account,
    /// When it was last changed.
    pub(crate) at: Timestamp,
    pub(crate) expected: Expected,
}

/// A decision, and what has to be written for it to be true.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) outcomes: Outcomes,
    pub(crate) changes: Vec<Change>,
}

/// One subject's write, with its place in the batch.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) place: usize,
    pub(crate) expected: Expected,
    /// Nothing when there is nothing left to remember.
    pub(crate) item: Option<Item>,
}

// === impl Step ===

impl Step {
    /// Does `verb` to all checks at one moment: the clock's, or that of the latest change if the clock is behind it.
    pub(crate) fn decide(
        verb: Verb,
        checks: &[Check<'_>],
        seen: &[Seen],
        clock: Timestamp,
    ) -> Self {
        let now = seen.iter().map(|seen| seen.at).fold(clock, Ord::max);
        let settled = checks.iter().zip(seen).map(|(check, seen)| {
            let mut account = seen.account.clone();
            account.settle(check.limit(), now);
            let allowed = account.permits(check.limit(), verb, check.cost(), now);
            (account, allowed)
        });
        let settled: Vec<(Account, bool)> = settled.collect();
        let has_room =
            |(check, (_, room)): (&Check<'_>, &(Account, bool))| *room || !check.mode().can_block();
        let all_allowed = checks.iter().zip(&settled).all(has_room);

        let mut step = Self { outcomes: Outcomes::new(), changes: Vec::new() };
        for (place, (mut account, allowed)) in settled.into_iter().enumerate() {
            let (check, seen) = (&checks[place], &seen[place]);
            let (limit, cost) = (check.limit(), check.cost());
            account.act(check, verb, now, check.mode().takes(allowed, all_allowed));
            step.outcomes.push(account.outcome(limit, verb, cost, now, allowed));
            if verb != Verb::Peek && !check.mode().is_read_only() {
                step.changes.extend(Change::between(place, check, seen, account, now));
            }
        }
        step
    }
}

// === impl Change ===

impl Change {
    /// What must be written for a subject that was `seen` to have this account, if anything.
    fn between(
        place: usize,
        check: &Check<'_>,
        seen: &Seen,
        account: Account,
        now: Timestamp,
    ) -> Option<Self> {
        let expected = seen.expected;
        match Item::new(check, account, now) {
            Some(item) if item.account == seen.account => None,
            None if Item::new(check, seen.account.clone(), now).is_none() => None,
            item => Some(Self { place, expected, item }),
        }
    }
}
