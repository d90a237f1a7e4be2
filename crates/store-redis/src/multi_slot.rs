//! A batch over several slots of a cluster, which a single call cannot decide.

use std::time::Duration;

use futures_util::future::join_all;
use headgate::{Check, Outcomes, StoreError, Verb};

use crate::{call::Acquired, runner::ScriptRunner, slot_group::SlotGroup};

/// The outcomes of a group, and what undoing needs to know of a verb that takes.
type Answer = (Outcomes, Vec<Acquired>);

/// A batch over several slots of a cluster.
///
/// Every slot decides by itself, concurrently. If one of them denies, the others are undone: no
/// limit is exceeded, but for a moment less of it is available.
pub(crate) struct MultiSlotBatch<'a> {
    runner: &'a ScriptRunner,
    groups: Vec<SlotGroup<'a>>,
}

impl<'a> MultiSlotBatch<'a> {
    pub(crate) fn new(runner: &'a ScriptRunner, checks: &[Check<'a>]) -> Self {
        Self { runner, groups: SlotGroup::by_slot(checks) }
    }

    pub(crate) fn is_in_one_slot(&self) -> bool {
        self.groups.len() == 1
    }

    pub(crate) async fn apply(&self, verb: Verb) -> Result<Outcomes, StoreError> {
        // Before anything is taken: with one circuit breaker open, all of it would be undone.
        if !self.groups.iter().all(|group| self.runner.servers().admits(group.checks())) {
            return Err(StoreError::BreakerOpen);
        }
        let replies = join_all(self.groups.iter().map(|group| self.ask(verb, group))).await;
        let failure = failure(&replies);
        let (mut replies, acquired): (Vec<Outcomes>, Vec<Vec<Acquired>>) =
            replies.into_iter().map(Result::unwrap_or_default).unzip();
        if takes(verb) && !self.agree(&replies) {
            self.undo(verb, &mut replies, &acquired).await;
        }
        failure.map_or_else(|| Ok(self.join(replies)), Err)
    }

    async fn ask(&self, verb: Verb, group: &SlotGroup<'_>) -> Result<Answer, StoreError> {
        let checks = group.checks();
        if takes(verb) {
            return self.runner.take_admitted(verb, checks).await;
        }
        Ok((self.runner.apply_admitted(verb, checks).await?, Vec::new()))
    }

    /// Returns `true` if every binding check is allowed in every slot.
    fn agree(&self, replies: &[Outcomes]) -> bool {
        self.groups.iter().zip(replies).all(|(group, reply)| group.binding_allowed(reply))
    }

    /// Undoes what `verb` took, and replaces the replies with the state after that. A slot that
    /// does not reply keeps the units that it took: admitting too little is better than too much.
    async fn undo(&self, verb: Verb, replies: &mut [Outcomes], acquired: &[Vec<Acquired>]) {
        let taken = self.groups.iter().zip(&*replies).zip(acquired);
        let taken = taken
            .map(|((group, reply), acquired)| (group.taken_together(reply, acquired), acquired));
        let given = join_all(taken.map(|(group, acquired)| async move {
            let given = self.undo_group(verb, &group, acquired).await;
            (group, given)
        }));
        for ((group, given), reply) in given.await.into_iter().zip(replies) {
            for (position, mut outcome) in group.positions().iter().zip(given.unwrap_or_default()) {
                // It was allowed. A lease that has expired meanwhile has been returned, too.
                (outcome.allowed, outcome.retry_after) = (true, Duration::ZERO);
                reply[*position] = outcome;
            }
        }
    }

    async fn undo_group(
        &self,
        verb: Verb,
        group: &SlotGroup<'_>,
        acquired: &[Acquired],
    ) -> Result<Outcomes, StoreError> {
        match verb {
            _ if group.checks().is_empty() => Ok(Outcomes::new()),
            Verb::Reserve { id, .. } => {
                self.runner.apply_admitted(Verb::Cancel(id), group.checks()).await
            }
            _ => {
                let taken: Vec<Acquired> =
                    group.positions().iter().map(|position| acquired[*position]).collect();
                self.runner.undo(group.checks(), &taken).await
            }
        }
    }

    /// Merges the replies of the groups in the order of the batch.
    fn join(&self, replies: Vec<Outcomes>) -> Outcomes {
        let positions = self.groups.iter().flat_map(SlotGroup::positions);
        let mut sorted: Vec<_> = positions.zip(replies.into_iter().flatten()).collect();
        sorted.sort_unstable_by_key(|(position, _)| **position);
        sorted.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

const fn takes(verb: Verb) -> bool {
    matches!(verb, Verb::Acquire | Verb::Reserve { .. })
}

/// Error of a batch. It is "not sent" only if no call was sent: another slot may have executed its
/// part.
fn failure(replies: &[Result<Answer, StoreError>]) -> Option<StoreError> {
    let errors = || replies.iter().filter_map(|reply| reply.as_ref().err());
    let sent = errors().find(|error| !error.is_unsent());
    let error = sent.or_else(|| errors().next())?.clone();
    let is_part = errors().count() < replies.len();
    Some(if is_part && error.is_unsent() { StoreError::Refused(error.to_string()) } else { error })
}
