//! Plans: the difference between the stored rules and a list.

use std::collections::{HashMap, HashSet};

use super::ManageError;
use crate::{
    FieldError, Pattern, RateLimitRule, RepositoryError, Revision, RuleChange, RuleSpec, Scope,
};

/// The changes that make the stored rules those of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Revision of the stored rules.
    pub revision: Revision,
    /// Rules to create.
    pub created: Vec<RuleSpec>,
    /// Rules to update, with their new fields.
    pub updated: Vec<(RateLimitRule, RuleSpec)>,
    /// Rules to delete.
    pub deleted: Vec<RateLimitRule>,
    /// Number of rules that stay as they are.
    pub unchanged: usize,
}

// === impl Plan ===

impl Plan {
    pub(super) fn new(
        revision: Revision,
        present: Vec<RateLimitRule>,
        wanted: Vec<RuleSpec>,
        prune: bool,
    ) -> Result<Self, ManageError> {
        let mut listed = HashSet::new();
        for spec in &wanted {
            if !listed.insert(spec.identity()) {
                return Err(ManageError::Duplicate(spec.key(), spec.window_seconds));
            }
        }
        check_windows(&present, &wanted, prune)?;
        let mut plan = Self { revision, ..Self::default() };
        let mut present: HashMap<(Scope, Pattern, u32), RateLimitRule> =
            present.into_iter().map(|rule| (owned(rule.spec.identity()), rule)).collect();
        for spec in wanted {
            match present.remove(&owned(spec.identity())) {
                None => plan.created.push(spec),
                Some(rule) if rule.spec == spec => plan.unchanged += 1,
                Some(rule) => plan.updated.push((rule, spec)),
            }
        }
        if prune {
            plan.deleted = present.into_values().collect();
            plan.deleted.sort_by(|a, b| a.spec.identity().cmp(&b.spec.identity()));
        } else {
            plan.unchanged += present.len();
        }
        Ok(plan)
    }

    /// Returns the plan if it was computed for the revision `expected`.
    pub fn for_revision(self, expected: Revision) -> Result<Self, ManageError> {
        if self.revision == expected {
            return Ok(self);
        }
        Err(RepositoryError::RulesChanged { expected, actual: self.revision }.into())
    }

    /// Returns the plan unless it exceeds the maximum number of rules. A database that already has
    /// more may keep them.
    pub(super) fn within(self, present: u64, max: u64) -> Result<Self, ManageError> {
        let (created, deleted) = (self.created.len() as u64, self.deleted.len() as u64);
        if created > deleted && present - deleted + created > max {
            return Err(RepositoryError::TooManyRules { max }.into());
        }
        Ok(self)
    }

    /// Returns `true` if nothing has to change.
    pub const fn is_empty(&self) -> bool {
        self.created.is_empty() && self.updated.is_empty() && self.deleted.is_empty()
    }

    pub(super) fn changes(&self) -> Vec<RuleChange> {
        let deleted = self.deleted.iter().map(|rule| RuleChange::Delete(rule.id));
        let updated =
            self.updated.iter().map(|(rule, spec)| RuleChange::Update(rule.id, spec.clone()));
        let created = self.created.iter().cloned().map(RuleChange::Create);
        deleted.chain(updated).chain(created).collect()
    }
}

/// Rejects new rules beyond the maximum number of windows of a scope and pattern. Existing rules
/// may stay.
fn check_windows(
    present: &[RateLimitRule],
    wanted: &[RuleSpec],
    prune: bool,
) -> Result<(), ManageError> {
    let subjects = |spec: &RuleSpec| (spec.scope, spec.identifier_pattern.clone());
    let known: HashSet<_> = present.iter().map(|rule| owned(rule.spec.identity())).collect();
    let is_new = |spec: &RuleSpec| !known.contains(&owned(spec.identity()));
    let kept = present.iter().map(|rule| &rule.spec).filter(|_| !prune);
    let added = wanted.iter().filter(|spec| prune || is_new(spec));
    let mut windows: HashMap<(Scope, Pattern), usize> = HashMap::new();
    for spec in kept.chain(added) {
        *windows.entry(subjects(spec)).or_default() += 1;
    }
    let mut invalid = Vec::new();
    for (index, spec) in wanted.iter().enumerate().rev().filter(|(_, spec)| is_new(spec)) {
        let windows = windows.entry(subjects(spec)).or_default();
        if *windows > RateLimitRule::MAX_WINDOWS {
            *windows -= 1;
            invalid.push((index, too_many_windows(spec)));
        }
    }
    invalid.reverse();
    if invalid.is_empty() { Ok(()) } else { Err(ManageError::InvalidAt(invalid)) }
}

fn too_many_windows(spec: &RuleSpec) -> FieldError {
    let (scope, pattern, _) = spec.identity();
    let message = RepositoryError::TooManyWindows { scope, pattern: pattern.clone() }.to_string();
    FieldError { field: "window_seconds", reason: "too_many", message }
}

fn owned((scope, pattern, window): (Scope, &Pattern, u32)) -> (Scope, Pattern, u32) {
    (scope, pattern.clone(), window)
}

#[cfg(test)]
mod tests {
    use headgate::Timestamp;

    use super::*;
    use crate::{Draft, RuleId};

    fn spec(window: i64) -> RuleSpec {
        let draft = Draft {
            scope: "user".to_owned().into(),
            identifier_pattern: "u1".to_owned().into(),
            limit: 1.into(),
            window_seconds: window.into(),
            ..Draft::default()
        };
        draft.validate(None).unwrap()
    }

    fn present(windows: impl IntoIterator<Item = i64>) -> Vec<RateLimitRule> {
        let now = Timestamp::from_micros(1);
        let rule = |window| RateLimitRule {
            id: RuleId::random(),
            spec: spec(window),
            created_at: now,
            updated_at: now,
        };
        windows.into_iter().map(rule).collect()
    }

    /// Indexes of the rules that are too many.
    fn too_many(present: Vec<RateLimitRule>, wanted: &[i64], prune: bool) -> Vec<usize> {
        let wanted = wanted.iter().map(|window| spec(*window)).collect();
        match Plan::new(Revision(1), present, wanted, prune) {
            Ok(_) => Vec::new(),
            Err(ManageError::InvalidAt(invalid)) => invalid.into_iter().map(|(i, _)| i).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn new_windows_count_together_with_kept_ones() {
        // 100 is new; the others exist.
        let list = [100, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(too_many(present(1..=8), &list, true), [0]);
        assert_eq!(too_many(present(1..=8), &list[..8], true), [0_usize; 0]);
        assert_eq!(too_many(present(1..=8), &list[..8], false), [0]);
        assert_eq!(too_many(present(1..=7), &[100, 101, 102], false), [1, 2]);
        assert_eq!(too_many(present(1..=7), &[100, 101, 102], true), [0_usize; 0]);
        // Existing windows beyond the maximum may stay.
        let old: Vec<i64> = (1..=20).collect();
        assert_eq!(too_many(present(1..=20), &old, true), [0_usize; 0]);
        assert_eq!(too_many(present(1..=20), &old[..3], false), [0_usize; 0]);
    }
}
