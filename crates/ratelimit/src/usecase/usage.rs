//! How much of a rule's allowance is used.

use std::sync::Arc;

use headgate::{Batch, Check, Cost, Key, KeyError, Limiter, Verb};
use thiserror::Error;

use crate::{Catalog, CompiledRule, RuleId, Scope};

/// Shows how subjects stand, and changes nothing.
#[derive(Clone, Debug)]
pub struct GetUsage {
    catalog: Arc<Catalog>,
    limiter: Limiter,
}

/// A rule, and how a subject stands under it.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The rule.
    pub rule: Arc<CompiledRule>,
    /// How the subject stands, if it has used anything and the store knows.
    pub standing: Option<Standing>,
}

/// How a subject stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// How much it has used.
    pub used: u64,
    /// How much it has left.
    pub remaining: u64,
    /// The Unix second at which everything is back.
    pub reset_at: u64,
}

/// Why there is nothing to show.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UsageError {
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NoSuchRule(RuleId),
    /// The rule is about others.
    #[error("identifier does not match the rule's pattern {0}")]
    OtherSubject(String),
    /// Nobody is called that.
    #[error("identifier{}", .0.to_string().trim_start_matches("key"))]
    Identifier(#[from] KeyError),
}

impl GetUsage {
    /// Looks at the states of `limiter` under the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, limiter: Limiter) -> Self {
        Self { catalog, limiter }
    }

    /// The rule, and how `identifier` stands under it. A rule for one identifier needs none named.
    pub async fn of(&self, id: RuleId, identifier: Option<&str>) -> Result<Usage, UsageError> {
        let snapshot = self.catalog.load();
        let rule = snapshot.rule(id).ok_or(UsageError::NoSuchRule(id))?;
        let Some(spec) = rule.rule().map(|rule| &rule.spec) else {
            return Err(UsageError::NoSuchRule(id));
        };
        let identifier = identifier.or(spec.identifier_pattern.exact());
        let standing = match identifier {
            None => None,
            Some(identifier) if !spec.identifier_pattern.matches(identifier) => {
                return Err(UsageError::OtherSubject(spec.identifier_pattern.to_string()));
            }
            Some(identifier) => {
                let subject = Key::new(identifier)?;
                self.standing(rule, spec.scope, subject).await
            }
        };
        Ok(Usage { rule: Arc::clone(rule), standing })
    }

    /// How `subject` stands under `rule`; `None` where nothing is used or the store does not know.
    pub async fn standing(
        &self,
        rule: &CompiledRule,
        scope: Scope,
        subject: Key<'_>,
    ) -> Option<Standing> {
        let space = rule.space(scope);
        let check = Check::new(subject.within(&space), rule.limit(), Cost::ONE).ok()?;
        let outcomes = self.limiter.each(Verb::Peek, &Batch::from(check)).await.ok()?;
        let outcome = outcomes.first().filter(|outcome| outcome.degraded.is_none())?;
        let used = outcome.limit - outcome.remaining;
        let reset_at = (outcome.at + outcome.reset_after).as_secs_ceil();
        (!outcome.reset_after.is_zero()).then_some(Standing {
            used,
            remaining: outcome.remaining,
            reset_at,
        })
    }
}
