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

/// What came of a reset.
#[derive(Clone, Debug)]
pub struct ResetReport {
    /// Whether the subject was reset.
    pub outcome: Result<(), ResetError>,
    /// Why the record does not tell the outcome, if it does not: it says that nobody knows.
    pub unsettled: Option<RepositoryError>,
}

/// Why nobody can say that a subject was reset.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The audit log cannot be written, so that the store was not asked: nothing was reset.
    #[error(transparent)]
    Unrecorded(RepositoryError),
    /// The store was not even asked: nothing was reset.
    #[error(transparent)]
    NotAsked(StoreError),
    /// The store was asked, and may have done it or not.
    #[error("nobody knows whether it was reset: {0}")]
    Unconfirmed(StoreError),
}

/// Why not everything is known to be forgotten.
pub(super) struct Failed {
    cause: StoreError,
    /// Whether the store may have forgotten something.
    asked: bool,
}

/// Recorded of a reset of which nobody knows whether it was done.
const UNKNOWN: &str = r#"{"outcome":"unknown"}"#;

/// Recorded of a reset that was not done.
const NOT_DONE: &str = r#"{"outcome":"not_done"}"#;

/// How many states are forgotten in one call: no store has to take more at once.
const AT_ONCE: usize = 100;

// === impl ResetLimit ===

impl ResetLimit {
    /// Resets states of `limiter` under the rules of `catalog`.
    pub fn new(catalog: Arc<Catalog>, limiter: Limiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { catalog, limiter, audit }
    }

    /// Forgets everything that the subject took, under every window and algorithm that can apply
    /// to it. What cannot be recorded first is not done. Should the caller give up meanwhile, the
    /// record says that nobody knows.
    pub async fn reset(
        &self,
        scope: Scope,
        subject: Key<'_>,
        reason: Option<String>,
        author: Author,
    ) -> ResetReport {
        let target = format!("{scope}:{}", subject.subject());
        let entry = entry(target, reason, author);
        recorded(&*self.audit, &entry, self.forget(scope, subject)).await
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
}

impl From<Failed> for ResetError {
    fn from(Failed { cause, asked }: Failed) -> Self {
        if asked { Self::Unconfirmed(cause) } else { Self::NotAsked(cause) }
    }
}

impl From<StoreError> for Failed {
    fn from(cause: StoreError) -> Self {
        let asked = !cause.is_unsent();
        Self { cause, asked }
    }
}

/// The entry of a reset that is about to be made.
pub(super) fn entry(target: String, reason: Option<String>, author: Author) -> AuditEntry {
    AuditEntry {
        // The record gives it another.
        id: 0,
        author,
        action: "counter.reset".to_owned(),
        target,
        before: None,
        after: Some(UNKNOWN.to_owned()),
        reason,
    }
}

/// Records `entry`, then lets `forget` run, then records what came of it.
pub(super) async fn recorded(
    audit: &dyn AuditLog,
    entry: &AuditEntry,
    forget: impl Future<Output = Result<(), Failed>>,
) -> ResetReport {
    let id = match audit.record(entry).await {
        Ok(id) => id,
        Err(error) => {
            return ResetReport { outcome: Err(ResetError::Unrecorded(error)), unsettled: None };
        }
    };
    let outcome = forget.await.map_err(ResetError::from);
    let settled = match &outcome {
        Ok(()) => audit.settle(id, None).await,
        Err(ResetError::NotAsked(_)) => audit.settle(id, Some(NOT_DONE)).await,
        // The record says so already.
        Err(_) => Ok(()),
    };
    ResetReport { outcome, unsettled: settled.err() }
}
