//! A batch over several slots of a cluster, which no single call can decide.

use std::time::Duration;

use futures_util::future::join_all;
use headgate::{Check, Outcomes, StoreError, Timestamp, Verb};

use crate::{caller::Caller, group::Group};

/// A batch over several slots of a cluster.
///
/// Every slot takes by itself, all at the same time. Where they do not agree, what was taken is
/// given back: nobody gets more than a limit, and for a moment somebody may see less of it.
pub(crate) struct Spread<'a> {
    caller: &'a Caller,
    groups: Vec<Group<'a>>,
}

impl<'a> Spread<'a> {
    pub(crate) fn new(caller: &'a Caller, checks: &[Check<'a>]) -> Self {
        Self { caller, groups: Group::by_slot(checks) }
    }

    pub(crate) fn is_in_one_slot(&self) -> bool {
        self.groups.len() == 1
    }

    pub(crate) async fn apply(&self, verb: Verb) -> Result<Outcomes, StoreError> {
        // Before anything is taken: with one node left alone it would be given back again.
        if !self.groups.iter().all(|group| self.caller.servers().admits(group.checks())) {
            return Err(StoreError::BreakerOpen);
        }
        let answers = self.ask_each(verb).await;
        let failure = failure(&answers);
        let mut answers: Vec<Outcomes> =
            answers.into_iter().map(Result::unwrap_or_default).collect();
        let takes = matches!(verb, Verb::Acquire | Verb::Reserve { .. });
        if takes && !self.agree(&answers) {
            self.give_back(verb, &mut answers).await;
        }
        failure.map_or_else(|| Ok(self.join(answers)), Err)
    }

    async fn ask_each(&self, verb: Verb) -> Vec<Result<Outcomes, StoreError>> {
        join_all(self.groups.iter().map(|group| self.caller.apply_admitted(verb, group.checks())))
            .await
    }

    /// Whether everything that binds has room, everywhere.
    fn agree(&self, answers: &[Outcomes]) -> bool {
        self.groups.iter().zip(answers).all(|(group, answer)| group.binding_have_room(answer))
    }

    /// Gives back what `verb` took in vain, and puts what is left then in place of the answers. A slot
    /// that did not answer, or does not now, keeps what it took: rather too little than too much is admitted.
    async fn give_back(&self, verb: Verb, answers: &mut [Outcomes]) {
        let taken = self.groups.iter().zip(&*answers);
        let taken = taken.map(|(group, answer)| (group.taken_together(answer), answer));
        let given = join_all(taken.map(|(group, answer)| async move {
            let given = self.give_back_one(verb, &group, answer).await;
            (group, given)
        }));
        for ((group, given), answer) in given.await.into_iter().zip(answers) {
            for (place, mut outcome) in group.places().iter().zip(given.unwrap_or_default()) {
                // There was room. A lease that ran out meanwhile has been given back all the same.
                (outcome.allowed, outcome.retry_after) = (true, Duration::ZERO);
                answer[*place] = outcome;
            }
        }
    }

    async fn give_back_one(
        &self,
        verb: Verb,
        group: &Group<'_>,
        answer: &Outcomes,
    ) -> Result<Outcomes, StoreError> {
        match verb {
            _ if group.checks().is_empty() => Ok(Outcomes::new()),
            Verb::Reserve { id, .. } => {
                self.caller.apply_admitted(Verb::Cancel(id), group.checks()).await
            }
            _ => {
                let at = |place: &usize| answer[*place].at;
                let taken: Vec<Timestamp> = group.places().iter().map(at).collect();
                self.caller.undo(group.checks(), &taken).await
            }
        }
    }

    /// Puts the groups' answers back into the batch's order.
    fn join(&self, answers: Vec<Outcomes>) -> Outcomes {
        let places = self.groups.iter().flat_map(Group::places);
        let mut sorted: Vec<_> = places.zip(answers.into_iter().flatten()).collect();
        sorted.sort_unstable_by_key(|(place, _)| **place);
        sorted.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

/// Why a batch has no answer. That its call was not sent is only said if none was: another slot may
/// have done what was asked.
fn failure(answers: &[Result<Outcomes, StoreError>]) -> Option<StoreError> {
    let errors = || answers.iter().filter_map(|answer| answer.as_ref().err());
    let sent = errors().find(|error| !error.is_unsent());
    let error = sent.or_else(|| errors().next())?.clone();
    let is_part = errors().count() < answers.len();
    Some(if is_part && error.is_unsent() { StoreError::Refused(error.to_string()) } else { error })
}
