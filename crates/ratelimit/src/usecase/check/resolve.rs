//! The rules that must admit a check, and what each of them counts.

use std::{borrow::Cow, cmp::Reverse, sync::Arc};

use headgate::{Key, KeySpace, Timestamp};
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
        now: &dyn Fn() -> Timestamp,
    ) -> Result<Self, CheckError> {
        let resolved = Self::unbounded(snapshot, attributes, defaulted, now)?;
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
        now: &dyn Fn() -> Timestamp,
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
                let with_default = defaulted == Some(scope);
                resolved.add_subject(snapshot, attributes, scope, with_default, now)?;
            }
        }
        for rule in selected.into_iter().filter(|rule| rule.is_enabled()) {
            if let Some(selector) = rule.selector() {
                let rule = snapshot.with_limit_for(rule, attributes, now);
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
        now: &dyn Fn() -> Timestamp,
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
            let rule = snapshot.with_limit_for(rule, attributes, now);
            self.limits.push((rule, rule.space(scope), Cow::Borrowed(identifier)));
        }
        Ok(())
    }

    /// Returns a rule with the limit of the check and what it counts, if it applies.
    pub(in crate::usecase) fn applied(
        &self,
        rule: &CompiledRule,
    ) -> Option<(&'s Arc<CompiledRule>, &str)> {
        let applied = self.limits.iter().find(|(other, ..)| other.id() == rule.id());
        applied.map(|(rule, _, subject)| (*rule, &**subject))
    }

    /// The limits of a subject alone; `matched` is reported if there are none.
    pub(super) fn of_stack(
        stack: &[&'s Arc<CompiledRule>],
        question: &Question<'q>,
        matched: &'s Arc<CompiledRule>,
    ) -> Self {
        let (scope, subject) = (question.scope, question.subject.subject());
        let limit = |rule: &&'s Arc<CompiledRule>| (*rule, rule.space(scope), subject.into());
        let limits = stack.iter().map(limit).collect();
        Self { limits, matched: Some(matched), selected: 0 }
    }
}
