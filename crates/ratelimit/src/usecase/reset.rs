//! Gives a subject its whole allowance back.

use std::{sync::Arc, time::Duration};

use headgate::{Batch, Check, Cost, Key, Limit, Limiter, Space, StoreError};
use thiserror::Error;

use crate::{AuditEntry, AuditLog, Author, Catalog, RepositoryError, Scope};

/// Forgets what subjects took, and writes down who wanted that.
#[derive(Clone)]
pub struct ResetLimit {
    catalog: Arc<Catalog>,
    limiter: Limiter,
    audit: Arc<dyn AuditLog>,
}

/// Why nobody can say that a subject was reset.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The store was not even asked: nothing was reset.
    #[error(transparent)]
    NotAsked(StoreError),
    /// The store was asked, and may have done it or not.
    #[error("nobody knows whether it was reset: {cause}")]
    Unconfirmed {
        /// What the store said instead.
        cause: StoreError,
        /// Why this is not on record, if it is not.
        unrecorded: Option<RepositoryError>,
    },
}

/// Why not everything is known to be forgotten.
pub(super) struct Failed {
    cause: StoreError,
    /// Whether the store may have forgotten something.
    asked: bool,
}

/// What is written down of a reset of which nobody knows whether it was done.
const UNKNOWN: &str = r#"{"outcome":"unknown"}"#;

/// How many states are forgotten in one call: no store has to take more at once.
const AT_ONCE: usize = 100;

// === impl ResetError ===

impl ResetError {
    /// Why what was tried is not on record, if it is not.
    pub const fn unrecorded(&self) -> Option<&RepositoryError> {
        match self {
            Self::NotAsked(_) => None,
            Self::Unconfirmed { unrecorded, .. } => unrecorded.as_ref(),
        }
    }
}

// === impl ResetLimit ===

impl ResetLimit {
    /// Resets states of `limiter` under the rules of `catalog`.
    pub fn new(catalog: Arc<Catalog>, limiter: Limiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { catalog, limiter, audit }
    }

    /// Forgets everything that the subject took, under every window and algorithm that can apply
    /// to it. A record that cannot be written does not stand in the way: it is given back, to be told.
    pub async fn reset(
        &self,
        scope: Scope,
        subject: Key<'_>,
        reason: Option<String>,
        author: Author,
    ) -> Result<Option<RepositoryError>, ResetError> {
        let entry = AuditEntry {
            id: 0,
            author,
            action: "counter.reset".to_owned(),
            target: format!("{scope}:{}", subject.subject()),
            before: None,
            after: None,
            reason,
        };
        record(&*self.audit, entry, self.forget(scope, subject).await).await
    }

    async fn forget(&self, scope: Scope, subject: Key<'_>) -> Result<(), Failed> {
        let suffixes = self.catalog.load().key_suffixes(scope, subject.subject());
        let states: Vec<(Limit, Space<'_>)> = suffixes
            .iter()
            .filter_map(|(window, algorithm, suffix)| {
                let window = Duration::from_secs((*window).into());
                let limit = Limit::new(*algorithm, 1, window).ok()?;
                Some((limit, Space::new(scope.key_prefix(), suffix)))
            })
            .collect();
        for (i, some) in states.chunks(AT_ONCE).enumerate() {
            let checks = some.iter().filter_map(|(limit, space)| {
                Check::new(subject.within(space), limit, Cost::ONE).ok()
            });
            if let Ok(batch) = Batch::new(checks) {
                let reset = self.limiter.reset(&batch).await;
                reset.map_err(|cause| Failed::from(cause).after(i))?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for ResetLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResetLimit").finish_non_exhaustive()
    }
}

// === impl Failed ===

impl Failed {
    /// The same, after so many calls that did what they were asked.
    const fn after(mut self, calls: usize) -> Self {
        self.asked |= calls > 0;
        self
    }

    /// Writes down what nobody can undo: that it was tried, and that nobody knows what came of it.
    async fn recorded(self, audit: &dyn AuditLog, entry: AuditEntry) -> ResetError {
        if !self.asked {
            return ResetError::NotAsked(self.cause);
        }
        let entry = AuditEntry { after: Some(UNKNOWN.to_owned()), ..entry };
        let unrecorded = audit.record(&entry).await.err();
        ResetError::Unconfirmed { cause: self.cause, unrecorded }
    }
}

impl From<StoreError> for Failed {
    fn from(cause: StoreError) -> Self {
        let asked = !cause.is_unsent();
        Self { cause, asked }
    }
}

/// Writes `entry` down, whatever came of it if the store was asked.
pub(super) async fn record(
    audit: &dyn AuditLog,
    entry: AuditEntry,
    outcome: Result<(), Failed>,
) -> Result<Option<RepositoryError>, ResetError> {
    match outcome {
        Ok(()) => Ok(audit.record(&entry).await.err()),
        Err(failed) => Err(failed.recorded(audit, entry).await),
    }
}
