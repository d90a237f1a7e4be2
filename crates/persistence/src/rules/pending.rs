//! Changes that are applied in memory before they are written.

use std::collections::{HashMap, HashSet};

use headgate::Timestamp;
use headgate_ratelimit::{RateLimitRule, RepositoryError, RuleChange, RuleId, RuleSpec};

use crate::moment::Moment;

/// Applies changes in memory, so that only their result is written.
pub(super) struct PendingChanges {
    now: Timestamp,
    /// The rules that the changes name: original fields, and the current rule unless deleted.
    present: HashMap<RuleId, (RuleSpec, Option<RateLimitRule>)>,
    created: Vec<RateLimitRule>,
    applied: Vec<AppliedChange>,
}

/// A change as the audit log records it.
pub(super) struct AppliedChange {
    pub(super) id: RuleId,
    pub(super) before: Option<RuleSpec>,
    pub(super) after: Option<RuleSpec>,
}

// === impl PendingChanges ===

impl PendingChanges {
    /// Creates changes at `now` of the rules in `present`.
    pub(super) fn new(present: Vec<RateLimitRule>, now: Timestamp) -> Self {
        let known = |rule: RateLimitRule| (rule.id, (rule.spec.clone(), Some(rule)));
        let present = present.into_iter().map(known).collect();
        Self { now, present, created: Vec::new(), applied: Vec::new() }
    }

    /// Applies a change; returns the new rule, or the old one of a deletion.
    pub(super) fn apply(&mut self, change: &RuleChange) -> Result<RateLimitRule, RepositoryError> {
        match change {
            RuleChange::Create(spec) => Ok(self.create(spec)),
            RuleChange::Update(id, spec) => self.update(*id, spec),
            RuleChange::UpdateIfUnchanged(id, spec, expected) => {
                self.check_unchanged(*id, *expected)?;
                self.update(*id, spec)
            }
            RuleChange::Delete(id) => self.delete(*id),
            RuleChange::DeleteIfUnchanged(id, expected) => {
                self.check_unchanged(*id, *expected)?;
                self.delete(*id)
            }
        }
    }

    /// Refuses a change of a rule that has another `updated_at`; the change reports a missing rule.
    fn check_unchanged(&self, id: RuleId, expected: Timestamp) -> Result<(), RepositoryError> {
        match self.present.get(&id) {
            Some((_, Some(rule))) if rule.updated_at != expected => {
                Err(RepositoryError::Changed(id))
            }
            _ => Ok(()),
        }
    }

    fn create(&mut self, spec: &RuleSpec) -> RateLimitRule {
        let (id, now) = (RuleId::random(), self.now);
        let rule = RateLimitRule { id, spec: spec.clone(), created_at: now, updated_at: now };
        self.created.push(rule.clone());
        self.applied.push(AppliedChange { id, before: None, after: Some(spec.clone()) });
        rule
    }

    fn update(&mut self, id: RuleId, spec: &RuleSpec) -> Result<RateLimitRule, RepositoryError> {
        let now = self.now;
        let rule = self.find(id)?.as_mut().ok_or(RepositoryError::NotFound(id))?;
        let before = std::mem::replace(&mut rule.spec, spec.clone());
        // Must increase even if the clock of another replica is ahead: it identifies the version.
        rule.updated_at = now.max(rule.updated_at.plus(Moment::TICK));
        let rule = rule.clone();
        self.applied.push(AppliedChange { id, before: Some(before), after: Some(spec.clone()) });
        Ok(rule)
    }

    fn delete(&mut self, id: RuleId) -> Result<RateLimitRule, RepositoryError> {
        let rule = self.find(id)?.take().ok_or(RepositoryError::NotFound(id))?;
        self.applied.push(AppliedChange { id, before: Some(rule.spec.clone()), after: None });
        Ok(rule)
    }

    /// Returns the current rule; `None` inside if an earlier change deleted it.
    fn find(&mut self, id: RuleId) -> Result<&mut Option<RateLimitRule>, RepositoryError> {
        let rule = self.present.get_mut(&id).map(|(_, rule)| rule);
        rule.ok_or(RepositoryError::NotFound(id))
    }

    /// Returns all changes in order.
    pub(super) fn applied(&self) -> &[AppliedChange] {
        &self.applied
    }

    /// Returns created rules.
    pub(super) fn created(&self) -> &[RateLimitRule] {
        &self.created
    }

    /// Returns updated rules.
    pub(super) fn updated(&self) -> Vec<RateLimitRule> {
        self.present.values().filter_map(|(_, rule)| rule.clone()).collect()
    }

    /// Returns deleted rules.
    pub(super) fn deleted(&self) -> Vec<RuleId> {
        let gone = self.present.iter().filter(|(_, (_, rule))| rule.is_none());
        gone.map(|(id, _)| *id).collect()
    }

    /// Returns a rule with the same identity as another changed one.
    pub(super) fn duplicate(&self) -> Option<&RuleSpec> {
        let changed = self.present.values().filter_map(|(_, rule)| rule.as_ref());
        let mut seen = HashSet::new();
        let mut specs = changed.chain(&self.created).map(|rule| &rule.spec);
        specs.find(|spec| !seen.insert(spec.identity()))
    }

    /// Returns the rules whose scope, pattern or window is new to them.
    pub(super) fn new_identities(&self) -> Vec<&RuleSpec> {
        self.moved(|before, after| before.identity() != after.identity())
    }

    /// Returns the rules whose scope or pattern is new to them.
    pub(super) fn new_subjects(&self) -> Vec<&RuleSpec> {
        let subjects = |spec: &RuleSpec| (spec.scope, spec.identifier_pattern.clone());
        self.moved(|before, after| subjects(before) != subjects(after))
    }

    fn moved(&self, differ: impl Fn(&RuleSpec, &RuleSpec) -> bool) -> Vec<&RuleSpec> {
        let moved = self.present.values().filter_map(|(before, rule)| {
            let after = &rule.as_ref()?.spec;
            differ(before, after).then_some(after)
        });
        self.created.iter().map(|rule| &rule.spec).chain(moved).collect()
    }

    /// Returns the ids of all changed rules.
    pub(super) fn changed_ids(&self) -> Vec<RuleId> {
        self.present.keys().copied().chain(self.created.iter().map(|rule| rule.id)).collect()
    }
}

// === impl AppliedChange ===

impl AppliedChange {
    pub(super) const fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "rule.create",
            (Some(_), Some(_)) => "rule.update",
            (Some(_), None) => "rule.delete",
        }
    }
}
