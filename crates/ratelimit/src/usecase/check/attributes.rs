//! Checks with attributes.

use std::sync::Arc;

use headgate::{Batch, Cost, Key, Verb};
use smallvec::SmallVec;

use super::{CheckError, CheckRateLimit, Question, Resolved, RuleSelection, Stack, Verdict};
use crate::{Attributes, Scope, Snapshot};

/// A check with attributes. All rules that match must admit it: those over attributes, and those of
/// the subjects that the attributes `service`, `user` and `endpoint` name.
#[derive(Clone, Debug)]
pub struct AttributesQuestion<'a> {
    /// What is known about the request.
    pub attributes: Attributes<'a>,
    /// The scope whose subject has the default limit if no rule of its scope matches; `None` if the
    /// default limit does not apply.
    pub defaulted: Option<Scope>,
    /// Units to consume.
    pub cost: Cost,
}

impl CheckRateLimit {
    /// Consumes the cost if every rule that matches admits it, in one store call. Returns `None` if
    /// no rule matches, so that nothing is limited.
    pub async fn check_attributes(
        &self,
        question: &AttributesQuestion<'_>,
    ) -> Result<Option<Verdict>, CheckError> {
        let verdict = self.decide_attributes(Verb::Acquire, question).await?;
        if let Some(verdict) = &verdict {
            verdict.rule.tally().count(verdict.decision.allowed);
        }
        Ok(verdict)
    }

    /// Returns what [`check_attributes`](Self::check_attributes) would, and consumes nothing.
    pub async fn peek_attributes(
        &self,
        question: &AttributesQuestion<'_>,
    ) -> Result<Option<Verdict>, CheckError> {
        self.decide_attributes(Verb::Peek, question).await
    }

    async fn decide_attributes(
        &self,
        verb: Verb,
        question: &AttributesQuestion<'_>,
    ) -> Result<Option<Verdict>, CheckError> {
        let snapshot = self.catalog.load();
        let now = || self.catalog.now();
        let resolved = Resolved::new(&snapshot, &question.attributes, question.defaulted, &now)?;
        self.decide_resolved(verb, &resolved, question.cost).await
    }

    /// Decides a check of a subject to which rules over attributes may apply.
    pub(super) async fn decide_selected(
        &self,
        snapshot: &Arc<Snapshot>,
        verb: Verb,
        question: &Question<'_>,
    ) -> Result<Verdict, CheckError> {
        let attributes = question.attributes();
        let now = || self.catalog.now();
        let resolved = Resolved::new(snapshot, &attributes, Some(question.scope), &now)?;
        match self.decide_resolved(verb, &resolved, question.cost).await? {
            Some(verdict) => Ok(verdict),
            // Not reached: the default rule matches every subject.
            None => self.exempt(snapshot, question),
        }
    }

    async fn decide_resolved(
        &self,
        verb: Verb,
        resolved: &Resolved<'_, '_>,
        cost: Cost,
    ) -> Result<Option<Verdict>, CheckError> {
        if resolved.limits.is_empty() {
            return Ok(resolved.matched.map(|rule| self.exempt_by(rule)));
        }
        let checks = resolved.limits.iter().map(|(rule, space, subject)| {
            let key = Key::new(subject).map_err(CheckError::Subject)?.within(space);
            Ok(rule.check(key, cost)?)
        });
        let checks = checks.collect::<Result<SmallVec<[_; 2]>, CheckError>>()?;
        let outcomes = self.limiter.apply(verb, &Batch::new(checks)?).await?;
        let stack: Stack<'_> = resolved.limits.iter().map(|(rule, ..)| *rule).collect();
        Ok(Some(Verdict::of(&stack, &outcomes)))
    }
}

impl<'a> Question<'a> {
    /// Returns `true` if rules over attributes may apply.
    pub(super) const fn needs_selectors(&self, snapshot: &Snapshot) -> bool {
        matches!(self.selection, RuleSelection::Matching) && snapshot.has_selectors()
    }

    /// Returns the subject as an attribute, if rules over attributes may apply.
    pub(super) fn attributes_for(&self, snapshot: &Snapshot) -> Attributes<'a> {
        if self.needs_selectors(snapshot) { self.attributes() } else { Attributes::default() }
    }

    /// Returns the subject as an attribute.
    pub(super) fn attributes(&self) -> Attributes<'a> {
        let mut attributes = Attributes::default();
        // Cannot fail: a subject is shorter than an attribute may be.
        let _ = attributes.insert(self.scope.name(), self.subject.subject());
        attributes
    }
}

#[cfg(test)]
mod tests;
