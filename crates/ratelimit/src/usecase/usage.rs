//! Usage of rules.

use std::sync::Arc;

use headgate::{Batch, BatchLimiter, Check, Cost, Key, KeyError, Verb};
use thiserror::Error;

use crate::{Attributes, Catalog, CompiledRule, RuleId, RuleSpec, Scope, Selector};

/// Reads the usage of subjects.
#[derive(Clone, Debug)]
pub struct GetUsage {
    catalog: Arc<Catalog>,
    limiter: BatchLimiter,
}

/// A rule and the usage of a subject.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The rule.
    pub rule: Arc<CompiledRule>,
    /// Usage of the subject, if it has used anything and the store is available.
    pub subject: Option<SubjectUsage>,
}

/// Usage of one subject under one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectUsage {
    /// Units used.
    pub used: u64,
    /// Units left.
    pub remaining: u64,
    /// Unix time in seconds at which nothing is used any more.
    pub reset_at: u64,
}

/// An error of reading usage.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UsageError {
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NoSuchRule(RuleId),
    /// The rule does not match the identifier.
    #[error("identifier does not match the rule's pattern {0}")]
    OtherSubject(String),
    /// The identifier is invalid.
    #[error("identifier{}", .0.to_string().trim_start_matches("key"))]
    Identifier(#[from] KeyError),
}

impl GetUsage {
    /// Creates the use case on the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, limiter: BatchLimiter) -> Self {
        Self { catalog, limiter }
    }

    /// Returns a rule and the usage of `identifier`, which a rule with an exact pattern does not
    /// need.
    pub async fn of(&self, id: RuleId, identifier: Option<&str>) -> Result<Usage, UsageError> {
        let snapshot = self.catalog.load();
        let rule = snapshot.rule(id).ok_or(UsageError::NoSuchRule(id))?;
        let Some(spec) = rule.rule().map(|rule| &rule.spec) else {
            return Err(UsageError::NoSuchRule(id));
        };
        let attributes = subject_of(spec, identifier);
        let rule = snapshot.with_limit_for(rule, &attributes, || self.catalog.now());
        if let Some(selector) = &spec.selector {
            // The subject of a rule over attributes is the values that it counts by.
            let all = selector.per().next().is_none().then_some(Selector::ALL);
            let subject = match all.or(identifier) {
                None => None,
                Some(values) => self.of_subject(rule, spec.scope, Key::new(values)?).await,
            };
            return Ok(Usage { rule: Arc::clone(rule), subject });
        }
        let identifier = identifier.or(spec.identifier_pattern.exact());
        let subject = match identifier {
            None => None,
            Some(identifier) if !spec.identifier_pattern.matches(identifier) => {
                return Err(UsageError::OtherSubject(spec.identifier_pattern.to_string()));
            }
            Some(identifier) => self.of_subject(rule, spec.scope, Key::new(identifier)?).await,
        };
        Ok(Usage { rule: Arc::clone(rule), subject })
    }

    /// Returns the usage of `subject` under `rule`; `None` if nothing is used or the store is
    /// unavailable.
    pub async fn of_subject(
        &self,
        rule: &CompiledRule,
        scope: Scope,
        subject: Key<'_>,
    ) -> Option<SubjectUsage> {
        let space = rule.space(scope);
        let check = Check::new(subject.within(&space), rule.limit(), Cost::ONE).ok()?;
        let outcomes = self.limiter.apply(Verb::Peek, &Batch::from(check)).await.ok()?;
        let outcome = outcomes.first().filter(|outcome| outcome.degraded.is_none())?;
        let used = outcome.limit - outcome.remaining;
        let reset_at = (outcome.at + outcome.reset_after).as_secs_ceil();
        (!outcome.reset_after.is_zero()).then_some(SubjectUsage {
            used,
            remaining: outcome.remaining,
            reset_at,
        })
    }
}

/// Returns what an identifier says about a subject, for overrides: the attribute of the scope, or
/// the only attribute that the rule counts by.
fn subject_of<'a>(spec: &'a RuleSpec, identifier: Option<&'a str>) -> Attributes<'a> {
    let name = match &spec.selector {
        None => Some(spec.scope.name()),
        Some(selector) => selector.per().next().filter(|_| selector.per.len() == 1),
    };
    let value = identifier.or(spec.identifier_pattern.exact());
    let mut attributes = Attributes::default();
    if let (Some(name), Some(value)) = (name, value) {
        // A value that no attribute may have has no override.
        let _ = attributes.insert(name, value);
    }
    attributes
}
