//! Checks by rules.

mod any_question;
mod attributes;
pub mod holders;
pub mod places;
mod refundable;
pub mod reservations;
mod resolve;
mod shared;

use std::{sync::Arc, time::Duration};

use headgate::{
    Batch, BatchError, BatchLimiter, Cost, Decision, Key, KeyError, KeySpace, Outcome, StoreError,
    Verb,
};
use smallvec::SmallVec;
use thiserror::Error;

pub(super) use self::resolve::Resolved;
use self::shared::SharedBatch;
pub use self::{
    any_question::AnyQuestion,
    attributes::AttributesQuestion,
    refundable::{RefundError, Refunded},
    reservations::{ReservationError, ReservationRequest},
};
use crate::{Catalog, CompiledRule, RuleId, Scope, Selector, Snapshot};

/// Decides checks by the current rules, with a single store call.
#[derive(Clone, Debug)]
pub struct CheckRateLimit {
    catalog: Arc<Catalog>,
    limiter: BatchLimiter,
}

/// A check of one subject.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Kind of the subject.
    pub scope: Scope,
    /// Identifier of the subject.
    pub subject: Key<'a>,
    /// Rules to consult.
    pub selection: RuleSelection,
    /// Units to consume.
    pub cost: Cost,
}

/// The rules that a check consults.
#[derive(Clone, Copy, Debug, Default)]
pub enum RuleSelection {
    /// All rules that match the subject most closely.
    #[default]
    Matching,
    /// The one among them with this window in seconds.
    Window(u64),
    /// This rule, whose pattern must match the subject.
    Rule(RuleId),
}

/// A decision and the rule that determined it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// The rule that denied, or the one with the least remaining.
    pub rule: Arc<CompiledRule>,
    /// All consulted rules with their outcomes; empty if `rule` is the only one.
    pub stack: Vec<(Arc<CompiledRule>, Outcome)>,
}

/// An error of a check.
#[derive(Clone, Debug, Error)]
pub enum CheckError {
    /// No matching rule has this window.
    #[error("no rule has a window of {requested}s; windows of this subject: {}", seconds(known))]
    NoSuchWindow {
        /// The requested window.
        requested: u64,
        /// The windows of the matching rules.
        known: Vec<u32>,
    },
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NoSuchRule(RuleId),
    /// The rule does not match the subject.
    #[error("rule {rule} does not match this subject: its pattern is {pattern}")]
    OtherSubject {
        /// The rule.
        rule: RuleId,
        /// Its scope and pattern.
        pattern: String,
    },
    /// The rule is over attributes, and the check is of a subject.
    #[error("rule {0} is over attributes: send attributes instead of its id")]
    OverAttributes(RuleId),
    /// An attribute that rules of subjects match is not a valid identifier.
    #[error("attribute {scope}{}", .error.to_string().trim_start_matches("key"))]
    Identifier {
        /// The scope, which is the name of the attribute.
        scope: Scope,
        /// Its error.
        error: KeyError,
    },
    /// The values that a rule counts by are not a valid key.
    #[error("attributes are not a valid key: {0}")]
    Subject(KeyError),
    /// Too many rules match.
    #[error(
        "more than {max} rules over attributes match this check: narrow their conditions, or stop \
         them by a rule of a higher priority",
        max = Selector::MAX_MATCHES
    )]
    TooManyRules,
    /// The cost exceeds the limit.
    #[error(transparent)]
    Cost(#[from] headgate::InvalidCheck),
    /// The batch is too large.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store failed, and no failure policy decided.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rules that must admit a check; empty if all matching rules are disabled.
type Stack<'s> = SmallVec<[&'s Arc<CompiledRule>; 2]>;

// === impl CheckRateLimit ===

impl CheckRateLimit {
    /// Creates the use case on the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, limiter: BatchLimiter) -> Self {
        Self { catalog, limiter }
    }

    /// Consumes the cost if every rule admits it.
    pub async fn check(&self, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let verdict = self.decide(Verb::Acquire, question).await?;
        verdict.rule.tally().count(verdict.decision.allowed);
        Ok(verdict)
    }

    /// Returns what [`check`](Self::check) would, and consumes nothing.
    pub async fn peek(&self, question: &Question<'_>) -> Result<Verdict, CheckError> {
        self.decide(Verb::Peek, question).await
    }

    /// Consumes all costs if every rule of every question admits it, in one store call; otherwise
    /// consumes nothing. Each verdict is about its own subject.
    /// A question with attributes that no rule matches has none.
    pub async fn check_all(
        &self,
        questions: &[AnyQuestion<'_>],
    ) -> Result<Vec<Option<Verdict>>, CheckError> {
        let verdicts = self.decide_all(Verb::Acquire, questions).await?;
        let all = verdicts.iter().flatten().all(|verdict| verdict.decision.allowed);
        for verdict in verdicts.iter().flatten() {
            // If one was denied, the others consumed nothing and count as neither.
            if all || !verdict.decision.allowed {
                verdict.rule.tally().count(all);
            }
        }
        Ok(verdicts)
    }

    /// Returns what [`check_all`](Self::check_all) would, and consumes nothing.
    pub async fn peek_all(
        &self,
        questions: &[AnyQuestion<'_>],
    ) -> Result<Vec<Option<Verdict>>, CheckError> {
        self.decide_all(Verb::Peek, questions).await
    }

    async fn decide(&self, verb: Verb, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let snapshot = self.catalog.load();
        if question.needs_selectors(&snapshot) {
            // On the heap, so that other checks do not carry its state.
            return Box::pin(self.decide_selected(&snapshot, verb, question)).await;
        }
        let stack = self.stack(&snapshot, question)?;
        if stack.is_empty() {
            return self.exempt(&snapshot, question);
        }
        if let [rule] = stack[..] {
            return self.decide_by(rule, verb, question).await;
        }
        let spaces: SmallVec<[KeySpace<'_>; 2]> =
            stack.iter().map(|rule| rule.space(question.scope)).collect();
        let checks = stack
            .iter()
            .zip(&spaces)
            .map(|(rule, space)| Ok(rule.check(question.subject.within(space), question.cost)?));
        let checks = checks.collect::<Result<SmallVec<[_; 2]>, CheckError>>()?;
        let outcomes = self.limiter.apply(verb, &Batch::new(checks)?).await?;
        Ok(Verdict::of(&stack, &outcomes))
    }

    /// Fast path: a single rule decides.
    async fn decide_by(
        &self,
        rule: &Arc<CompiledRule>,
        verb: Verb,
        question: &Question<'_>,
    ) -> Result<Verdict, CheckError> {
        let space = rule.space(question.scope);
        let check = rule.check(question.subject.within(&space), question.cost)?;
        let outcomes = self.limiter.apply(verb, &check.into()).await?;
        Ok(Verdict { decision: outcomes[0].into(), rule: Arc::clone(rule), stack: Vec::new() })
    }

    async fn decide_all(
        &self,
        verb: Verb,
        questions: &[AnyQuestion<'_>],
    ) -> Result<Vec<Option<Verdict>>, CheckError> {
        let snapshot = self.catalog.load();
        let attributes: Vec<_> =
            questions.iter().map(|question| question.attributes_for(&snapshot)).collect();
        let mut shared = SharedBatch::default();
        let mut places = Vec::with_capacity(questions.len());
        for (question, attributes) in questions.iter().zip(&attributes) {
            let resolved = self.resolve(&snapshot, question, attributes)?;
            let matched = resolved.matched;
            places.push((shared.add_all(resolved, question.cost()), matched));
        }
        let outcomes = shared.apply(&self.limiter, verb).await?;
        let verdict = |((stack, at), matched): ((Stack<'_>, Vec<usize>), Option<_>)| {
            if stack.is_empty() {
                return matched.map(|rule| self.exempt_by(rule));
            }
            let own: SmallVec<[Outcome; 2]> = at.iter().map(|i| outcomes[*i]).collect();
            Some(Verdict::of(&stack, &own))
        };
        Ok(places.into_iter().map(verdict).collect())
    }

    /// Returns the enabled rules that must admit a check, with the limits that it has.
    fn stack<'s>(
        &self,
        snapshot: &'s Snapshot,
        question: &Question<'_>,
    ) -> Result<Stack<'s>, CheckError> {
        let mut stack = question.stack(snapshot)?;
        if snapshot.has_overrides() {
            let (attributes, now) = (question.attributes(), || self.catalog.now());
            for rule in &mut stack {
                *rule = snapshot.with_limit_for(rule, &attributes, now);
            }
        }
        Ok(stack)
    }

    /// Admits a check whose rules are all disabled; nothing is counted.
    fn exempt(&self, snapshot: &Snapshot, question: &Question<'_>) -> Result<Verdict, CheckError> {
        Ok(self.exempt_by(question.representative(snapshot)?))
    }

    fn exempt_by(&self, rule: &Arc<CompiledRule>) -> Verdict {
        let limit = rule.limit().capacity();
        let outcome = Outcome::admission(limit, limit, Duration::ZERO, self.catalog.now());
        Verdict { decision: outcome.into(), rule: Arc::clone(rule), stack: Vec::new() }
    }
}

// === impl Question ===

impl Question<'_> {
    /// Returns the enabled rules that must admit it.
    fn stack<'s>(&self, snapshot: &'s Snapshot) -> Result<Stack<'s>, CheckError> {
        let matched = snapshot.matching(self.scope, self.subject.subject());
        let window = match self.selection {
            RuleSelection::Matching => None,
            RuleSelection::Window(requested) => {
                if !matched.windows().any(|window| u64::from(window) == requested) {
                    let known = matched.windows().collect();
                    return Err(CheckError::NoSuchWindow { requested, known });
                }
                Some(requested)
            }
            RuleSelection::Rule(_) => {
                let rule = self.representative(snapshot)?;
                return Ok([rule].into_iter().filter(|rule| rule.is_enabled()).collect());
            }
        };
        Ok(matched.applied(window).collect())
    }

    /// Returns the rule to report if no enabled rule applies.
    fn representative<'s>(
        &self,
        snapshot: &'s Snapshot,
    ) -> Result<&'s Arc<CompiledRule>, CheckError> {
        let RuleSelection::Rule(id) = self.selection else {
            return Ok(&snapshot.matching(self.scope, self.subject.subject()).rules[0]);
        };
        let rule = snapshot.rule(id).ok_or(CheckError::NoSuchRule(id))?;
        match rule.rule().map(|rule| &rule.spec) {
            Some(spec) if spec.selector.is_some() => Err(CheckError::OverAttributes(id)),
            Some(spec) if !spec.identifier_pattern.matches(self.subject.subject()) => {
                Err(CheckError::OtherSubject { rule: id, pattern: spec.key() })
            }
            _ => Ok(rule),
        }
    }
}

// === impl Verdict ===

impl Verdict {
    fn of(stack: &[&Arc<CompiledRule>], outcomes: &[Outcome]) -> Self {
        let decision = Decision::fold(outcomes);
        let rule = Arc::clone(stack[decision.decided_by]);
        let stack = match stack {
            [_] => Vec::new(),
            several => {
                several.iter().map(|rule| Arc::clone(rule)).zip(outcomes.iter().copied()).collect()
            }
        };
        Self { decision, rule, stack }
    }
}

fn seconds(windows: &[u32]) -> String {
    let windows: Vec<String> = windows.iter().map(|window| format!("{window}s")).collect();
    windows.join(", ")
}

#[cfg(test)]
mod limits_tests;
