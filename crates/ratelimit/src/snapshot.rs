//! Who is matched by which rules: immutable, compiled once, read by everybody.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use headgate::{Algorithm, FailMode, Limit, LimitError};

use crate::{
    CompiledRule, Pattern, RateLimitRule, Revision, RuleId, Scope, compiled, tally::Tally,
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

/// All rules at one moment.
#[derive(Debug)]
pub struct Snapshot {
    revision: Revision,
    scopes: [Table; Scope::ALL.len()],
    default: [Arc<CompiledRule>; 1],
    by_id: HashMap<RuleId, Arc<CompiledRule>>,
    /// The oldest first, so that it is the same in every snapshot.
    by_age: Vec<Arc<CompiledRule>>,
    left_out: Vec<RuleId>,
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

/// Rules with the same pattern and different windows.
type Stack = Vec<Arc<CompiledRule>>;

#[derive(Debug, Default)]
struct Table {
    exact: HashMap<Box<str>, Stack>,
    prefixes: HashMap<Box<str>, Stack>,
    /// The lengths that prefixes have, the longest first.
    prefix_lengths: Vec<usize>,
    any: Stack,
}

// === impl Snapshot ===

impl Snapshot {
    /// Compiles `rules`. Rules that `before` knew go on counting where they were.
    pub fn compile(
        revision: Revision,
        mut rules: Vec<RateLimitRule>,
        defaults: &Defaults,
        before: Option<&Self>,
    ) -> Result<Self, LimitError> {
        let tally = |id| before.and_then(|before| before.by_id.get(&id)).map(|rule| rule.tally());
        let default_tally = before.map(|before| Arc::clone(before.default[0].tally()));
        rules.sort_unstable_by_key(|rule| (rule.created_at, rule.id));
        let mut by_id = HashMap::with_capacity(rules.len());
        let mut by_age = Vec::with_capacity(rules.len());
        let mut sorted: BTreeMap<(Scope, u32, RuleId), Arc<CompiledRule>> = BTreeMap::new();
        for rule in rules {
            let (id, place) = (rule.id, (rule.spec.scope, rule.spec.window_seconds, rule.id));
            let tally: Arc<Tally> = tally(id).map_or_else(Arc::default, Arc::clone);
            let compiled = Arc::new(CompiledRule::new(rule, defaults.fail_mode, tally)?);
            by_id.insert(id, Arc::clone(&compiled));
            by_age.push(Arc::clone(&compiled));
            sorted.insert(place, compiled);
        }
        let mut scopes: [Table; Scope::ALL.len()] = Default::default();
        let mut left_out = Vec::new();
        for ((scope, _, id), compiled) in sorted {
            if !scopes[scope as usize].add(compiled) {
                left_out.push(id);
            }
        }
        let default = CompiledRule::of_defaults(defaults, default_tally.unwrap_or_default());
        Ok(Self { revision, scopes, default: [Arc::new(default)], by_id, by_age, left_out })
    }

    /// Which set of rules it is.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether only the default rule applies.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Every rule, the oldest first, and the default rule last.
    pub fn rules(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.by_age.iter().chain(&self.default)
    }

    /// The rules that decide nothing unless they are asked for, since [`RateLimitRule::MAX_WINDOWS`] shorter windows of
    /// the same scope and pattern do: they were written when nobody counted them.
    pub fn left_out(&self) -> &[RuleId] {
        &self.left_out
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
        let matched = |level, rules: &'s Stack| Matched { level, rules };
        let exact = table.exact.get(identifier).map(move |rules| matched(Level::Exact, rules));
        let prefixes = table.prefixes(identifier).map(move |rules| matched(Level::Prefix, rules));
        let any = Some(&table.any).filter(|rules| !rules.is_empty());
        let any = any.map(move |rules| matched(Level::Any, rules));
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

// === impl Table ===

impl Table {
    /// Says whether it is among those that decide.
    fn add(&mut self, compiled: Arc<CompiledRule>) -> bool {
        let pattern = compiled.rule().map_or(&Pattern::Any, |rule| &rule.spec.identifier_pattern);
        let stack = match pattern {
            Pattern::Exact(exact) => self.exact.entry(exact.clone()).or_default(),
            Pattern::Prefix(prefix) => {
                let place = self.prefix_lengths.partition_point(|length| *length > prefix.len());
                if self.prefix_lengths.get(place) != Some(&prefix.len()) {
                    self.prefix_lengths.insert(place, prefix.len());
                }
                self.prefixes.entry(prefix.clone()).or_default()
            }
            Pattern::Any => &mut self.any,
        };
        let shorter = stack.iter().filter(|rule| rule.is_enabled()).count();
        let decides = !compiled.is_enabled() || shorter < RateLimitRule::MAX_WINDOWS;
        stack.push(compiled);
        decides
    }

    /// The rules whose prefix `identifier` has, the longest prefix first.
    fn prefixes<'t>(&'t self, identifier: &str) -> impl Iterator<Item = &'t Stack> {
        // A length inside a character belongs to no prefix of this identifier.
        let beginning = |length: &usize| identifier.get(..*length);
        self.prefix_lengths.iter().filter_map(beginning).filter_map(|text| self.prefixes.get(text))
    }
}

#[cfg(test)]
mod tests;
