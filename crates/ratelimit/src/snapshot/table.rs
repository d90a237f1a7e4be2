//! The rules of one scope, found by identifier.

use std::sync::Arc;

use smallvec::SmallVec;

use super::shards::{EntryAction, Keyed, Shards};
use crate::{CompiledRule, Pattern, RateLimitRule, RuleId};

/// The rules of one scope. Clones share unchanged parts.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    exact: Shards<Stack>,
    prefixes: Shards<Stack>,
    /// Lengths of the prefixes, longest first, with the number of prefixes of each.
    prefix_lengths: Vec<(usize, usize)>,
    any: Stack,
}

/// Rules with one pattern and different windows, shortest window first.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack(SmallVec<[Arc<CompiledRule>; 1]>);

// === impl Table ===

impl Table {
    /// Adds a rule; returns the rules of its pattern beyond the maximum number of windows.
    pub(super) fn add(&mut self, rule: &Arc<CompiledRule>) -> Vec<RuleId> {
        self.change(pattern(rule), |stack| stack.add(rule))
    }

    /// Removes a rule; returns the rules of its pattern beyond the maximum number of windows.
    pub(super) fn remove(&mut self, rule: &Arc<CompiledRule>) -> Vec<RuleId> {
        self.change(pattern(rule), |stack| stack.0.retain(|other| other.id() != rule.id()))
    }

    fn change(&mut self, pattern: &Pattern, change: impl FnOnce(&mut Stack)) -> Vec<RuleId> {
        let mut ignored = Vec::new();
        let change = |stack: &mut Stack| {
            change(stack);
            ignored = stack.ignored();
            if stack.0.is_empty() { EntryAction::Remove } else { EntryAction::Keep }
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
        ignored
    }

    /// Updates the lengths after a prefix of `length` was added or removed.
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

    /// Returns the rules whose pattern is `identifier`.
    pub(super) fn exact(&self, identifier: &str) -> Option<&[Arc<CompiledRule>]> {
        self.exact.get(identifier).map(Stack::rules)
    }

    /// Returns the rules whose pattern is a prefix of `identifier`, longest first.
    pub(super) fn prefixes(&self, identifier: &str) -> impl Iterator<Item = &[Arc<CompiledRule>]> {
        // `get` returns `None` for a length within a character, where no prefix can end.
        let prefix = |(length, _): &(usize, usize)| identifier.get(..*length);
        let candidates = self.prefix_lengths.iter().filter_map(prefix);
        candidates.filter_map(|text| self.prefixes.get(text)).map(Stack::rules)
    }

    /// Returns the rules with the pattern `*`.
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

    /// Returns the enabled rules beyond the maximum number of windows.
    fn ignored(&self) -> Vec<RuleId> {
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

    /// Returns the contents in a canonical order.
    pub(super) fn contents(&self) -> (Vec<Vec<RuleId>>, Vec<(usize, usize)>) {
        let stacks = self.exact.iter().chain(self.prefixes.iter()).chain([&self.any]);
        let ids = |stack: &Stack| stack.0.iter().filter_map(|rule| rule.id()).collect();
        let mut stacks: Vec<Vec<RuleId>> = stacks.map(ids).collect();
        stacks.sort();
        (stacks, self.prefix_lengths.clone())
    }
}
