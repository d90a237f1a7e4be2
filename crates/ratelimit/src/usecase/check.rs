//! May this subject go on?

use std::{collections::HashMap, sync::Arc, time::Duration};

use headgate::{
    Batch, BatchError, Check, Cost, Decision, Key, Limiter, Outcome, Space, StoreError, Verb,
};
use smallvec::SmallVec;
use thiserror::Error;

use crate::{Catalog, CompiledRule, RuleId, Scope, Snapshot};

/// Decides by the rules in force: one store call, and nothing else to wait for.
#[derive(Clone, Debug)]
pub struct CheckRateLimit {
    catalog: Arc<Catalog>,
    limiter: Limiter,
}

/// Whether a subject may take something.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// What kind of subject.
    pub scope: Scope,
    /// Which one.
    pub subject: Key<'a>,
    /// Which rules are asked.
    pub asked: Asked,
    /// How much it would take.
    pub cost: Cost,
}

/// Which rules are asked.
#[derive(Clone, Copy, Debug, Default)]
pub enum Asked {
    /// All that match the subject.
    #[default]
    Matching,
    /// The one of them with this window, in seconds.
    Window(u64),
    /// This one, which must match the subject.
    Rule(RuleId),
}

/// A decision, and the rule that speaks in it.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What was decided.
    pub decision: Decision,
    /// By which rule.
    pub rule: Arc<CompiledRule>,
    /// Every rule that had to admit it, each with its own answer; empty where `rule` is the only one.
    pub stack: Vec<(Arc<CompiledRule>, Outcome)>,
}

/// Why nothing was decided.
#[derive(Clone, Debug, Error)]
pub enum CheckError {
    /// No rule that matches has this window.
    #[error("no rule has a window of {asked}s; windows here: {}", seconds(known))]
    NoSuchWindow {
        /// What was asked for.
        asked: u64,
        /// What there is.
        known: Vec<u32>,
    },
    /// There is no such rule.
    #[error("rule not found: {0}")]
    NoSuchRule(RuleId),
    /// The rule is about others.
    #[error("rule {rule} is about {pattern}, which does not match")]
    OtherSubject {
        /// Which rule.
        rule: RuleId,
        /// Whom it is about.
        pattern: String,
    },
    /// It could never be admitted.
    #[error(transparent)]
    Cost(#[from] headgate::CheckError),
    /// Too much at once.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store does not know, and no failure policy answered.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The rules that must admit one question; none when all that match are disabled.
type Stack<'s> = SmallVec<[&'s Arc<CompiledRule>; 2]>;

// === impl CheckRateLimit ===

impl CheckRateLimit {
    /// Decides by the rules of `catalog`.
    pub const fn new(catalog: Arc<Catalog>, limiter: Limiter) -> Self {
        Self { catalog, limiter }
    }

    /// Takes what is asked for if every rule admits it.
    pub async fn check(&self, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let verdict = self.decide(Verb::Acquire, question).await?;
        verdict.rule.tally().count(verdict.decision.allowed);
        Ok(verdict)
    }

    /// Says what [`check`](Self::check) would, and takes nothing.
    pub async fn peek(&self, question: &Question<'_>) -> Result<Verdict, CheckError> {
        self.decide(Verb::Peek, question).await
    }

    /// Takes what all questions ask for if every rule of every one admits it, in one store call;
    /// otherwise takes nothing. Each verdict says how its own subject stands.
    pub async fn check_all(&self, questions: &[Question<'_>]) -> Result<Vec<Verdict>, CheckError> {
        let verdicts = self.decide_all(Verb::Acquire, questions).await?;
        let all = verdicts.iter().all(|verdict| verdict.decision.allowed);
        for verdict in &verdicts {
            // Those who had room took nothing either if another had none.
            if all || !verdict.decision.allowed {
                verdict.rule.tally().count(all);
            }
        }
        Ok(verdicts)
    }

    /// Says what [`check_all`](Self::check_all) would, and takes nothing.
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
        let spaces: SmallVec<[Space<'_>; 2]> =
            stack.iter().map(|rule| rule.space(question.scope)).collect();
        let checks = stack.iter().zip(&spaces).map(|(rule, space)| {
            let check = Check::new(question.subject.within(space), rule.limit(), question.cost)?;
            Ok(check.or_else(rule.fail_mode()))
        });
        let checks = checks.collect::<Result<SmallVec<[_; 2]>, CheckError>>()?;
        let outcomes = self.limiter.each(verb, &Batch::new(checks)?).await?;
        Ok(Verdict::of(&stack, &outcomes))
    }

    /// As almost everywhere: one rule decides.
    async fn decide_by(
        &self,
        rule: &Arc<CompiledRule>,
        verb: Verb,
        question: &Question<'_>,
    ) -> Result<Verdict, CheckError> {
        let space = rule.space(question.scope);
        let check = Check::new(question.subject.within(&space), rule.limit(), question.cost)?;
        let outcomes = self.limiter.each(verb, &check.or_else(rule.fail_mode()).into()).await?;
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

    /// Disabled rules admit everything and count nothing.
    fn exempt(&self, snapshot: &Snapshot, question: &Question<'_>) -> Result<Verdict, CheckError> {
        let rule = Arc::clone(question.speaker(snapshot)?);
        let limit = rule.limit().capacity();
        let decision = Decision {
            allowed: true,
            limit,
            remaining: limit,
            reset_after: Duration::ZERO,
            retry_after: Duration::ZERO,
            at: self.catalog.now(),
            degraded: None,
            rule: 0,
        };
        Ok(Verdict { decision, rule, stack: Vec::new() })
    }
}

// === impl Question ===

impl Question<'_> {
    /// The enabled rules that must admit it.
    fn stack<'s>(&self, snapshot: &'s Snapshot) -> Result<Stack<'s>, CheckError> {
        let matched = snapshot.matching(self.scope, self.subject.subject());
        let window = match self.asked {
            Asked::Matching => None,
            Asked::Window(asked) => {
                if !matched.windows().any(|window| u64::from(window) == asked) {
                    let known = matched.windows().collect();
                    return Err(CheckError::NoSuchWindow { asked, known });
                }
                Some(asked)
            }
            Asked::Rule(_) => {
                let rule = self.speaker(snapshot)?;
                return Ok([rule].into_iter().filter(|rule| rule.is_enabled()).collect());
            }
        };
        Ok(matched.applied(window).collect())
    }

    /// A rule that can speak for the question although none has to admit it.
    fn speaker<'s>(&self, snapshot: &'s Snapshot) -> Result<&'s Arc<CompiledRule>, CheckError> {
        let Asked::Rule(id) = self.asked else {
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
        let rule = Arc::clone(stack[decision.rule]);
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

/// The limits of several questions. Who is asked about twice by the same rule must have room for both.
#[derive(Default)]
struct SharedBatch<'a> {
    entries: Vec<Entry<'a>>,
    places: HashMap<(Space<'a>, &'a str), usize>,
}

struct Entry<'a> {
    rule: &'a CompiledRule,
    space: Space<'a>,
    subject: Key<'a>,
    units: u64,
}

impl<'a> SharedBatch<'a> {
    /// Adds one limit of `question`; gives its place.
    fn add(&mut self, rule: &'a CompiledRule, question: &Question<'a>) -> usize {
        let (space, subject) = (rule.space(question.scope), question.subject);
        let units = question.cost.get();
        let next = self.entries.len();
        let place = *self.places.entry((space, subject.subject())).or_insert(next);
        match self.entries.get_mut(place) {
            Some(entry) => entry.units = entry.units.saturating_add(units),
            None => self.entries.push(Entry { rule, space, subject, units }),
        }
        place
    }

    async fn apply(&self, limiter: &Limiter, verb: Verb) -> Result<Vec<Outcome>, CheckError> {
        if self.entries.is_empty() {
            return Ok(Vec::new());
        }
        let checks = self.entries.iter().map(|entry| {
            // Together they may ask for more than a cost can be; then they ask for the most.
            let cost = Cost::new(entry.units.min(Cost::MAX)).unwrap_or(Cost::ONE);
            let key = entry.subject.within(&entry.space);
            Ok(Check::new(key, entry.rule.limit(), cost)?.or_else(entry.rule.fail_mode()))
        });
        let checks = checks.collect::<Result<Vec<_>, CheckError>>()?;
        Ok(limiter.each(verb, &Batch::new(checks)?).await?.into_vec())
    }
}

fn seconds(windows: &[u32]) -> String {
    let windows: Vec<String> = windows.iter().map(|window| format!("{window}s")).collect();
    windows.join(", ")
}
