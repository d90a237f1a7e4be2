//! Overrides, found by rule and by the attributes of a check.

use std::sync::Arc;

use headgate::Timestamp;

use super::shards::{EntryAction, Keyed, Shards};
use crate::{
    Attributes, CompiledRule, OverrideId, RuleId, RuleOverride,
    compiled::LimitSource,
    overrides::subject::{SubjectKey, write_key},
};

/// All overrides. Clones share unchanged parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Overrides {
    /// What is looked up for each rule.
    shapes: Shards<RuleShapes>,
    by_subject: Shards<CompiledOverride>,
    by_id: Shards<Arc<RuleOverride>>,
}

/// The sets of attributes that the overrides of a rule name.
#[derive(Clone, Debug)]
struct RuleShapes {
    rule: RuleId,
    /// Those with the most attributes first, each with the number of its overrides.
    shapes: Vec<(Box<[Box<str>]>, usize)>,
}

/// An override and its rule with the other limit.
#[derive(Clone, Debug)]
struct CompiledOverride {
    key: SubjectKey,
    until: Option<Timestamp>,
    rule: Arc<CompiledRule>,
}

// === impl Overrides ===

impl Overrides {
    pub(super) const fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, id: OverrideId) -> Option<&Arc<RuleOverride>> {
        self.by_id.get(&id)
    }

    /// Returns the overrides of a rule. Reads all overrides if it has any.
    pub(super) fn of(&self, rule: RuleId) -> Vec<Arc<RuleOverride>> {
        if self.shapes.get(&rule).is_none() {
            return Vec::new();
        }
        self.by_id.iter().filter(|one| one.spec.rule == rule).cloned().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<RuleOverride>> {
        self.by_id.iter()
    }

    /// Returns the rule with the limit of the closest override that has not ended. The closest is
    /// the one with the most attributes.
    pub(super) fn find(
        &self,
        rule: RuleId,
        attributes: &Attributes<'_>,
        now: impl Fn() -> Timestamp,
    ) -> Option<&Arc<CompiledRule>> {
        let RuleShapes { shapes, .. } = self.shapes.get(&rule)?;
        let mut key = SubjectKey::new();
        shapes.iter().find_map(|(names, _)| {
            let value = |name: &str| attributes.get(name).and_then(|value| value.text());
            let values = names.iter().map(|name| (&**name, value(name)));
            let found =
                if write_key(&mut key, rule, values) { self.by_subject.get(&key) } else { None };
            found
                .filter(|found| found.until.is_none_or(|until| now() < until))
                .map(|found| &found.rule)
        })
    }

    /// Adds or replaces an override of `rule`.
    pub(super) fn put(&mut self, added: &Arc<RuleOverride>, rule: &CompiledRule) {
        self.remove(added.id);
        let units = added.spec.limit;
        let source = LimitSource::Override(added.id);
        // The algorithm of the rule may have been changed to one with smaller limits.
        let Some(compiled) = rule.with_most_units(units, source) else { return };
        let key = added.spec.subject.key(added.spec.rule);
        let entry = CompiledOverride {
            key: key.clone(),
            until: added.spec.until,
            rule: Arc::new(compiled),
        };
        let keep = |known: &mut CompiledOverride| {
            known.clone_from(&entry);
            EntryAction::Keep
        };
        self.by_subject.change(&key, || entry.clone(), keep);
        self.by_id.change(&added.id, || Arc::clone(added), |_| EntryAction::Keep);
        self.count(added, true);
    }

    /// Removes an override.
    pub(super) fn remove(&mut self, id: OverrideId) {
        let Some(old) = self.by_id.get(&id).cloned() else { return };
        let key = old.spec.subject.key(old.spec.rule);
        // Another override may have taken its place.
        let own = self
            .by_subject
            .get(&key)
            .filter(|known| known.rule.source() == LimitSource::Override(id));
        if let Some(own) = own.cloned() {
            self.by_subject.change(&key, || own, |_| EntryAction::Remove);
        }
        self.by_id.change(&id, || Arc::clone(&old), |_| EntryAction::Remove);
        self.count(&old, false);
    }

    /// Updates the sets of attributes after an override was added or removed.
    fn count(&mut self, changed: &RuleOverride, added: bool) {
        let (rule, names) = (changed.spec.rule, changed.spec.subject.names());
        let new = || RuleShapes { rule, shapes: Vec::new() };
        self.shapes.change(&rule, new, |RuleShapes { shapes, .. }| {
            let place = shapes.iter().position(|(known, _)| *known == names);
            match (place, added) {
                (Some(place), true) => shapes[place].1 += 1,
                (Some(place), false) => {
                    shapes[place].1 -= 1;
                    shapes.retain(|(_, overrides)| *overrides > 0);
                }
                (None, true) => {
                    let order = |names: &[Box<str>]| (usize::MAX - names.len(), names.to_vec());
                    let place = shapes.partition_point(|(known, _)| order(known) < order(&names));
                    shapes.insert(place, (names, 1));
                }
                (None, false) => {}
            }
            if shapes.is_empty() { EntryAction::Remove } else { EntryAction::Keep }
        });
    }

    /// Number of sets of attributes of a rule.
    pub(super) fn shapes_of(&self, rule: RuleId) -> impl Iterator<Item = &[Box<str>]> {
        let shapes = self.shapes.get(&rule).into_iter();
        shapes.flat_map(|known| known.shapes.iter().map(|(names, _)| &**names))
    }
}

impl Keyed for RuleShapes {
    type Key = RuleId;

    fn key(&self) -> Option<&RuleId> {
        Some(&self.rule)
    }
}

impl Keyed for CompiledOverride {
    type Key = SubjectKey;

    fn key(&self) -> Option<&SubjectKey> {
        Some(&self.key)
    }
}

impl Keyed for Arc<RuleOverride> {
    type Key = OverrideId;

    fn key(&self) -> Option<&OverrideId> {
        Some(&self.id)
    }
}

#[cfg(test)]
impl Overrides {
    /// Number of shards that two tables do not share.
    pub(super) fn copied(&self, other: &Self) -> usize {
        self.shapes.copied(&other.shapes)
            + self.by_subject.copied(&other.by_subject)
            + self.by_id.copied(&other.by_id)
    }
}

#[cfg(test)]
mod tests;
