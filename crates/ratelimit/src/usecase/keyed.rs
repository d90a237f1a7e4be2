//! May this key go on, under the algorithm that the caller names?

use std::sync::Arc;

use headgate::{Batch, BatchError, Check, Cost, Decision, Key, Limiter, StoreError, Verb};
use thiserror::Error;

use super::reset::{self, ResetReport};
use crate::{
    AuditLog, Author,
    keyed::{KeyedAlgorithm, KeyedLimit, KeyedLimits},
};

/// Decides about keys without rules: one store call, and nothing else to wait for.
#[derive(Clone)]
pub struct LimitKeys {
    limits: Arc<KeyedLimits>,
    limiter: Limiter,
    audit: Arc<dyn AuditLog>,
}

/// Whether a key may take something.
#[derive(Clone, Copy, Debug)]
pub struct KeyedQuestion<'a> {
    /// How it is counted.
    pub algorithm: KeyedAlgorithm,
    /// Who it is.
    pub key: Key<'a>,
    /// How much it would take.
    pub permits: Cost,
}

/// A decision, and the limit that it was made by.
#[derive(Clone, Copy, Debug)]
pub struct KeyedVerdict<'l> {
    /// What was decided.
    pub decision: Decision,
    /// By which limit.
    pub limit: &'l KeyedLimit,
}

/// Why nothing was decided.
#[derive(Clone, Debug, Error)]
pub enum KeyedError {
    /// It could never be admitted.
    #[error(transparent)]
    Permits(#[from] headgate::CheckError),
    /// It cannot be asked in one call.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The store does not know, and no failure policy answered.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl LimitKeys {
    /// Decides by `limits`; resets are written down in `audit`.
    pub fn new(limits: Arc<KeyedLimits>, limiter: Limiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { limits, limiter, audit }
    }

    /// What is allowed.
    pub fn limits(&self) -> &KeyedLimits {
        &self.limits
    }

    /// Takes what is asked for if there is as much.
    pub async fn check(
        &self,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'_>, KeyedError> {
        self.ask(Verb::Acquire, question).await
    }

    /// Says what [`check`](Self::check) would, and takes nothing.
    pub async fn peek(&self, question: &KeyedQuestion<'_>) -> Result<KeyedVerdict<'_>, KeyedError> {
        self.ask(Verb::Peek, question).await
    }

    async fn ask(
        &self,
        verb: Verb,
        question: &KeyedQuestion<'_>,
    ) -> Result<KeyedVerdict<'_>, KeyedError> {
        let KeyedQuestion { algorithm, key, permits } = *question;
        let limit = self.limits.of(algorithm, key.subject());
        let check = Check::new(key.within(algorithm.space()), limit.limit(), permits)?;
        let batch = Batch::from(check.or_else(self.limits.fail_mode()));
        let outcomes = self.limiter.each(verb, &batch).await?;
        Ok(KeyedVerdict { decision: Decision::fold(&outcomes), limit })
    }

    /// Forgets what `key` took, under one algorithm or under all. What cannot be recorded first is
    /// not done.
    pub async fn reset(
        &self,
        algorithm: Option<KeyedAlgorithm>,
        key: Key<'_>,
        author: Author,
    ) -> ResetReport {
        let chosen = |candidate: &KeyedAlgorithm| algorithm.is_none_or(|one| one == *candidate);
        // Every limit admits one unit, and no algorithm stands there twice.
        let states = KeyedAlgorithm::ALL.into_iter().filter(chosen).filter_map(|algorithm| {
            let limit = self.limits.of(algorithm, key.subject()).limit();
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
        reset::recorded(&*self.audit, &reset::entry(target, None, author), forget).await
    }
}

impl std::fmt::Debug for LimitKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LimitKeys").field("limits", &self.limits).finish_non_exhaustive()
    }
}
