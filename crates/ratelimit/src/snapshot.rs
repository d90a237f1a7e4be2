//! Immutable snapshots of the rules, compiled for matching. A snapshot shares what did not change
//! with the one before, so that an update costs as much as it changes.

mod overrides;
mod selectors;
mod shards;
mod table;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use headgate::{Algorithm, FailMode, LeasePolicy, Limit, LimitError, Timestamp};

pub use self::selectors::Selected;
use self::{
    overrides::Overrides,
    selectors::Selectors,
    shards::{EntryAction, Keyed, Shards},
    table::Table,
};
use crate::{
    Attributes, CompiledRule, OverrideId, Pattern, RateLimitRule, Revision, RuleDelta, RuleId,
    RuleOverride, Scope, compiled, tally::Tally,
};

/// The limit for subjects that no rule matches.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The limit.
    pub limit: Limit,
    /// Its window in seconds.
    pub window_seconds: u32,
    /// Failure mode of this limit and of rules that do not set one.
    pub fail_mode: FailMode,
    /// Lease of this limit and of rules that do not set one, shortened to a tenth of their windows.
    pub lease: LeasePolicy,
}

/// All rules of one revision. Clones share unchanged parts.
#[derive(Clone, Debug)]
pub struct Snapshot {
    revision: Revision,
    scopes: [Table; Scope::ALL.len()],
    selectors: Selectors,
    overrides: Overrides,
    default: [Arc<CompiledRule>; 1],
    /// What rules get that set none.
    inherited: (FailMode, LeasePolicy),
    by_id: Shards<Arc<CompiledRule>>,
    /// The rules with their own tally, see [`counted`](Self::counted).
    counted: Arc<Vec<Arc<CompiledRule>>>,
    /// The tally of all other rules.
    others: Arc<Tally>,
    /// Rules beyond the maximum number of windows, by scope and pattern.
    ignored: Arc<BTreeMap<(Scope, Pattern), Vec<RuleId>>>,
}

/// The rules that apply to a subject together: all must admit a check.
#[derive(Clone, Copy, Debug)]
pub struct Matched<'s> {
    /// Level at which their pattern matches.
    pub level: Level,
    /// The rules, shortest window first.
    pub rules: &'s [Arc<CompiledRule>],
}

/// Level at which a pattern matches, closest first. Only the closest level decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The pattern is the identifier.
    Exact,
    /// The pattern is a prefix of the identifier.
    Prefix,
    /// The pattern is `*`.
    Any,
    /// No rule matches: the default rule applies.
    Default,
}

// === impl Defaults ===

impl Defaults {
    const fn inherited(&self) -> (FailMode, LeasePolicy) {
        (self.fail_mode, self.lease)
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// Maximum number of rules with their own tally.
    pub const MAX_COUNTED: usize = 1000;

    /// Compiles `rules`. Rules that exist in `before` keep their tally; unchanged ones are reused.
    pub fn compile(
        revision: Revision,
        rules: Vec<RateLimitRule>,
        defaults: &Defaults,
        before: Option<&Self>,
    ) -> Result<Self, LimitError> {
        let tally = before.map(|before| Arc::clone(before.default[0].tally()));
        let default = CompiledRule::from_defaults(defaults, tally.unwrap_or_default());
        let mut next = Self {
            revision,
            scopes: Default::default(),
            selectors: Selectors::default(),
            overrides: Overrides::default(),
            default: [Arc::new(default)],
            inherited: defaults.inherited(),
            by_id: Shards::default(),
            counted: Arc::default(),
            others: before.map(|before| Arc::clone(&before.others)).unwrap_or_default(),
            ignored: Arc::default(),
        };
        next.put(rules, defaults, before)?;
        Ok(next)
    }

    /// Returns the snapshot after a change, at a cost in proportion to the change.
    pub fn after(&self, delta: RuleDelta, defaults: &Defaults) -> Result<Self, LimitError> {
        let mut next = Self { revision: delta.revision, ..self.clone() };
        for id in delta.deleted {
            next.remove(id);
            for gone in next.overrides.of(id) {
                next.overrides.remove(gone.id);
            }
        }
        let changed: Vec<RuleId> = delta.changed.iter().map(|rule| rule.id).collect();
        next.put(delta.changed, defaults, Some(self))?;
        next.recompile_overrides(&changed);
        for id in delta.deleted_overrides {
            next.overrides.remove(id);
        }
        next.put_overrides(delta.overrides);
        Ok(next)
    }

    /// Returns the same rules with these overrides in addition. Those of unknown rules are left
    /// out.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Vec<RuleOverride>) -> Self {
        self.put_overrides(overrides);
        self
    }

    fn put_overrides(&mut self, overrides: Vec<RuleOverride>) {
        for added in overrides {
            match self.by_id.get(&added.spec.rule) {
                Some(rule) => self.overrides.put(&Arc::new(added), rule),
                None => self.overrides.remove(added.id),
            }
        }
    }

    /// Compiles the overrides of changed rules again.
    fn recompile_overrides(&mut self, rules: &[RuleId]) {
        if self.overrides.is_empty() {
            return;
        }
        for id in rules {
            if let Some(rule) = self.by_id.get(id) {
                for one in self.overrides.of(*id) {
                    self.overrides.put(&one, rule);
                }
            }
        }
    }

    /// Returns the same rules with another default rule. Rules without a failure mode or lease of
    /// their own get the new ones; all keep their tallies.
    pub fn with_defaults(&self, defaults: &Defaults) -> Result<Self, LimitError> {
        let [old] = &self.default;
        let default = CompiledRule::from_defaults(defaults, Arc::clone(old.tally()));
        let inherited = defaults.inherited();
        let mut next = Self { default: [Arc::new(default)], inherited, ..self.clone() };
        if inherited == self.inherited {
            return Ok(next);
        }
        for old in self.by_id.iter() {
            let inherits =
                |rule: &&RateLimitRule| rule.spec.fail_mode.is_none() || rule.spec.lease.is_none();
            if let Some(rule) = old.rule().filter(inherits) {
                let tally = Arc::clone(old.tally());
                let compiled = CompiledRule::new(rule.clone(), defaults, tally, old.is_counted())?;
                next.remove(rule.id);
                next.add(&Arc::new(compiled));
            }
        }
        let overrides: Vec<_> = next.overrides.iter().cloned().collect();
        for one in overrides {
            if let Some(rule) = next.by_id.get(&one.spec.rule) {
                next.overrides.put(&one, rule);
            }
        }
        Ok(next)
    }

    /// Adds or replaces `rules`.
    fn put(
        &mut self,
        mut rules: Vec<RateLimitRule>,
        defaults: &Defaults,
        before: Option<&Self>,
    ) -> Result<(), LimitError> {
        let known = |id| before.and_then(|before| before.rule(id));
        // Rules keep their tally; free ones go to the oldest rules.
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
                    Arc::new(CompiledRule::new(rule, defaults, tally, counted)?)
                }
            };
            self.add(&compiled);
        }
        Ok(())
    }

    fn add(&mut self, rule: &Arc<CompiledRule>) {
        let Some(RateLimitRule { id, spec, .. }) = rule.rule() else { return };
        if spec.selector.is_some() {
            self.selectors.add(rule);
        } else {
            let ignored = self.scopes[spec.scope as usize].add(rule);
            self.set_ignored(spec.scope, &spec.identifier_pattern, ignored);
        }
        if rule.is_counted() {
            Arc::make_mut(&mut self.counted).push(Arc::clone(rule));
        }
        self.by_id.change(
            id,
            || Arc::clone(rule),
            |entry| {
                entry.clone_from(rule);
                EntryAction::Keep
            },
        );
    }

    fn remove(&mut self, id: RuleId) {
        let Some(rule) = self.by_id.get(&id).cloned() else { return };
        let Some(RateLimitRule { spec, .. }) = rule.rule() else { return };
        if spec.selector.is_some() {
            self.selectors.remove(&rule);
        } else {
            let ignored = self.scopes[spec.scope as usize].remove(&rule);
            self.set_ignored(spec.scope, &spec.identifier_pattern, ignored);
        }
        if rule.is_counted() {
            Arc::make_mut(&mut self.counted).retain(|other| other.id() != Some(id));
        }
        self.by_id.change(&id, || Arc::clone(&rule), |_| EntryAction::Remove);
    }

    /// Records the rules of a pattern beyond the maximum number of windows.
    fn set_ignored(&mut self, scope: Scope, pattern: &Pattern, rules: Vec<RuleId>) {
        // Fast path: almost always there are none.
        if rules.is_empty() && self.ignored.is_empty() {
            return;
        }
        let ignored = Arc::make_mut(&mut self.ignored);
        let about = (scope, pattern.clone());
        if rules.is_empty() {
            ignored.remove(&about);
        } else {
            ignored.insert(about, rules);
        }
    }

    /// Returns the revision of the rules.
    pub const fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns the number of rules.
    pub const fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns `true` if only the default rule applies.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the rules with their own tally, including the default rule. A rule keeps its tally
    /// for as long as it exists; free ones go to the oldest rules without, up to
    /// [`MAX_COUNTED`](Self::MAX_COUNTED).
    pub fn counted(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        self.counted.iter().chain(&self.default)
    }

    /// Returns the tally that all other rules share.
    pub fn others(&self) -> &Tally {
        &self.others
    }

    /// Returns enabled rules that only checks of their window consult, because their scope and
    /// pattern have [`RateLimitRule::MAX_WINDOWS`] shorter windows. Repositories do not accept such
    /// rules; they come from older versions or direct writes to the database.
    pub fn ignored(&self) -> Vec<RuleId> {
        self.ignored.values().flatten().copied().collect()
    }

    /// Returns the rule with this id.
    pub fn rule(&self, id: RuleId) -> Option<&Arc<CompiledRule>> {
        self.by_id.get(&id)
    }

    /// Returns the default rule.
    pub const fn default_rule(&self) -> &Arc<CompiledRule> {
        let [rule] = &self.default;
        rule
    }

    /// Returns the rule with the limit that a check has: that of an override, of its plan, or the
    /// rule's own. `now` is called only if there is an override.
    pub fn with_limit_for<'s>(
        &'s self,
        rule: &'s Arc<CompiledRule>,
        attributes: &Attributes<'_>,
        now: impl Fn() -> Timestamp,
    ) -> &'s Arc<CompiledRule> {
        if !self.overrides.is_empty()
            && let Some(id) = rule.id()
            && let Some(found) = self.overrides.find(id, attributes, now)
        {
            return found;
        }
        if rule.is_by_plan() { rule.for_plan(attributes) } else { rule }
    }

    /// Returns `true` if there are overrides.
    pub const fn has_overrides(&self) -> bool {
        !self.overrides.is_empty()
    }

    /// Returns the override with this id.
    pub fn override_of(&self, id: OverrideId) -> Option<&RuleOverride> {
        self.overrides.get(id).map(|found| &**found)
    }

    /// Returns the sets of attributes that overrides of a rule name.
    pub fn override_shapes(&self, rule: RuleId) -> impl Iterator<Item = &[Box<str>]> {
        self.overrides.shapes_of(rule)
    }

    /// Returns `true` if there are rules over attributes.
    pub const fn has_selectors(&self) -> bool {
        !self.selectors.is_empty()
    }

    /// Returns all rules over attributes that match, in no particular order.
    pub fn selected(&self, attributes: &Attributes<'_>) -> Selected<'_> {
        self.selectors.matching(attributes)
    }

    /// Returns all rules over attributes.
    pub fn with_selector(&self) -> impl Iterator<Item = &Arc<CompiledRule>> {
        let all = if self.has_selectors() { Some(self.by_id.iter()) } else { None };
        all.into_iter().flatten().filter(|rule| rule.selector().is_some())
    }

    /// Returns the rules that decide for `identifier`.
    pub fn matching(&self, scope: Scope, identifier: &str) -> Matched<'_> {
        // Levels are lazy: later ones are not looked up.
        self.levels(scope, identifier)
            .next()
            .unwrap_or(Matched { level: Level::Default, rules: &self.default })
    }

    /// Returns all levels that match `identifier`, closest first. Only the first decides.
    pub fn levels<'s>(
        &'s self,
        scope: Scope,
        identifier: &str,
    ) -> impl Iterator<Item = Matched<'s>> {
        // Attributes are not subjects: they have no table.
        let table = self.scopes.get(scope as usize);
        let matched = |level, rules: &'s [Arc<CompiledRule>]| Matched { level, rules };
        let exact = table.and_then(|table| table.exact(identifier));
        let exact = exact.map(move |rules| matched(Level::Exact, rules));
        let prefixes = table.into_iter().flat_map(move |table| table.prefixes(identifier));
        let prefixes = prefixes.map(move |rules| matched(Level::Prefix, rules));
        let any = table.and_then(Table::any).map(move |rules| matched(Level::Any, rules));
        let default = Matched { level: Level::Default, rules: &self.default };
        exact.into_iter().chain(prefixes).chain(any).chain([default])
    }

    /// Returns every suffix that a key of `identifier` can have: each matching window with each
    /// algorithm, since a rule may have had another algorithm before.
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
    /// Returns the rules that a check consults, or only the one with this window.
    pub fn applied(
        self,
        window_seconds: Option<u64>,
    ) -> impl Iterator<Item = &'s Arc<CompiledRule>> {
        let selected = move |rule: &CompiledRule| {
            window_seconds.is_none_or(|window| window == u64::from(rule.window_seconds()))
        };
        let applied = self.rules.iter().filter(move |rule| rule.is_enabled() && selected(rule));
        applied.take(RateLimitRule::MAX_WINDOWS)
    }

    /// Returns the windows in seconds.
    pub fn windows(self) -> impl Iterator<Item = u32> {
        self.rules.iter().map(|rule| rule.window_seconds())
    }
}

// === impl Level ===

impl Level {
    /// Returns the name in APIs.
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
