//! From a list of rules to what has to change.

use std::collections::{HashMap, HashSet};

use super::ManageError;
use crate::{
    Draft, FieldError, Pattern, RateLimitRule, RepositoryError, Revision, RuleChange, RuleSpec,
    Scope,
};

/// What has to change so that the rules are those of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Which rules it was made for.
    pub revision: Revision,
    /// Rules that are new.
    pub created: Vec<RuleSpec>,
    /// Rules that say something else: as they are, and as they are to be.
    pub updated: Vec<(RateLimitRule, RuleSpec)>,
    /// Rules that are not on the list.
    pub deleted: Vec<RateLimitRule>,
    /// How many stay as they are.
    pub unchanged: usize,
}

/// What every draft says, or everything that is wrong with any of them.
pub(super) fn validated(drafts: Vec<Draft>) -> Result<Vec<RuleSpec>, ManageError> {
    let (mut specs, mut wrong) = (Vec::with_capacity(drafts.len()), Vec::new());
    for (index, draft) in drafts.into_iter().enumerate() {
        match draft.validate(None) {
            Ok(spec) => specs.push(spec),
            Err(errors) => wrong.extend(errors.into_iter().map(|error| (index, error))),
        }
    }
    if wrong.is_empty() { Ok(specs) } else { Err(ManageError::InvalidAt(wrong)) }
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
                return Err(ManageError::Twice(spec.key(), spec.window_seconds));
            }
        }
        refuse_crowds(&present, &wanted, prune)?;
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

    /// The plan, if the rules that it was made for are those of `seen`.
    pub fn as_seen(self, seen: Revision) -> Result<Self, ManageError> {
        if self.revision == seen {
            return Ok(self);
        }
        Err(RepositoryError::Moved { seen, now: self.revision }.into())
    }

    /// The plan, if it does not bring more rules than there may be. Those who have more than that
    /// may keep them.
    pub(super) fn within(self, present: u64, max: u64) -> Result<Self, ManageError> {
        let (created, deleted) = (self.created.len() as u64, self.deleted.len() as u64);
        if created > deleted && present - deleted + created > max {
            return Err(RepositoryError::Full { max }.into());
        }
        Ok(self)
    }

    /// Whether nothing has to change.
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

/// Finds whoever would have more windows than may be, and names as many new rules as are too many. Those who had them
/// before may keep them.
fn refuse_crowds(
    present: &[RateLimitRule],
    wanted: &[RuleSpec],
    prune: bool,
) -> Result<(), ManageError> {
    let about = |spec: &RuleSpec| (spec.scope, spec.identifier_pattern.clone());
    let known: HashSet<_> = present.iter().map(|rule| owned(rule.spec.identity())).collect();
    let is_new = |spec: &RuleSpec| !known.contains(&owned(spec.identity()));
    let stay = present.iter().map(|rule| &rule.spec).filter(|_| !prune);
    let come = wanted.iter().filter(|spec| prune || is_new(spec));
    let mut windows: HashMap<(Scope, Pattern), usize> = HashMap::new();
    for spec in stay.chain(come) {
        *windows.entry(about(spec)).or_default() += 1;
    }
    let mut wrong = Vec::new();
    for (index, spec) in wanted.iter().enumerate().rev().filter(|(_, spec)| is_new(spec)) {
        let windows = windows.entry(about(spec)).or_default();
        if *windows > RateLimitRule::MAX_WINDOWS {
            *windows -= 1;
            wrong.push((index, crowded(spec)));
        }
    }
    wrong.reverse();
    if wrong.is_empty() { Ok(()) } else { Err(ManageError::InvalidAt(wrong)) }
}

fn crowded(spec: &RuleSpec) -> FieldError {
    let (scope, pattern, _) = spec.identity();
    let message = RepositoryError::Crowded { scope, pattern: pattern.clone() }.to_string();
    FieldError { field: "window_seconds", reason: "too_many", message }
}

fn owned((scope, pattern, window): (Scope, &Pattern, u32)) -> (Scope, Pattern, u32) {
    (scope, pattern.clone(), window)
}

#[cfg(test)]
mod tests {
    use headgate::Timestamp;

    use super::*;
    use crate::RuleId;

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

    /// Which rules of the list are too many.
    fn too_many(present: Vec<RateLimitRule>, wanted: &[i64], prune: bool) -> Vec<usize> {
        let wanted = wanted.iter().map(|window| spec(*window)).collect();
        match Plan::new(Revision(1), present, wanted, prune) {
            Ok(_) => Vec::new(),
            Err(ManageError::InvalidAt(wrong)) => wrong.into_iter().map(|(i, _)| i).collect(),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn new_windows_are_counted_with_those_that_stay() {
        // 100 is new and stands first; all others are there.
        let list = [100, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(too_many(present(1..=8), &list, true), [0]);
        assert_eq!(too_many(present(1..=8), &list[..8], true), [0_usize; 0]);
        assert_eq!(too_many(present(1..=8), &list[..8], false), [0]);
        assert_eq!(too_many(present(1..=7), &[100, 101, 102], false), [1, 2]);
        assert_eq!(too_many(present(1..=7), &[100, 101, 102], true), [0_usize; 0]);
        // Those who had too many before may keep them.
        let old: Vec<i64> = (1..=20).collect();
        assert_eq!(too_many(present(1..=20), &old, true), [0_usize; 0]);
        assert_eq!(too_many(present(1..=20), &old[..3], false), [0_usize; 0]);
    }
}
