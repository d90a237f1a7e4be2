//! Checks by rules.

use std::{collections::HashMap, sync::Arc, time::Duration};

use headgate::{
    Batch, BatchError, BatchLimiter, Check, Cost, Decision, Key, KeySpace, Outcome, StoreError,
    Verb,
};
use smallvec::SmallVec;
use thiserror::Error;

use crate::{Catalog, CompiledRule, RuleId, Scope, Snapshot};

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
    pub async fn check_all(&self, questions: &[Question<'_>]) -> Result<Vec<Verdict>, CheckError> {
        let verdicts = self.decide_all(Verb::Acquire, questions).await?;
        let all = verdicts.iter().all(|verdict| verdict.decision.allowed);
        for verdict in &verdicts {
            // If one was denied, the others consumed nothing and count as neither.
            if all || !verdict.decision.allowed {
                verdict.rule.tally().count(all);
            }
        }
        Ok(verdicts)
    }

    /// Returns what [`check_all`](Self::check_all) would, and consumes nothing.
    pub async fn peek_all(&self, questions: &[Question<'_>]) -> Result<Vec<Verdict>, CheckError> {
        self.decide_all(Verb::Peek, questions).await
    }

    async fn decide(&self, verb: Verb, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let snapshot = self.catalog.load();
        let stack = question.stack(&snapshot)?;
        if stack.is_empty() {
            return self.exempt(&snapshot, question);
        }
        if let [rule] = stack[..] {
            return self.decide_by(rule, verb, question).await;
        }
        let spaces: SmallVec<[KeySpace<'_>; 2]> =
            stack.iter().map(|rule| rule.space(question.scope)).collect();
        let checks = stack.iter().zip(&spaces).map(|(rule, space)| {
            let check = Check::new(question.subject.within(space), rule.limit(), question.cost)?;
            Ok(check.with_fail_mode(rule.fail_mode()))
        });
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
        let check = Check::new(question.subject.within(&space), rule.limit(), question.cost)?;
        let outcomes =
            self.limiter.apply(verb, &check.with_fail_mode(rule.fail_mode()).into()).await?;
        Ok(Verdict { decision: outcomes[0].into(), rule: Arc::clone(rule), stack: Vec::new() })
    }

    async fn decide_all(
        &self,
        verb: Verb,
        questions: &[Question<'_>],
    ) -> Result<Vec<Verdict>, CheckError> {
        let snapshot = self.catalog.load();
        let mut shared = SharedBatch::default();
        let mut places = Vec::with_capacity(questions.len());
        for question in questions {
            let stack = question.stack(&snapshot)?;
            let at: SmallVec<[usize; 2]> =
                stack.iter().map(|rule| shared.add(rule, question)).collect();
            places.push((stack, at));
        }
        let outcomes = shared.apply(&self.limiter, verb).await?;
        let verdict = |(question, (stack, at)): (&Question<'_>, (Stack<'_>, SmallVec<[_; 2]>))| {
            if stack.is_empty() {
                return self.exempt(&snapshot, question);
            }
            let own: SmallVec<[Outcome; 2]> = at.iter().map(|i: &usize| outcomes[*i]).collect();
            Ok(Verdict::of(&stack, &own))
        };
        questions.iter().zip(places).map(verdict).collect()
    }

    /// Admits a check whose rules are all disabled; nothing is counted.
    fn exempt(&self, snapshot: &Snapshot, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let rule = Arc::clone(question.representative(snapshot)?);
        let limit = rule.limit().capacity();
        let outcome = Outcome::admission(limit, limit, Duration::ZERO, self.catalog.now());
        Ok(Verdict { decision: outcome.into(), rule, stack: Vec::new() })
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

// === SharedBatch ===

/// The limits of several questions. Costs of one subject under one rule are added.
#[derive(Default)]
struct SharedBatch<'a> {
    entries: Vec<SharedCheck<'a>>,
    places: HashMap<(KeySpace<'a>, &'a str), usize>,
}

struct SharedCheck<'a> {
    rule: &'a CompiledRule,
    space: KeySpace<'a>,
    subject: Key<'a>,
    units: u64,
}

impl<'a> SharedBatch<'a> {
    /// Adds one limit of `question`; returns its index.
    fn add(&mut self, rule: &'a CompiledRule, question: &Question<'a>) -> usize {
        let (space, subject) = (rule.space(question.scope), question.subject);
        let units = question.cost.get();
        let next = self.entries.len();
        let place = *self.places.entry((space, subject.subject())).or_insert(next);
        match self.entries.get_mut(place) {
            Some(entry) => entry.units = entry.units.saturating_add(units),
            None => self.entries.push(SharedCheck { rule, space, subject, units }),
        }
        place
    }

    async fn apply(&self, limiter: &BatchLimiter, verb: Verb) -> Result<Vec<Outcome>, CheckError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let checks = self.entries.iter().map(|entry| {
            // The sum may exceed the maximum cost.
            let cost = Cost::new(entry.units.min(Cost::MAX)).unwrap_or(Cost::ONE);
            let key = entry.subject.within(&entry.space);
            Ok(Check::new(key, entry.rule.limit(), cost)?.with_fail_mode(entry.rule.fail_mode()))
        });
        let checks = checks.collect::<Result<Vec<_>, CheckError>>()?;
        Ok(limiter.apply(verb, &Batch::new(checks)?).await?.into_vec())
    }
}

fn seconds(windows: &[u32]) -> String {
    let windows: Vec<String> = windows.iter().map(|window| format!("{window}s")).collect();
    windows.join(", ")
}
