//! Rules compiled for checks.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use headgate::{
    Algorithm, Check, CheckMode, Cost, Extra, FailMode, InvalidCheck, Key, KeySpace, LeasePolicy,
    Limit, LimitError,
};

use crate::{Defaults, RateLimitRule, RuleId, Scope, Selector, tally::Tally};

/// A rule with everything that a check needs computed in advance.
#[derive(Debug)]
pub struct CompiledRule {
    /// The stored rule; `None` for the default rule.
    rule: Option<RateLimitRule>,
    limit: Limit,
    window_seconds: u32,
    fail_mode: FailMode,
    lease: LeasePolicy,
    /// What a check takes in advance, by the lease and the limit.
    extra: Option<Extra>,
    /// The prefix of keys of a rule over attributes.
    key_prefix: Option<Box<str>>,
    /// The suffix of keys, so that a check does not allocate one.
    key_suffix: String,
    /// The result of the first call of [`label`](Self::label).
    label: OnceLock<Box<str>>,
    tally: Arc<Tally>,
    /// `true` if the rule has its own tally, `false` if it uses the shared one.
    counted: bool,
}

impl CompiledRule {
    /// Compiles a stored rule that counts in `tally`.
    pub(crate) fn new(
        rule: RateLimitRule,
        defaults: &Defaults,
        tally: Arc<Tally>,
    ) -> Result<Self, LimitError> {
        let (spec, limit) = (&rule.spec, rule.spec.engine_limit()?);
        let lease = match limit.places() {
            // A place has a holder: it cannot be taken in advance.
            Some(_) => LeasePolicy::OFF,
            None => spec.lease.unwrap_or(defaults.lease).shortened_to(spec.window()),
        };
        Ok(Self {
            window_seconds: spec.window_seconds,
            fail_mode: spec.fail_mode.unwrap_or(defaults.fail_mode),
            lease,
            extra: lease.extra(&limit),
            key_prefix: key_prefix(&rule),
            key_suffix: key_suffix(spec.window_seconds, spec.algorithm),
            label: OnceLock::new(),
            tally,
            counted: true,
            limit,
            rule: Some(rule),
        })
    }

    /// Sets whether the tally is its own.
    pub(crate) const fn counted(mut self, counted: bool) -> Self {
        self.counted = counted;
        self
    }

    /// Compiles the default rule.
    pub(crate) fn from_defaults(defaults: &Defaults, tally: Arc<Tally>) -> Self {
        let window = Duration::from_secs(defaults.window_seconds.into());
        let lease = defaults.lease.shortened_to(window);
        Self {
            rule: None,
            limit: defaults.limit.clone(),
            window_seconds: defaults.window_seconds,
            fail_mode: defaults.fail_mode,
            lease,
            extra: lease.extra(&defaults.limit),
            key_prefix: None,
            key_suffix: key_suffix(defaults.window_seconds, defaults.limit.algorithm()),
            label: OnceLock::new(),
            tally,
            counted: true,
        }
    }

    /// Returns the stored rule; `None` for the default rule.
    pub const fn rule(&self) -> Option<&RateLimitRule> {
        self.rule.as_ref()
    }

    /// Returns its id; `None` for the default rule.
    pub fn id(&self) -> Option<RuleId> {
        self.rule.as_ref().map(|rule| rule.id)
    }

    /// Returns the conditions of a rule over attributes.
    pub fn selector(&self) -> Option<&Selector> {
        self.rule.as_ref().and_then(|rule| rule.spec.selector.as_deref())
    }

    /// Returns `true` if it is enabled.
    pub fn is_enabled(&self) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.spec.enabled)
    }

    /// Returns the limit.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns the window in seconds.
    pub const fn window_seconds(&self) -> u32 {
        self.window_seconds
    }

    /// Returns a text that an API derives from this rule, such as a header item. `make` is called
    /// once; the result is cached with the rule.
    pub fn label(&self, make: impl FnOnce(&Self) -> Box<str>) -> &str {
        self.label.get_or_init(|| make(self))
    }

    /// Returns the failure mode, which decides checks while the store is unavailable.
    pub const fn fail_mode(&self) -> FailMode {
        self.fail_mode
    }

    /// Returns the part of the limit that is taken in advance from a shared store.
    pub const fn lease(&self) -> LeasePolicy {
        self.lease
    }

    /// Returns the most that a check takes in advance; `None` if that is less than one unit.
    pub const fn extra(&self) -> Option<Extra> {
        self.extra
    }

    /// Returns `true` if it has its own tally; the other rules share one.
    pub const fn is_counted(&self) -> bool {
        self.counted
    }

    /// Returns the counts of its decisions.
    pub const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Returns a check of this rule with its failure mode and lease.
    ///
    /// Under a concurrency limit it takes no place: it only asks whether one is free. Places are
    /// taken by [`taking`](Self::taking).
    pub(crate) fn check<'a>(&'a self, key: Key<'a>, cost: Cost) -> Result<Check<'a>, InvalidCheck> {
        if self.holds_places() {
            return Ok(self.taking(key, cost)?.with_mode(CheckMode::Probe));
        }
        let check = Check::new(key, &self.limit, cost)?;
        Ok(check.with_fail_mode(self.fail_mode).with_optional_extra(self.extra))
    }

    /// Returns the same check, which takes a place under a concurrency limit: one, whatever the
    /// cost is.
    pub(crate) fn taking<'a>(
        &'a self,
        key: Key<'a>,
        cost: Cost,
    ) -> Result<Check<'a>, InvalidCheck> {
        let cost = if self.holds_places() { Cost::ONE } else { cost };
        let check = Check::new(key, &self.limit, cost)?;
        Ok(check.with_fail_mode(self.fail_mode).with_optional_extra(self.extra))
    }

    /// Returns `true` if it is a concurrency limit.
    pub const fn holds_places(&self) -> bool {
        self.limit.places().is_some()
    }

    /// Returns the key space of this rule for subjects of `scope`, which does not matter to a rule
    /// over attributes.
    pub(crate) fn space(&self, scope: Scope) -> KeySpace<'_> {
        let prefix = self.key_prefix.as_deref().unwrap_or(scope.key_prefix());
        KeySpace::new(prefix, &self.key_suffix)
    }
}

/// Returns the prefix of the keys of a rule over attributes. It names the attributes that the rule
/// counts by: a rule that counts by others must not read the old states.
fn key_prefix(rule: &RateLimitRule) -> Option<Box<str>> {
    let selector = rule.spec.selector.as_ref()?;
    let per: Vec<&str> = selector.per().collect();
    let prefix = Scope::Attributes.key_prefix();
    Some(format!("{prefix}{}:{}:", rule.id, per.join(",")).into())
}

/// Returns the suffix of keys. It names the algorithm because states differ between algorithms: a
/// rule whose algorithm changes must not read the old state.
pub(crate) fn key_suffix(window_seconds: u32, algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::TokenBucket => format!(":{window_seconds}"),
        other => format!(":{window_seconds}:{other}"),
    }
}
