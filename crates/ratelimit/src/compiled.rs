//! A rule made ready to decide.

use std::sync::{Arc, OnceLock};

use headgate::{Algorithm, FailMode, Limit, LimitError, Space};

use crate::{Defaults, RateLimitRule, RuleId, Scope, tally::Tally};

/// A rule with everything that a decision needs worked out in advance.
#[derive(Debug)]
pub struct CompiledRule {
    /// The rule as it was written; the default rule was not.
    rule: Option<RateLimitRule>,
    limit: Limit,
    window_seconds: u32,
    fail_mode: FailMode,
    /// What a key ends in, so that naming a subject allocates nothing.
    key_suffix: String,
    /// What [`label`](Self::label) was first told.
    label: OnceLock<Box<str>>,
    tally: Arc<Tally>,
    /// Whether it counts for itself, or with others.
    counted: bool,
}

impl CompiledRule {
    /// The rule in force, counted in `tally`.
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

    /// The rule, with a counter of its own or not.
    pub(crate) const fn counted(mut self, counted: bool) -> Self {
        self.counted = counted;
        self
    }

    /// The rule for those for whom none was written.
    pub(crate) fn of_defaults(defaults: &Defaults, tally: Arc<Tally>) -> Self {
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

    /// The rule as it was written; `None` for the default rule.
    pub const fn rule(&self) -> Option<&RateLimitRule> {
        self.rule.as_ref()
    }

    /// Its id; the default rule has none.
    pub fn id(&self) -> Option<RuleId> {
        self.rule.as_ref().map(|rule| rule.id)
    }

    /// Whether it is applied.
    pub fn is_enabled(&self) -> bool {
        self.rule.as_ref().is_none_or(|rule| rule.spec.enabled)
    }

    /// How much it allows.
    pub const fn limit(&self) -> &Limit {
        &self.limit
    }

    /// In how many seconds.
    pub const fn window_seconds(&self) -> u32 {
        self.window_seconds
    }

    /// The text that a surface speaks of this rule by. It is made when it is first needed, and kept as long
    /// as the rule is in force.
    pub fn label(&self, make: impl FnOnce(&Self) -> Box<str>) -> &str {
        self.label.get_or_init(|| make(self))
    }

    /// Who decides while the store cannot.
    pub const fn fail_mode(&self) -> FailMode {
        self.fail_mode
    }

    /// Whether its counter is its own; otherwise rules without one share it.
    pub const fn is_counted(&self) -> bool {
        self.counted
    }

    /// How often it admitted and denied.
    pub const fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    /// Where the subjects of `scope` have their states under this rule.
    pub(crate) fn space(&self, scope: Scope) -> Space<'_> {
        Space::new(scope.key_prefix(), &self.key_suffix)
    }
}

/// What the name of a state ends in. Algorithms keep states of different kinds: a rule whose
/// algorithm changes must not find another's under its key.
pub(crate) fn key_suffix(window_seconds: u32, algorithm: Algorithm) -> String {
    match algorithm {
        Algorithm::TokenBucket => format!(":{window_seconds}"),
        other => format!(":{window_seconds}:{other}"),
    }
}
