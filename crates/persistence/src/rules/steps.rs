//! Changes of rules one after the other, and what comes of all of them.

use std::collections::{HashMap, HashSet};

use headgate::Timestamp;
use headgate_ratelimit::{RateLimitRule, RepositoryError, RuleChange, RuleId, RuleSpec};

/// Times are shown in milliseconds.
const SHOWN_TICK: u64 = 1_000;

/// Changes that are made in memory first, so that the database hears only what comes of them.
pub(super) struct Steps {
    now: Timestamp,
    /// The rules that the changes name, as they were, and as they are by now.
    present: HashMap<RuleId, (RuleSpec, Option<RateLimitRule>)>,
    created: Vec<RateLimitRule>,
    taken: Vec<Step>,
}

/// One change, as the audit log tells it.
pub(super) struct Step {
    pub(super) id: RuleId,
    pub(super) before: Option<RuleSpec>,
    pub(super) after: Option<RuleSpec>,
}

// === impl Steps ===

impl Steps {
    /// Changes at `now` of the rules that are `present`.
    pub(super) fn new(present: Vec<RateLimitRule>, now: Timestamp) -> Self {
        let known = |rule: RateLimitRule| (rule.id, (rule.spec.clone(), Some(rule)));
        let present = present.into_iter().map(known).collect();
        Self { now, present, created: Vec::new(), taken: Vec::new() }
    }

    /// Makes a change; gives the rule as it is then, or was when deleted.
    pub(super) fn take(&mut self, change: &RuleChange) -> Result<RateLimitRule, RepositoryError> {
        match change {
            RuleChange::Create(spec) => Ok(self.create(spec)),
            RuleChange::Update(id, spec) => self.update(*id, spec),
            RuleChange::UpdateIfUnchanged(id, spec, seen) => {
                let present = self.present.get(id).and_then(|(_, rule)| rule.as_ref());
                // One that is gone is for `update` to find out.
                if present.is_some_and(|rule| rule.updated_at != *seen) {
                    return Err(RepositoryError::Changed(*id));
                }
                self.update(*id, spec)
            }
            RuleChange::Delete(id) => self.delete(*id),
        }
    }

    fn create(&mut self, spec: &RuleSpec) -> RateLimitRule {
        let (id, now) = (RuleId::random(), self.now);
        let rule = RateLimitRule { id, spec: spec.clone(), created_at: now, updated_at: now };
        self.created.push(rule.clone());
        self.taken.push(Step { id, before: None, after: Some(spec.clone()) });
        rule
    }

    fn update(&mut self, id: RuleId, spec: &RuleSpec) -> Result<RateLimitRule, RepositoryError> {
        let now = self.now;
        let rule = self.find(id)?.as_mut().ok_or(RepositoryError::NotFound(id))?;
        let before = std::mem::replace(&mut rule.spec, spec.clone());
        // Another replica's clock may be ahead; and no two states of a rule have the same time.
        rule.updated_at = now.max(rule.updated_at.plus(SHOWN_TICK));
        let rule = rule.clone();
        self.taken.push(Step { id, before: Some(before), after: Some(spec.clone()) });
        Ok(rule)
    }

    fn delete(&mut self, id: RuleId) -> Result<RateLimitRule, RepositoryError> {
        let rule = self.find(id)?.take().ok_or(RepositoryError::NotFound(id))?;
        self.taken.push(Step { id, before: Some(rule.spec.clone()), after: None });
        Ok(rule)
    }

    /// The rule as it is by now; an earlier change may have deleted it.
    fn find(&mut self, id: RuleId) -> Result<&mut Option<RateLimitRule>, RepositoryError> {
        let rule = self.present.get_mut(&id).map(|(_, rule)| rule);
        rule.ok_or(RepositoryError::NotFound(id))
    }

    /// Every change, in order.
    pub(super) fn taken(&self) -> &[Step] {
        &self.taken
    }

    /// Rules that are new.
    pub(super) fn created(&self) -> &[RateLimitRule] {
        &self.created
    }

    /// Rules that were there, and are to say something else.
    pub(super) fn updated(&self) -> Vec<RateLimitRule> {
        self.present.values().filter_map(|(_, rule)| rule.clone()).collect()
    }

    /// Rules that were there, and are not any more.
    pub(super) fn deleted(&self) -> Vec<RuleId> {
        let gone = self.present.iter().filter(|(_, (_, rule))| rule.is_none());
        gone.map(|(id, _)| *id).collect()
    }

    /// A rule that is to be the same as another one of these.
    pub(super) fn twin(&self) -> Option<&RuleSpec> {
        let changed = self.present.values().filter_map(|(_, rule)| rule.as_ref());
        let mut seen = HashSet::new();
        let mut specs = changed.chain(&self.created).map(|rule| &rule.spec);
        specs.find(|spec| !seen.insert(spec.identity()))
    }

    /// What rules say that come to a scope, pattern and window where they were not.
    pub(super) fn arriving(&self) -> Vec<&RuleSpec> {
        self.moved(|before, after| before.identity() != after.identity())
    }

    /// What rules say that come to a scope and pattern where they were not.
    pub(super) fn growing(&self) -> Vec<&RuleSpec> {
        let about = |spec: &RuleSpec| (spec.scope, spec.identifier_pattern.clone());
        self.moved(|before, after| about(before) != about(after))
    }

    fn moved(&self, differ: impl Fn(&RuleSpec, &RuleSpec) -> bool) -> Vec<&RuleSpec> {
        let moved = self.present.values().filter_map(|(before, rule)| {
            let after = &rule.as_ref()?.spec;
            differ(before, after).then_some(after)
        });
        self.created.iter().map(|rule| &rule.spec).chain(moved).collect()
    }

    /// Every rule that is changed.
    pub(super) fn touched(&self) -> Vec<RuleId> {
        self.present.keys().copied().chain(self.created.iter().map(|rule| rule.id)).collect()
    }
}

// === impl Step ===

impl Step {
    pub(super) const fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "rule.create",
            (Some(_), Some(_)) => "rule.update",
            (Some(_), None) => "rule.delete",
        }
    }
}
