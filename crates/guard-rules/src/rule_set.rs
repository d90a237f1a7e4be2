//! The rules in force.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use headgate::{
    BatchLimiter, Breaker, Clock, Cost, Decision, Degraded, FailMode, FailurePolicy, LeasePolicy,
    Limit, OutageLog, Store, SystemClock, Timestamp,
};
use headgate_ratelimit::{
    Attributes, Catalog, Defaults, RateLimitRule, RuleId, RuleOverride, RuleSpec,
    usecase::{AttributesQuestion, CheckError, CheckRateLimit},
};
use headgate_store_memory::MemoryStore;
use sha2::{Digest as _, Sha256};
use tracing::warn;
use uuid::Uuid;

use crate::RulesError;

/// Rules in force, and the store that they count in. Clones share both.
///
/// ```
/// use headgate::Cost;
/// use headgate_guard_rules::{Attributes, RuleSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rules = RuleSet::in_memory();
/// rules.replace("- {name: exports, when: {path: /v1/*}, per: [user], limit: 1, window_seconds: 60}")?;
///
/// let mut attributes = Attributes::default();
/// attributes.insert("path", "/v1/exports")?;
/// attributes.insert("user", "u1")?;
/// let first = rules.check(attributes.clone(), Cost::ONE).await?;
/// assert!(first.is_some_and(|verdict| verdict.decision.allowed));
/// let second = rules.check(attributes, Cost::ONE).await?;
/// assert!(second.is_some_and(|verdict| !verdict.decision.allowed && verdict.rule == "exports"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RuleSet {
    catalog: Arc<Catalog>,
    checks: CheckRateLimit,
    clock: Arc<dyn Clock>,
    outages: Arc<OutageLog>,
}

/// The decision of the rules that match.
#[derive(Clone, Debug)]
pub struct RuleVerdict {
    /// The decision.
    pub decision: Decision,
    /// Name of the rule that denied, or has the least remaining.
    pub rule: String,
    /// Window of that rule in seconds.
    pub window_seconds: u32,
}

// === impl RuleSet ===

impl RuleSet {
    /// Maximum number of rules.
    pub const MAX_RULES: usize = 100_000;

    /// Counts in this process.
    pub fn in_memory() -> Self {
        Self::on(MemoryStore::default())
    }

    /// Counts in `store`, which several processes share, behind a circuit breaker. While the store
    /// fails, the `fail_mode` of each rule decides; by default, each process enforces its share of
    /// the limit, one of `replicas`.
    pub fn shared(store: Arc<dyn Store>, replicas: NonZeroU32) -> Self {
        let breaker = Breaker::new(store, SystemClock::new());
        let local = MemoryStore::default();
        Self::on(FailurePolicy::new(breaker, local, replicas, SystemClock::new()))
    }

    /// Counts in `store`. If it fails, checks are errors.
    pub fn on(store: impl Store + 'static) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        // The limit of subjects without a rule: it never applies to attributes.
        let window_seconds = 1;
        let limit = Limit::token_bucket(1, Duration::from_secs(window_seconds.into()))
            .unwrap_or_else(|_| unreachable!("a valid limit"));
        let (fail_mode, lease) = (FailMode::Local, LeasePolicy::OFF);
        let defaults = Defaults { limit, window_seconds, fail_mode, lease };
        let catalog =
            Catalog::new(defaults, Arc::clone(&clock)).unwrap_or_else(|_| unreachable!("no rules"));
        let catalog = Arc::new(catalog);
        let checks = CheckRateLimit::new(Arc::clone(&catalog), BatchLimiter::new(store));
        Self { catalog, checks, clock, outages: Arc::default() }
    }

    /// Replaces the rules by those of a text in YAML or JSON. Counters are kept for rules with the
    /// same name, or subjects, and window.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with the text. The current rules then stay in force.
    pub fn replace(&self, text: &str) -> Result<(), RulesError> {
        let source = headgate_rules_file::Source::File("rules".into());
        let specs = headgate_rules_file::Drafts::parse(&source, text)?.validate()?;
        self.replace_specs(specs)
    }

    /// Replaces the rules by those of a file, which have no ids: processes that read the same file
    /// count together.
    pub(crate) fn replace_specs(&self, specs: Vec<RuleSpec>) -> Result<(), RulesError> {
        let rules = specs.into_iter().map(|spec| (id_of(&spec), spec)).collect();
        self.replace_rules(rules, Vec::new())
    }

    pub(crate) fn replace_rules(
        &self,
        rules: Vec<(RuleId, RuleSpec)>,
        overrides: Vec<RuleOverride>,
    ) -> Result<(), RulesError> {
        if rules.len() > Self::MAX_RULES {
            return Err(RulesError::TooMany("rules", Self::MAX_RULES as u64));
        }
        let at = Timestamp::from_micros(0);
        let stored = |(id, spec)| RateLimitRule { id, spec, created_at: at, updated_at: at };
        let rules = rules.into_iter().map(stored).collect();
        Ok(self.catalog.replace_rules(rules, overrides)?)
    }

    /// Number of rules in force.
    pub fn len(&self) -> usize {
        self.catalog.load().len()
    }

    /// Returns `true` if no rule is in force: nothing is limited.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Consumes `cost` if every rule that matches admits it, in one call of the store. Returns
    /// `None` if no rule matches.
    ///
    /// # Errors
    ///
    /// The store failed and no failure mode decides, the cost is above a limit, or too many rules match.
    pub async fn check(
        &self,
        attributes: Attributes<'_>,
        cost: Cost,
    ) -> Result<Option<RuleVerdict>, CheckError> {
        let question = AttributesQuestion { attributes, defaulted: None, cost };
        let verdict = self.checks.check_attributes(&question).await?;
        if let Some(degraded) = verdict.as_ref().and_then(|verdict| verdict.decision.degraded) {
            self.warn_degraded(degraded);
        }
        Ok(verdict.map(|verdict| RuleVerdict {
            decision: verdict.decision,
            rule: verdict.rule.rule().map(RateLimitRule::display_name).unwrap_or_default(),
            window_seconds: verdict.rule.window_seconds(),
        }))
    }

    #[cold]
    fn warn_degraded(&self, mode: Degraded) {
        let now = Timestamp::from_micros(self.clock.steady());
        if let Some(answers) = self.outages.count(now) {
            let reason = mode.cause.name();
            warn!(
                %mode, reason, answers,
                "store failed to decide requests by rules; fail mode {mode} answers"
            );
        }
    }
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.len()).finish_non_exhaustive()
    }
}

/// Returns the id of a rule without one: the same for the same name, or subjects, and window.
fn id_of(spec: &RuleSpec) -> RuleId {
    let (scope, pattern, window) = spec.identity();
    let digest = Sha256::digest(format!("{scope}:{window}:{pattern}"));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(bytes).into()
}
