//! Rules compiled for checks.

use std::sync::{Arc, OnceLock};

use headgate::{Algorithm, FailMode, KeySpace, Limit, LimitError};

use crate::{Defaults, RateLimitRule, RuleId, Scope, tally::Tally};

/// A rule with everything that a check needs computed in advance.
#[derive(Debug)]
pub struct CompiledRule {
    /// The stored rule; `None` for the default rule.
    rule: Option<RateLimitRule>,
    limit: Limit,
    window_seconds: u32,
    fail_mode: FailMode,
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
        default_fail_mode: FailMode,
        tally: Arc<Tally>,
    ) -> Result<Self, LimitError> {
        let (spec, limit) = (&rule.spec, rule.spec.engine_limit()?);
        Ok(Self {
            window_seconds: spec.window_seconds,
            fail_mode: spec.fail_mode.unwrap_or(default_fail_mode),
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
        Self {
            rule: None,
            limit: defaults.limit.clone(),
            window_seconds: defaults.window_seconds,
            fail_mode: defaults.fail_mode,
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

    /// Returns `true` if it has its own tally; the other rules share one.
    pub const fn is_counted(&self) -> bool {
        self.counted
    }

    /// Returns the counts of its decisions.
    pub const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Returns the key space of this rule for subjects of `scope`.
    pub(crate) fn space(&self, scope: Scope) -> KeySpace<'_> {
        KeySpace::new(scope.key_prefix(), &self.key_suffix)
    }
}

/// Returns the suffix of keys. It names the algorithm because states differ between algorithms: a
/// rule whose algorithm changes must not read the old state.
pub(crate) fn key_suffix(window_seconds: u32, algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::TokenBucket => format!(":{window_seconds}"),
        other => format!(":{window_seconds}:{other}"),
    }
}
