//! Who is matched by which rules: immutable, read by everybody. The next one shares with it what
//! does not change, so that a change costs what it changes.

mod shards;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use headgate::{Algorithm, FailMode, Limit, LimitError};

use self::{
    shards::{Keyed, Shards, Use},
    table::Table,
};
use crate::{
    CompiledRule, Pattern, RateLimitRule, Revision, RuleDelta, RuleId, Scope, compiled,
    tally::Tally,
};

/// What applies to everybody for whom no rule was written.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// How much is allowed.
    pub limit: Limit,
    /// In how many seconds.
    pub window_seconds: u32,
    /// Who decides while the store cannot, where a rule does not say.
    pub fail_mode: FailMode,
}

/// All rules at one moment. Clones share what does not change.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    scopes: [Table; Scope::ALL.len()],
    default: [Arc<CompiledRule>; 1],
    by_id: Shards<Arc<CompiledRule>>,
    /// The rules with a counter of their own, see [`counted`](Self::counted).
    counted: Arc<Vec<Arc<CompiledRule>>>,
    /// The counter of all other rules.
    others: Arc<Tally>,
    /// The rules that decide nothing, by what they are about.
    left_out: Arc<BTreeMap<(Scope, Pattern), Vec<RuleId>>>,
}

/// The rules that apply to one subject together: every one must admit.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'s> {
    /// How they were found.
    pub level: Level,
    /// The rules, the shortest window first.
    pub rules: &'s [Arc<CompiledRule>],
}

/// How closely a rule's pattern fits, the closest first. Only the closest level decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The pattern is the identifier.
    Exact,
    /// The pattern is the longest prefix of it.
    Prefix,
    /// The pattern is `*`.
    Any,
    /// No rule was written.
    Default,
}

// === impl Snapshot ===

impl Snapshot {
    /// The most rules that have a counter of their own.
    pub const MAX_COUNTED: usize = 1000;

    /// Compiles `rules`. Rules that `before` knew go on counting where they were; those that are
    /// the same as there are taken from it.
    pub fn compile(
        revision: Revision,
        rules: Vec<RateLimitRule>,
        defaults: &Defaults,
        before: Option<&Self>,
    ) -> Result<Self, LimitError> {
        let tally = before.map(|before| Arc::clone(before.default[0].tally()));
        let default = CompiledRule::of_defaults(defaults, tally.unwrap_or_default());
        let mut next = Self {
            revision,
            scopes: Default::default(),
            default: [Arc::new(default)],
            by_id: Shards::default(),
            counted: Arc::default(),
            others: before.map(|before| Arc::clone(&before.others)).unwrap_or_default(),
            left_out: Arc::default(),
        };
        next.put(rules, defaults, before)?;
        Ok(next)
    }

    /// The rules after a change, which costs as much as it changes.
    pub fn after(&self, delta: RuleDelta, defaults: &Defaults) -> Result<Self, LimitError> {
        let mut next = Self { revision: delta.revision, ..self.clone() };
        for id in delta.deleted {
            next.remove(id);
        }
        next.put(delta.changed, defaults, Some(self))?;
        Ok(next)
    }

    /// Puts `rules` in the place of those with their ids.
    fn put(
        &mut self,
        mut rules: Vec<RateLimitRule>,
        defaults: &Defaults,
        before: Option<&Self>,
    ) -> Result<(), LimitError> {
        let known = |id| before.and_then(|before| before.rule(id));
        // Whoever has a counter keeps it; those that are free go to the oldest.
        rules.sort_by_cached_key(|rule| {
            (!known(rule.id).is_some_and(|old| old.is_counted()), rule.created_at, rule.id)
        });
        for rule in &rules {
            self.remove(rule.id);
        }
        for rule in rules {
            let compiled = match known(rule.id) {
                Some(old) if old.rule() == Some(&rule) => Arc::clone(old),
                old => {
                    let own = old.filter(|old| old.is_counted()).map(|old| Arc::clone(old.tally()));
                    let free = || self.counted.len() < Self::MAX_COUNTED;
                    let own = own.or_else(|| free().then(Arc::default));
                    let (tally, counted) =
                        own.map_or_else(|| (Arc::clone(&self.others), false), |own| (own, true));
                    let fail_mode = defaults.fail_mode;
                    Arc::new(CompiledRule::new(rule, fail_mode, tally)?.counted(counted))
                }
            };
            self.add(&compiled);
        }
        Ok(())
    }

    fn add(&mut self, rule: &Arc<CompiledRule>) {
        let Some(RateLimitRule { id, spec, .. }) = rule.rule() else { return };
        let left_out = self.scopes[spec.scope as usize].add(rule);
        self.leave_out(spec.scope, &spec.identifier_pattern, left_out);
        if rule.is_counted() {
            Arc::make_mut(&mut self.counted).push(Arc::clone(rule));
        }
        self.by_id.change(
            id,
            || Arc::clone(rule),
            |entry| {
                entry.clone_from(rule);
                Use::Kept
            },
        );
    }

    fn remove(&mut self, id: RuleId) {
        let Some(rule) = self.by_id.get(&id).cloned() else { return };
        let Some(RateLimitRule { spec, .. }) = rule.rule() else { return };
        let left_out = self.scopes[spec.scope as usize].remove(&rule);
        self.leave_out(spec.scope, &spec.identifier_pattern, left_out);
        if rule.is_counted() {
            Arc::make_mut(&mut self.counted).retain(|other| other.id() != Some(id));
        }
        self.by_id.change(&id, || Arc::clone(&rule), |_| Use::Over);
    }

    /// Notes which rules of a pattern decide nothing.
    fn leave_out(&mut self, scope: Scope, pattern: &Pattern, rules: Vec<RuleId>) {
        // Almost always there are none, and none were noted.
        if rules.is_empty() && self.left_out.is_empty() {
            return;
        }
        let left_out = Arc::make_mut(&mut self.left_out);
        let about = (scope, pattern.clone());
        if rules.is_empty() {
            left_out.remove(&about);
        } else {
            left_out.insert(about, rules);
        }
    }

    /// Which set of rules it is.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// How many rules there are.
    pub const fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether only the default rule applies.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rules that have a counter of their own, the default rule among them. A rule keeps its
    /// counter for as long as it exists; new ones go to the oldest rules that have none, up to
    /// [`MAX_COUNTED`](Self::MAX_COUNTED).
    pub fn counted(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.counted.iter().chain(&self.default)
    }

    /// What all rules without a counter of their own decided.
    pub fn others(&self) -> &Tally {
        &self.others
    }

    /// The rules that decide nothing unless they are asked for, since [`RateLimitRule::MAX_WINDOWS`] shorter windows of
    /// the same scope and pattern do: they were written when nobody counted them.
    pub fn left_out(&self) -> Vec<RuleId> {
        self.left_out.values().flatten().copied().collect()
    }

    /// The rule with this id.
    pub fn rule(&self, id: RuleId) -> Option<&Arc<CompiledRule>> {
        self.by_id.get(&id)
    }

    /// The rules that decide for `identifier`.
    pub fn matching(&self, scope: Scope, identifier: &str) -> Matched<'_> {
        // The levels are looked at only as far as the first that matches.
        self.levels(scope, identifier)
            .next()
            .unwrap_or(Matched { level: Level::Default, rules: &self.default })
    }

    /// Every level that matches `identifier`, the closest first: only the first one decides.
    pub fn levels<'s>(
        &'s self,
        scope: Scope,
        identifier: &str,
    ) -> impl Iterator<Item = Matched<'s>> {
        let table = &self.scopes[scope as usize];
        let matched = |level, rules: &'s [Arc<CompiledRule>]| Matched { level, rules };
        let exact = table.exact(identifier).map(move |rules| matched(Level::Exact, rules));
        let prefixes = table.prefixes(identifier).map(move |rules| matched(Level::Prefix, rules));
        let any = table.any().map(move |rules| matched(Level::Any, rules));
        let default = Matched { level: Level::Default, rules: &self.default };
        exact.into_iter().chain(prefixes).chain(any).chain([default])
    }

    /// Every ending that the key of a state of `identifier` can have: each window that applies
    /// to it, with each algorithm, since the rule may have had another before.
    pub fn key_suffixes(&self, scope: Scope, identifier: &str) -> Vec<(u32, Algorithm, String)> {
        let levels = self.levels(scope, identifier);
        let windows: BTreeSet<u32> =
            levels.flat_map(|level| level.rules).map(|rule| rule.window_seconds()).collect();
        let algorithms = || Algorithm::ALL.into_iter().filter(|a| *a != Algorithm::Calendar);
        let all = |window| algorithms().map(move |a| (window, a, compiled::key_suffix(window, a)));
        windows.into_iter().flat_map(all).collect()
    }
}

// === impl Matched ===

impl<'s> Matched<'s> {
    /// Those of the rules that are applied, of one window if that is asked for.
    pub fn applied(
        self,
        window_seconds: Option<u64>,
    ) -> impl Iterator<Item = &'s Arc<CompiledRule>> {
        let asked = move |rule: &CompiledRule| {
            window_seconds.is_none_or(|window| window == u64::from(rule.window_seconds()))
        };
        let applied = self.rules.iter().filter(move |rule| rule.is_enabled() && asked(rule));
        applied.take(RateLimitRule::MAX_WINDOWS)
    }

    /// The windows that there are, in seconds.
    pub fn windows(self) -> impl Iterator<Item = u32> {
        self.rules.iter().map(|rule| rule.window_seconds())
    }
}

// === impl Level ===

impl Level {
    /// The name in APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Any => "any",
            Self::Default => "default",
        }
    }
}

impl Keyed for Arc<CompiledRule> {
    type Key = RuleId;

    fn key(&self) -> Option<&RuleId> {
        self.rule().map(|rule| &rule.id)
    }
}

#[cfg(test)]
mod tests;
