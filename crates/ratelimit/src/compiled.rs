//! Rules compiled for checks.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use headgate::{
    Algorithm, Check, CheckMode, Cost, Extra, FailMode, InvalidCheck, Key, KeySpace, LeasePolicy,
    Limit, LimitError,
};

use crate::{
    Attributes, Defaults, OverrideId, PlanLimits, RateLimitRule, RuleId, Scope, Selector,
    tally::Tally,
};

/// A rule with everything that a check needs computed in advance. A rule whose limit is by plan, or
/// that has overrides, is compiled once for each limit: all count the same subjects together.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// The stored rule; `None` for the default rule.
    rule: Option<Arc<RateLimitRule>>,
    /// Units per window.
    units: u64,
    source: LimitSource,
    /// The rule with each of its limits by plan, in the order of the plans.
    plans: Plans,
    limit: Limit,
    window_seconds: u32,
    fail_mode: FailMode,
    lease: LeasePolicy,
    /// What a check takes in advance, by the lease and the limit.
    extra: Option<Extra>,
    /// The prefix of keys of a rule over attributes.
    key_prefix: Option<Arc<str>>,
    /// The suffix of keys, so that a check does not allocate one.
    key_suffix: Arc<str>,
    /// The result of the first call of [`label`](Self::label).
    label: OnceLock<Box<str>>,
    tally: Arc<Tally>,
    /// `true` if the rule has its own tally, `false` if it uses the shared one.
    counted: bool,
}

/// A rule by the value of the attribute that decides its limit.
type Plans = Arc<[(Box<str>, Arc<CompiledRule>)]>;

/// Where the limit of a check comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitSource {
    /// The rule, which has one limit or whose limit by plan does not list the value of the check.
    Rule,
    /// The rule's limit for the value of the check.
    Plan,
    /// An override of a subject.
    Override(OverrideId),
}

// === impl CompiledRule ===

impl CompiledRule {
    /// Compiles a stored rule that counts in `tally`, its own if `counted` is set.
    pub(crate) fn new(
        rule: RateLimitRule,
        defaults: &Defaults,
        tally: Arc<Tally>,
        counted: bool,
    ) -> Result<Self, LimitError> {
        let (spec, limit) = (&rule.spec, rule.spec.engine_limit()?);
        let lease = match limit.places() {
            // A place has a holder: it cannot be taken in advance.
            Some(_) => LeasePolicy::OFF,
            None => spec.lease.unwrap_or(defaults.lease).shortened_to(spec.window()),
        };
        let mut compiled = Self {
            units: spec.limit.into(),
            source: LimitSource::Rule,
            plans: Arc::default(),
            window_seconds: spec.window_seconds,
            fail_mode: spec.fail_mode.unwrap_or(defaults.fail_mode),
            lease,
            extra: lease.extra(&limit),
            key_prefix: key_prefix(&rule),
            key_suffix: key_suffix(spec.window_seconds, spec.algorithm).into(),
            label: OnceLock::new(),
            tally,
            counted,
            limit,
            rule: Some(Arc::new(rule)),
        };
        compiled.plans = compiled.by_plan()?;
        Ok(compiled)
    }

    fn by_plan(&self) -> Result<Plans, LimitError> {
        let Some(rule) = &self.rule else { return Ok(Arc::default()) };
        let limits = rule.spec.plan_limits();
        limits
            .map(|(value, units)| {
                Ok((value.into(), Arc::new(self.with_units(units, LimitSource::Plan)?)))
            })
            .collect()
    }

    /// Returns the rule with another limit. It counts the same subjects in the same tally.
    pub(crate) fn with_units(&self, units: u32, source: LimitSource) -> Result<Self, LimitError> {
        let limit = match &self.rule {
            Some(rule) => rule.spec.engine_limit_of(units)?,
            None => self.limit.clone(),
        };
        Ok(Self {
            units: units.into(),
            source,
            plans: Arc::default(),
            extra: self.lease.extra(&limit),
            limit,
            label: OnceLock::new(),
            ..self.clone()
        })
    }

    /// Returns the rule with another limit, or with the highest that its algorithm supports.
    pub(crate) fn with_most_units(&self, units: u32, source: LimitSource) -> Option<Self> {
        match self.with_units(units, source) {
            Err(LimitError::TooLarge { max, .. }) => {
                self.with_units(u32::try_from(max).ok()?, source).ok()
            }
            result => result.ok(),
        }
    }

    /// Returns `true` if the limit depends on an attribute.
    pub(crate) fn is_by_plan(&self) -> bool {
        !self.plans.is_empty()
    }

    /// Returns `true` if it has this limit, for some plan or for none.
    pub(crate) fn has_limit(&self, limit: &Limit) -> bool {
        self.limit == *limit || self.plans.iter().any(|(_, rule)| rule.limit == *limit)
    }

    /// Returns the rule with the limit of the check's plan. Of several plans, the highest limit.
    pub(crate) fn for_plan<'s>(self: &'s Arc<Self>, attributes: &Attributes<'_>) -> &'s Arc<Self> {
        let plans = self.selector().and_then(Selector::limits).map(PlanLimits::by);
        let Some(value) = plans.and_then(|by| attributes.get(by)) else { return self };
        let known = |text: &str| {
            let place = self.plans.binary_search_by(|(known, _)| (**known).cmp(text));
            place.ok().map(|place| &self.plans[place].1)
        };
        value.texts().filter_map(known).max_by_key(|rule| rule.units).unwrap_or(self)
    }

    /// Compiles the default rule.
    pub(crate) fn from_defaults(defaults: &Defaults, tally: Arc<Tally>) -> Self {
        let window = Duration::from_secs(defaults.window_seconds.into());
        let lease = defaults.lease.shortened_to(window);
        Self {
            rule: None,
            units: defaults.limit.capacity(),
            source: LimitSource::Rule,
            plans: Arc::default(),
            limit: defaults.limit.clone(),
            window_seconds: defaults.window_seconds,
            fail_mode: defaults.fail_mode,
            lease,
            extra: lease.extra(&defaults.limit),
            key_prefix: None,
            key_suffix: key_suffix(defaults.window_seconds, defaults.limit.algorithm()).into(),
            label: OnceLock::new(),
            tally,
            counted: true,
        }
    }

    /// Returns the stored rule; `None` for the default rule.
    pub fn rule(&self) -> Option<&RateLimitRule> {
        self.rule.as_deref()
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

    /// Returns the units per window; the capacity of the default rule.
    pub const fn units(&self) -> u64 {
        self.units
    }

    /// Returns where the limit comes from.
    pub const fn source(&self) -> LimitSource {
        self.source
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
fn key_prefix(rule: &RateLimitRule) -> Option<Arc<str>> {
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
