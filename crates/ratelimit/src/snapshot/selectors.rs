//! Rules over attributes, found by the attributes of a check.
//!
//! Each rule is in the buckets of one of its conditions, the one with the emptiest buckets: a check
//! looks up the buckets that fit its attributes, and tests only the rules in them. The cost of a
//! check thus grows with the rules that can match, not with all rules.

mod key;
mod shape;

use std::{net::IpAddr, sync::Arc};

use smallvec::SmallVec;

use self::{
    key::{BucketKey, KeyBuffer},
    shape::Shape,
};
use super::shards::{EntryAction, Keyed, Shards};
use crate::{
    Attributes, CompiledRule, RuleId, Selector,
    condition::{IndexKey, Network},
};

/// Rules that match, in no particular order.
pub type Selected<'s> = SmallVec<[&'s Arc<CompiledRule>; 4]>;

/// Rules over attributes. Clones share unchanged parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Selectors {
    /// What is known about the buckets of each attribute, so that only those are looked up.
    shapes: Shards<Shape>,
    buckets: Shards<Bucket>,
    /// Rules that need no attribute.
    unconditional: Arc<Vec<Arc<CompiledRule>>>,
    len: usize,
}

/// Rules with a common index key.
#[derive(Clone, Debug)]
struct Bucket {
    key: BucketKey,
    rules: SmallVec<[Arc<CompiledRule>; 1]>,
}

/// The buckets of a rule.
enum Place<'r> {
    /// Those of a condition on this attribute.
    Keys(&'r str, Vec<IndexKey<'r>>),
    /// That of all rules which need this attribute.
    Present(&'r str),
    /// None: the rule needs no attribute.
    Unconditional,
}

// === impl Selectors ===

impl Selectors {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all rules that match `attributes`.
    pub(super) fn matching<'s>(&'s self, attributes: &Attributes<'_>) -> Selected<'s> {
        let mut matching = Selected::new();
        self.candidates(attributes, &mut |rule| {
            let matches = rule.selector().is_some_and(|selector| selector.matches(attributes));
            // Several buckets may have the same rule.
            if matches && !matching.iter().any(|known| Arc::ptr_eq(known, rule)) {
                matching.push(rule);
            }
        });
        matching
    }

    /// Visits all rules that can match.
    fn candidates<'s>(
        &'s self,
        attributes: &Attributes<'_>,
        visit: &mut impl FnMut(&'s Arc<CompiledRule>),
    ) {
        self.unconditional.iter().for_each(&mut *visit);
        let mut buffer = KeyBuffer::default();
        for (name, value) in attributes.iter() {
            let Some(shape) = self.shapes.get(name) else { continue };
            let mut look_up = |key: Option<IndexKey<'_>>| {
                if let Some(bucket) = self.buckets.get(buffer.write(name, key)) {
                    bucket.rules.iter().for_each(&mut *visit);
                }
            };
            if shape.has_present() {
                look_up(None);
            }
            for text in value.texts() {
                if shape.has_equals() {
                    look_up(Some(IndexKey::Equals(text)));
                }
                // A length within a character fits no text.
                let prefixes = shape.prefixes().filter_map(|length| text.get(..length));
                prefixes.for_each(|prefix| look_up(Some(IndexKey::Prefix(prefix))));
                let suffixes = shape
                    .suffixes()
                    .filter_map(|length| text.get(text.len().checked_sub(length)?..));
                suffixes.for_each(|suffix| look_up(Some(IndexKey::Suffix(suffix))));
                if shape.has_networks()
                    && let Ok(address) = text.parse::<IpAddr>()
                {
                    let networks = shape.networks();
                    let around = networks.filter_map(|shape| Network::of_shape(address, shape));
                    around.for_each(|network| look_up(Some(IndexKey::Network(network))));
                }
            }
        }
    }

    /// Adds a rule.
    pub(super) fn add(&mut self, rule: &Arc<CompiledRule>) {
        let Some(selector) = rule.selector() else { return };
        self.len += 1;
        match self.best_place(selector) {
            Place::Keys(name, keys) => {
                for key in keys {
                    self.put(name, Some(key), rule);
                }
            }
            Place::Present(name) => self.put(name, None, rule),
            Place::Unconditional => {
                Arc::make_mut(&mut self.unconditional).push(Arc::clone(rule));
            }
        }
    }

    /// Removes a rule. Its place is not known: it depended on the other rules of that time.
    pub(super) fn remove(&mut self, rule: &CompiledRule) {
        let (Some(selector), Some(id)) = (rule.selector(), rule.id()) else { return };
        self.len -= 1;
        for (name, keys) in keys(selector) {
            for key in keys {
                self.take(name, Some(key), id);
            }
        }
        for name in needed(selector) {
            self.take(name, None, id);
        }
        if self.unconditional.iter().any(|other| other.id() == Some(id)) {
            Arc::make_mut(&mut self.unconditional).retain(|other| other.id() != Some(id));
        }
    }

    /// Returns the place with the fewest rules in its fullest bucket.
    fn best_place<'r>(&self, selector: &'r Selector) -> Place<'r> {
        let mut buffer = KeyBuffer::default();
        let mut size = |name: &str, key: Option<IndexKey<'_>>| {
            self.buckets.get(buffer.write(name, key)).map_or(0, |bucket| bucket.rules.len())
        };
        let fullest = |(name, keys): &(&str, Vec<IndexKey<'_>>)| {
            let most = keys.iter().map(|key| size(name, Some(*key))).max();
            (most, keys.len())
        };
        if let Some((name, keys)) = keys(selector).min_by_key(fullest) {
            return Place::Keys(name, keys);
        }
        let emptiest = needed(selector).min_by_key(|name| size(name, None));
        emptiest.map_or(Place::Unconditional, Place::Present)
    }

    fn put(&mut self, name: &str, key: Option<IndexKey<'_>>, rule: &Arc<CompiledRule>) {
        let mut buffer = KeyBuffer::default();
        let bucket_key = buffer.write(name, key);
        let before = self.buckets.len();
        let new = || Bucket { key: bucket_key.clone(), rules: SmallVec::new() };
        self.buckets.change(bucket_key, new, |bucket| {
            // Two keys of a condition may be the same.
            if !bucket.rules.iter().any(|other| other.id() == rule.id()) {
                bucket.rules.push(Arc::clone(rule));
            }
            EntryAction::Keep
        });
        if self.buckets.len() > before {
            self.shapes.change(name, || Shape::new(name), |shape| shape.count(key, true));
        }
    }

    fn take(&mut self, name: &str, key: Option<IndexKey<'_>>, id: RuleId) {
        let mut buffer = KeyBuffer::default();
        let bucket_key = buffer.write(name, key);
        let has = |bucket: &Bucket| bucket.rules.iter().any(|rule| rule.id() == Some(id));
        if !self.buckets.get(bucket_key).is_some_and(has) {
            return;
        }
        let before = self.buckets.len();
        let new = || Bucket { key: bucket_key.clone(), rules: SmallVec::new() };
        self.buckets.change(bucket_key, new, |bucket| {
            bucket.rules.retain(|rule| rule.id() != Some(id));
            if bucket.rules.is_empty() { EntryAction::Remove } else { EntryAction::Keep }
        });
        if self.buckets.len() < before {
            self.shapes.change(name, || Shape::new(name), |shape| shape.count(key, false));
        }
    }
}

/// Returns the sets of index keys of all conditions.
fn keys(selector: &Selector) -> impl Iterator<Item = (&str, Vec<IndexKey<'_>>)> {
    selector
        .when()
        .flat_map(|(name, condition)| condition.index_keys().map(move |keys| (name, keys)))
}

/// Returns the attributes that a check must have.
fn needed(selector: &Selector) -> impl Iterator<Item = &str> {
    let conditions = selector.when().filter(|(_, condition)| condition.needs_value());
    conditions.map(|(name, _)| name).chain(selector.per())
}

impl Keyed for Bucket {
    type Key = BucketKey;

    fn key(&self) -> Option<&BucketKey> {
        Some(&self.key)
    }
}

#[cfg(test)]
impl Selectors {
    /// Number of shards that two tables do not share.
    pub(super) fn copied(&self, other: &Self) -> usize {
        self.shapes.copied(&other.shapes) + self.buckets.copied(&other.buckets)
    }

    /// Number of rules that a check of these attributes tests.
    pub(super) fn tested(&self, attributes: &Attributes<'_>) -> usize {
        let mut tested = 0;
        self.candidates(attributes, &mut |_| tested += 1);
        tested
    }

    /// Number of buckets and attributes.
    pub(super) const fn sizes(&self) -> (usize, usize, usize) {
        (self.len, self.buckets.len(), self.shapes.len())
    }
}

#[cfg(test)]
mod tests;
