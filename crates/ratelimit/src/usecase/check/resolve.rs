//! The rules that must admit a check, and what each of them counts.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use headgate::{Key, KeySpace};
use smallvec::SmallVec;

use super::{CheckError, Question};
use crate::{Attributes, CompiledRule, Level, Scope, Selector, Snapshot};

/// A rule, its key space and the subject that it counts.
pub(in crate::usecase) type AppliedRule<'s, 'q> =
    (&'s Arc<CompiledRule>, KeySpace<'s>, Cow<'q, str>);

/// The limits that must admit a check.
#[derive(Default)]
pub(in crate::usecase) struct Resolved<'s, 'q> {
    /// The enabled rules, each with the key that it counts.
    pub(in crate::usecase) limits: SmallVec<[AppliedRule<'s, 'q>; 4]>,
    /// A rule that matches, enabled or not.
    pub(in crate::usecase) matched: Option<&'s Arc<CompiledRule>>,
    /// Number of rules over attributes that match, enabled or not.
    pub(in crate::usecase) selected: usize,
}

impl<'s, 'q> Resolved<'s, 'q> {
    /// Resolves a check with attributes. The default rule applies to the subject of the scope
    /// `defaulted`, if no other rule of subjects does.
    pub(in crate::usecase) fn new(
        snapshot: &'s Snapshot,
        attributes: &'q Attributes<'_>,
        defaulted: Option<Scope>,
    ) -> Result<Self, CheckError> {
        let resolved = Self::unbounded(snapshot, attributes, defaulted)?;
        if resolved.selected > Selector::MAX_MATCHES {
            return Err(CheckError::TooManyRules);
        }
        Ok(resolved)
    }

    /// Resolves a check with any number of rules over attributes, to explain it.
    pub(in crate::usecase) fn unbounded(
        snapshot: &'s Snapshot,
        attributes: &'q Attributes<'_>,
        defaulted: Option<Scope>,
    ) -> Result<Self, CheckError> {
        let mut selected = snapshot.selected(attributes);
        let priority = |rule: &CompiledRule| rule.selector().map_or(0, Selector::priority);
        let stopping = selected.iter().filter(|rule| rule.selector().is_some_and(Selector::stops));
        let stop = stopping.map(|rule| priority(rule)).max().unwrap_or(i32::MIN);
        selected.retain(|rule| priority(rule) >= stop);
        selected.sort_by_key(|rule| (Reverse(priority(rule)), rule.window_seconds(), rule.id()));

        let mut resolved = Self {
            matched: selected.first().copied(),
            selected: selected.len(),
            ..Self::default()
        };
        // Rules of subjects have the priority 0.
        if stop <= 0 {
            for scope in Scope::ALL {
                resolved.add_subject(snapshot, attributes, scope, defaulted == Some(scope))?;
            }
        }
        for rule in selected.into_iter().filter(|rule| rule.is_enabled()) {
            if let Some(selector) = rule.selector() {
                let space = rule.space(Scope::Attributes);
                resolved.limits.push((rule, space, selector.subject(attributes)));
            }
        }
        Ok(resolved)
    }

    /// Adds the rules of the subject that the attribute of a scope names.
    fn add_subject(
        &mut self,
        snapshot: &'s Snapshot,
        attributes: &'q Attributes<'_>,
        scope: Scope,
        with_default: bool,
    ) -> Result<(), CheckError> {
        let value = attributes.get(scope.name());
        let Some(identifier) = value.and_then(|value| value.text()) else { return Ok(()) };
        let matched = snapshot.matching(scope, identifier);
        if matched.level == Level::Default && !with_default {
            return Ok(());
        }
        Key::new(identifier).map_err(|error| CheckError::Identifier { scope, error })?;
        self.matched = self.matched.or(matched.rules.first());
        for rule in matched.applied(None) {
            self.limits.push((rule, rule.space(scope), Cow::Borrowed(identifier)));
        }
        Ok(())
    }

    /// Returns what a rule counts, if it applies.
    pub(in crate::usecase) fn subject_of(&self, rule: &Arc<CompiledRule>) -> Option<&str> {
        let applied = self.limits.iter().find(|(other, ..)| Arc::ptr_eq(other, rule));
        applied.map(|(.., subject)| &**subject)
    }

    /// The limits of a subject alone.
    pub(super) fn of_stack(stack: &[&'s Arc<CompiledRule>], question: &Question<'q>) -> Self {
        let (scope, subject) = (question.scope, question.subject.subject());
        let limit = |rule: &&'s Arc<CompiledRule>| (*rule, rule.space(scope), subject.into());
        let limits = stack.iter().map(limit).collect();
        Self { limits, matched: stack.first().copied(), selected: 0 }
    }
}
