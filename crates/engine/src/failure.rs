//! What is answered when the store cannot: a store that never fails to decide.

use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

use thiserror::Error;

use crate::{
    Batch, Check, Clock, Cost, Limit, Outcome, Outcomes, Store, StoreError, StoreFuture, Timestamp,
    Verb,
};

/// Who decides while the store cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FailMode {
    /// Nobody: everything is admitted.
    #[default]
    Open,
    /// Nobody: everything is denied.
    Closed,
    /// This process alone, with its share of the limit.
    Local,
}

/// A name that is no failure mode's.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("unknown fail mode {0:?}: expected open, closed or local")]
pub struct UnknownFailMode(pub String);

/// What a denial by [`FailMode::Closed`] tells the caller to wait: nobody knows better.
const CLOSED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Asks `primary`; when it cannot answer, each check's [`FailMode`] does.
///
/// Questions (peek, acquire, reserve) always get an answer. Other verbs keep
/// their error: nobody can give back to a store that is away.
#[derive(Debug)]
pub struct FailurePolicy<P, L, C> {
    primary: P,
    local: L,
    replicas: NonZeroU32,
    clock: C,
}

// === impl FailMode ===

impl FailMode {
    /// The name in configuration and APIs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
            Self::Local => "local",
        }
    }
}

impl fmt::Display for FailMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FailMode {
    type Err = UnknownFailMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        [Self::Open, Self::Closed, Self::Local]
            .into_iter()
            .find(|mode| mode.name() == name)
            .ok_or_else(|| UnknownFailMode(name.chars().take(64).collect()))
    }
}

// === impl FailurePolicy ===

impl<P: Store, L: Store, C: Clock> FailurePolicy<P, L, C> {
    /// Answers for `primary` when it cannot; `local` decides for [`FailMode::Local`],
    /// with the limit divided among `replicas`.
    pub const fn new(primary: P, local: L, replicas: NonZeroU32, clock: C) -> Self {
        Self { primary, local, replicas, clock }
    }

    async fn answer_instead(
        &self,
        verb: Verb,
        batch: &Batch<'_>,
        error: StoreError,
    ) -> Result<Outcomes, StoreError> {
        if !verb.asks() {
            return Err(error);
        }
        let now = self.clock.now();
        let denies =
            |check: &Check<'_>| check.fail_mode() == FailMode::Closed && check.stake().binds();
        let closed = batch.checks().iter().any(denies);
        // A batch that is denied anyway takes nothing locally either.
        let verb = if closed { Verb::Peek } else { verb };
        let mut local = self.ask_locally(verb, batch).await?.into_iter();
        let answer = |check: &Check<'_>| match check.fail_mode() {
            FailMode::Local => local.next().unwrap_or_else(|| degraded(check, now)),
            FailMode::Open | FailMode::Closed => degraded(check, now),
        };
        Ok(batch.checks().iter().map(answer).collect())
    }

    /// Has the local store decide the checks that ask for it, as one batch.
    async fn ask_locally(&self, verb: Verb, batch: &Batch<'_>) -> Result<Outcomes, StoreError> {
        let asked = || batch.checks().iter().filter(|check| check.fail_mode() == FailMode::Local);
        let shares: Vec<Limit> = asked().map(|check| check.limit().share(self.replicas)).collect();
        let checks = asked().zip(&shares).map(|(check, share)| {
            let cost = check.cost().min(Cost::new(share.capacity()).unwrap_or(Cost::ONE));
            Check::new(check.key(), share, cost).map(|local| local.with_stake(check.stake()))
        });
        let checks: Vec<Check<'_>> = checks.filter_map(Result::ok).collect();
        let Ok(batch) = Batch::new(checks) else {
            return Ok(Outcomes::new());
        };
        let mut outcomes = self.local.apply(verb, &batch).await?;
        for outcome in &mut outcomes {
            outcome.degraded = Some(FailMode::Local);
        }
        Ok(outcomes)
    }
}

/// What an outage answers to a check that nobody can decide.
fn degraded(check: &Check<'_>, at: Timestamp) -> Outcome {
    let allowed = check.fail_mode() != FailMode::Closed;
    let capacity = check.limit().capacity();
    let wait = if allowed { Duration::ZERO } else { CLOSED_RETRY_AFTER };
    Outcome {
        allowed,
        limit: capacity,
        remaining: if allowed { capacity } else { 0 },
        reset_after: wait,
        retry_after: wait,
        at,
        degraded: Some(check.fail_mode()),
    }
}

impl<P: Store, L: Store, C: Clock> Store for FailurePolicy<P, L, C> {
    fn apply<'a>(&'a self, verb: Verb, batch: &'a Batch<'_>) -> StoreFuture<'a> {
        match self.primary.apply(verb, batch) {
            StoreFuture::Ready(Some(Err(error))) => {
                StoreFuture::pending(self.answer_instead(verb, batch, error))
            }
            ready @ StoreFuture::Ready(_) => ready,
            StoreFuture::Pending(answer) => StoreFuture::pending(async move {
                match answer.await {
                    Err(error) => self.answer_instead(verb, batch, error).await,
                    answered => answered,
                }
            }),
        }
    }
}
