//! Checks that can be refunded, by their request id.
//!
//! Such a check takes its units and a *mark* in one batch, so that the store has either both or
//! none. The mark is a limit of its own, on a key that is the hash of the request id, of the cost
//! and of all keys that were charged. A refund therefore needs no other record: the mark proves
//! that exactly this was taken, when, and that it was not refunded before.
//!
//! A mark is [exact](Check::exact): usage that new subjects share while a store is full proves
//! nothing. If the store has no room for it, the check is decided without one, and cannot be
//! refunded.

use std::{sync::Arc, time::Duration};

use headgate::{
    Algorithm, Batch, Check, CheckMode, Cost, Decision, Key, KeySpace, Limit, Outcome, Timestamp,
    Verb,
};
use thiserror::Error;

use super::{AnyQuestion, CheckError, CheckRateLimit, Resolved, Stack, Verdict};
use crate::{
    CompiledRule,
    usecase::reset_times::{MAX_REFUNDABLE, ResetTimes, digest},
};

/// A mark has three units: a check takes two of them, so that no other check fits, and a refund
/// takes the last one.
const UNITS: u64 = 3;
const TAKEN_LEAVES: u64 = 1;

const MARKS: KeySpace<'static> = KeySpace::new("ratelimit:request:", "");

/// An error of a check with a request id, or of its refund. Nothing was taken or returned.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum RefundError {
    /// The check is invalid.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The request id was used by an admitted check.
    #[error("request_id {0} was used by a check that was admitted: nothing was taken")]
    Reused(String),
    /// Nothing was taken under the request id.
    #[error(
        "no such check was admitted under request_id {0}, or its units do not count any more, or \
         its rules have changed: nothing was refunded"
    )]
    Unknown(String),
}

/// A refund.
#[derive(Clone, Debug)]
pub struct Refunded {
    /// The limits after it; `None` if no rule limits the check.
    pub decision: Option<Decision>,
    /// `true` if it was refunded before.
    pub replayed: bool,
}

impl CheckRateLimit {
    /// Consumes the cost if every rule admits it, as a check does. What it took can be refunded by
    /// its request id, unless the store has no room for a mark. Returns `None` if no rule matches.
    pub async fn check_refundable(
        &self,
        question: &AnyQuestion<'_>,
        request_id: &str,
    ) -> Result<Option<Verdict>, RefundError> {
        let snapshot = self.catalog.load();
        let own = question.attributes_for(&snapshot);
        let resolved = self.resolve(&snapshot, question, &own)?;
        if resolved.limits.is_empty() {
            return Ok(resolved.matched.map(|rule| self.exempt_by(rule)));
        }
        let mark = Mark::new(&resolved, question.cost(), request_id)?;
        let taken = Cost::new(UNITS - TAKEN_LEAVES).unwrap_or(Cost::ONE);
        let mut checks = checks(&resolved, question.cost())?;
        checks.push(mark.check(taken)?);
        let batch = Batch::new(checks).map_err(CheckError::Batch)?;
        let mut outcomes = self.apply_mark(Verb::Acquire, &batch).await?;
        if let Some(mark) = outcomes.pop().filter(|mark| !mark.allowed) {
            if mark.remaining < taken.get() {
                return Err(RefundError::Reused(request_id.to_owned()));
            }
            // There is no room for the mark, and nothing was taken.
            let checks = self::checks(&resolved, question.cost())?;
            let batch = Batch::new(checks).map_err(CheckError::Batch)?;
            outcomes = self.apply_mark(Verb::Acquire, &batch).await?;
        }
        let stack: Stack<'_> = resolved.limits.iter().map(|(rule, ..)| *rule).collect();
        let verdict = Verdict::of(&stack, &outcomes);
        verdict.rule.tally().count(verdict.decision.allowed);
        Ok(Some(verdict))
    }

    /// Returns what a check took under `request_id`, once, as far as it still counts. `question`
    /// is that check.
    pub async fn refund(
        &self,
        question: &AnyQuestion<'_>,
        request_id: &str,
    ) -> Result<Refunded, RefundError> {
        let snapshot = self.catalog.load();
        let own = question.attributes_for(&snapshot);
        let resolved = self.resolve(&snapshot, question, &own)?;
        if resolved.limits.is_empty() {
            // Nothing was counted.
            return Ok(Refunded { decision: None, replayed: false });
        }
        let mark = Mark::new(&resolved, question.cost(), request_id)?;
        let check = mark.check(Cost::ONE)?;
        let unknown = || RefundError::Unknown(request_id.to_owned());
        let counters = resolved.limits.iter().map(|(_, space, subject)| (space, &**subject));
        let resets = ResetTimes::of(counters);
        let asked = Batch::new([check].into_iter().chain(resets.checks()));
        let asked = asked.map_err(CheckError::Batch)?;
        let answers = self.apply_mark(Verb::Peek, &asked).await?;
        let (seen, resets) = (answers[0], &answers[1..]);
        if seen.remaining > TAKEN_LEAVES {
            return Err(unknown());
        }
        // Before the mark is spent: a refund that fails must not be one that was made.
        let checks = checks(&resolved, question.cost())?;
        let taken_at = mark.made_at(&seen);
        let checks = checks.into_iter().zip(resets).map(|(check, reset)| {
            // What a reset has deleted is not returned again.
            let is_gone = ResetTimes::is_after(reset, taken_at);
            let mode = if is_gone { CheckMode::Report } else { check.mode() };
            check.taken_at(taken_at).with_mode(mode)
        });
        let batch = Batch::new(checks).map_err(CheckError::Batch)?;
        let spent = self.apply_mark(Verb::Acquire, &check.into()).await?[0];
        let replayed = !spent.allowed;
        if spent.remaining > 0 {
            // The mark has expired between the two calls.
            return Err(unknown());
        }
        let verb = if replayed { Verb::Peek } else { Verb::Refund };
        let outcomes = self.apply_mark(verb, &batch).await?;
        Ok(Refunded { decision: Some(Decision::fold(&outcomes)), replayed })
    }

    async fn apply_mark(&self, verb: Verb, batch: &Batch<'_>) -> Result<Vec<Outcome>, RefundError> {
        let outcomes = self.limiter.apply(verb, batch).await;
        Ok(outcomes.map_err(CheckError::Store)?.into_vec())
    }
}

/// The mark that a check leaves.
struct Mark {
    key: String,
    limit: Limit,
    life: Duration,
}

impl Mark {
    fn new(resolved: &Resolved<'_, '_>, cost: Cost, request_id: &str) -> Result<Self, CheckError> {
        let keys = resolved.limits.iter().flat_map(|(_, space, subject)| {
            let [prefix, suffix] = space.parts();
            [prefix, subject, suffix]
        });
        let key = digest([request_id].into_iter().chain(keys), &cost.get().to_be_bytes());
        let lives = resolved.limits.iter().map(|(rule, ..)| life(rule));
        let life = lives.max().unwrap_or(MAX_REFUNDABLE).min(MAX_REFUNDABLE);
        let limit = Limit::sliding_window(UNITS, life);
        // A window of a rule is a valid window.
        let limit = limit.map_err(|_| CheckError::TooManyRules)?;
        Ok(Self { key, limit, life })
    }

    fn check(&self, cost: Cost) -> Result<Check<'_>, CheckError> {
        let key = Key::new(&self.key).map_err(CheckError::Subject)?.within(&MARKS);
        Ok(Check::new(key, &self.limit, cost)?.exact())
    }

    /// The time at which it was made: it is gone a life later.
    fn made_at(&self, seen: &Outcome) -> Timestamp {
        let ends = (seen.at + seen.reset_after).as_micros();
        Timestamp::from_micros(ends.saturating_sub(self.life.as_micros() as u64))
    }
}

/// The time for which units that a rule admitted count at all.
fn life(rule: &Arc<CompiledRule>) -> Duration {
    let window = Duration::from_secs(rule.window_seconds().into());
    match rule.limit().algorithm() {
        Algorithm::SlidingWindowCounter => 2 * window,
        _ => window,
    }
}

fn checks<'a>(resolved: &'a Resolved<'_, '_>, cost: Cost) -> Result<Vec<Check<'a>>, CheckError> {
    let checks = resolved.limits.iter().map(|(rule, space, subject)| {
        let key = Key::new(subject).map_err(CheckError::Subject)?.within(space);
        // Without a lease: units that were taken in advance cannot be refunded.
        Ok(rule.check(key, cost)?.without_extra())
    });
    checks.collect()
}
