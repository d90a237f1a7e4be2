//! Checks by key, without rules.

use std::sync::Arc;

use headgate::{Batch, BatchError, BatchLimiter, Check, Cost, Decision, Key, StoreError, Verb};
use thiserror::Error;

use super::reset::{self, ResetReport};
use crate::{
    AuditLog, Author,
    keyed::{KeyedAlgorithm, KeyedLimit, KeyedLimits},
};

/// Decides checks of keys without rules, with a single store call. Callers pass the limits in force.
#[derive(Clone)]
pub struct LimitKeys {
    limiter: BatchLimiter,
    audit: Arc<dyn AuditLog>,
}

/// A check of one key.
#[derive(Clone, Copy, Debug)]
pub struct KeyedQuestion<'a> {
    /// Algorithm.
    pub algorithm: KeyedAlgorithm,
    /// Key.
    pub key: Key<'a>,
    /// Units to consume.
    pub permits: Cost,
}

/// A decision and its limit.
#[derive(Clone, Copy, Debug)]
pub struct KeyedVerdict<'l> {
    /// The decision.
    pub decision: Decision,
    /// The limit.
    pub limit: &'l KeyedLimit,
}

/// An error of a check by key.
#[derive(Clone, Debug, Error)]
pub enum KeyedError {
    /// The cost exceeds the limit.
    #[error(transparent)]
    Permits(#[from] headgate::InvalidCheck),
    /// The batch is invalid.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store failed, and no failure policy decided.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LimitKeys {
    /// Creates the use case; resets are recorded in `audit`.
    pub fn new(limiter: BatchLimiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { limiter, audit }
    }

    /// Consumes the permits if the limit admits it.
    pub async fn check<'l>(
        &self,
        limits: &'l KeyedLimits,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'l>, KeyedError> {
        self.decide(Verb::Acquire, limits, question).await
    }

    /// Returns what [`check`](Self::check) would, and consumes nothing.
    pub async fn peek<'l>(
        &self,
        limits: &'l KeyedLimits,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'l>, KeyedError> {
        self.decide(Verb::Peek, limits, question).await
    }

    async fn decide<'l>(
        &self,
        verb: Verb,
        limits: &'l KeyedLimits,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'l>, KeyedError> {
        let KeyedQuestion { algorithm, key, permits } = *question;
        let limit = limits.of(algorithm, key.subject());
        let check = Check::new(key.within(algorithm.space()), limit.limit(), permits)?;
        let check = check.with_fail_mode(limits.fail_mode()).with_optional_extra(limit.extra());
        let batch = Batch::from(check);
        let outcomes = self.limiter.apply(verb, &batch).await?;
        Ok(KeyedVerdict { decision: Decision::fold(&outcomes), limit })
    }

    /// Resets the usage of `key` under one algorithm or all. Nothing is reset if the audit log
    /// cannot be written first.
    pub async fn reset(
        &self,
        limits: &KeyedLimits,
        algorithm: Option<KeyedAlgorithm>,
        key: Key<'_>,
        author: Author,
    ) -> ResetReport {
        let chosen = |candidate: &KeyedAlgorithm| algorithm.is_none_or(|one| one == *candidate);
        // A cost of one is always valid, and the keys differ.
        let states = KeyedAlgorithm::ALL.into_iter().filter(chosen).filter_map(|algorithm| {
            let limit = limits.of(algorithm, key.subject()).limit();
            Check::new(key.within(algorithm.space()), limit, Cost::ONE).ok()
        });
        let forget = async {
            match Batch::new(states) {
                Ok(batch) => self.limiter.reset(&batch).await.map(drop).map_err(Into::into),
                Err(_) => Ok(()),
            }
        };
        let counted_by = algorithm.map_or("*", |algorithm| algorithm.engine().name());
        let target = format!("rate_limiter:{counted_by}:{}", key.subject());
        reset::recorded(&*self.audit, &reset::entry(reset::RESET, target, None, author), forget)
            .await
    }
}

impl std::fmt::Debug for LimitKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitKeys").finish_non_exhaustive()
    }
}
