//! The rules of one scope, found by identifier.

use std::sync::Arc;

use smallvec::SmallVec;

use super::shards::{Keyed, Shards, Use};
use crate::{CompiledRule, Pattern, RateLimitRule, RuleId};

/// The rules of one scope. Clones share what does not change.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    exact: Shards<Stack>,
    prefixes: Shards<Stack>,
    /// The lengths that prefixes have, the longest first, and how many prefixes have each.
    prefix_lengths: Vec<(usize, usize)>,
    any: Stack,
}

/// Rules with the same pattern and different windows, the shortest window first.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack(SmallVec<[Arc<CompiledRule>; 1]>);

// === impl Table ===

impl Table {
    /// Adds a rule; returns the rules of its pattern that decide nothing.
    pub(super) fn add(&mut self, rule: &Arc<CompiledRule>) -> Vec<RuleId> {
        self.change(pattern(rule), |stack| stack.add(rule))
    }

    /// Removes a rule; returns the rules of its pattern that decide nothing.
    pub(super) fn remove(&mut self, rule: &Arc<CompiledRule>) -> Vec<RuleId> {
        self.change(pattern(rule), |stack| stack.0.retain(|other| other.id() != rule.id()))
    }

    fn change(&mut self, pattern: &Pattern, change: impl FnOnce(&mut Stack)) -> Vec<RuleId> {
        let mut left_out = Vec::new();
        let change = |stack: &mut Stack| {
            change(stack);
            left_out = stack.left_out();
            if stack.0.is_empty() { Use::Over } else { Use::Kept }
        };
        match pattern {
            Pattern::Exact(exact) => self.exact.change(exact, Stack::default, change),
            Pattern::Prefix(prefix) => {
                let before = self.prefixes.len();
                self.prefixes.change(prefix, Stack::default, change);
                self.count_prefix(prefix.len(), before);
            }
            Pattern::Any => {
                change(&mut self.any);
            }
        }
        left_out
    }

    /// Notes that a prefix of `length` came, or went, if one did.
    fn count_prefix(&mut self, length: usize, before: usize) {
        let place = self.prefix_lengths.partition_point(|(known, _)| *known > length);
        let known = self.prefix_lengths.get(place).is_some_and(|(known, _)| *known == length);
        if self.prefixes.len() > before {
            if !known {
                self.prefix_lengths.insert(place, (length, 0));
            }
            self.prefix_lengths[place].1 += 1;
        } else if self.prefixes.len() < before && known {
            self.prefix_lengths[place].1 -= 1;
            if self.prefix_lengths[place].1 == 0 {
                self.prefix_lengths.remove(place);
            }
        }
    }

    /// The rules whose pattern is `identifier`.
    pub(super) fn exact(&self, identifier: &str) -> Option<&[Arc<CompiledRule>]> {
        self.exact.get(identifier).map(Stack::rules)
    }

    /// The rules whose prefix `identifier` has, the longest prefix first.
    pub(super) fn prefixes(&self, identifier: &str) -> impl Iterator<Item = &[Arc<CompiledRule>]> {
        // A length inside a character belongs to no prefix of this identifier.
        let beginning = |(length, _): &(usize, usize)| identifier.get(..*length);
        let beginnings = self.prefix_lengths.iter().filter_map(beginning);
        beginnings.filter_map(|text| self.prefixes.get(text)).map(Stack::rules)
    }

    /// The rules for everybody.
    pub(super) fn any(&self) -> Option<&[Arc<CompiledRule>]> {
        Some(self.any.rules()).filter(|rules| !rules.is_empty())
    }
}

// === impl Stack ===

impl Stack {
    fn rules(&self) -> &[Arc<CompiledRule>] {
        &self.0
    }

    fn add(&mut self, rule: &Arc<CompiledRule>) {
        let key = |rule: &CompiledRule| (rule.window_seconds(), rule.id());
        let place = self.0.partition_point(|other| key(other) < key(rule));
        self.0.insert(place, Arc::clone(rule));
    }

    /// The enabled rules beyond those that are applied.
    fn left_out(&self) -> Vec<RuleId> {
        let enabled = self.0.iter().filter(|rule| rule.is_enabled());
        enabled.skip(RateLimitRule::MAX_WINDOWS).filter_map(|rule| rule.id()).collect()
    }
}

impl Keyed for Stack {
    type Key = str;

    fn key(&self) -> Option<&str> {
        self.0.first().and_then(|rule| pattern(rule).literal())
    }
}

fn pattern(rule: &CompiledRule) -> &Pattern {
    rule.rule().map_or(&Pattern::Any, |rule| &rule.spec.identifier_pattern)
}

#[cfg(test)]
impl Table {
    /// Number of shards that two tables do not share.
    pub(super) fn copied(&self, other: &Self) -> usize {
        self.exact.copied(&other.exact) + self.prefixes.copied(&other.prefixes)
    }

    /// Everything that the table says, in one order.
    pub(super) fn contents(&self) -> (Vec<Vec<RuleId>>, Vec<(usize, usize)>) {
        let stacks = self.exact.iter().chain(self.prefixes.iter()).chain([&self.any]);
        let ids = |stack: &Stack| stack.0.iter().filter_map(|rule| rule.id()).collect();
        let mut stacks: Vec<Vec<RuleId>> = stacks.map(ids).collect();
        stacks.sort();
        (stacks, self.prefix_lengths.clone())
    }
}
