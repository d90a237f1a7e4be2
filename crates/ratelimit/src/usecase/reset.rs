//! Resets the usage of subjects.

use std::{sync::Arc, time::Duration};

use headgate::{Batch, BatchLimiter, Check, Cost, Key, KeySpace, Limit, StoreError};
use thiserror::Error;

use crate::{AuditEntry, AuditLog, Author, Catalog, RepositoryError, Scope};

/// Resets the usage of subjects and records it in the audit log.
#[derive(Clone)]
pub struct ResetLimit {
    catalog: Arc<Catalog>,
    limiter: BatchLimiter,
    audit: Arc<dyn AuditLog>,
}

/// The result of a reset.
#[derive(Clone, Debug)]
pub struct ResetReport {
    /// Result of the reset.
    pub outcome: Result<(), ResetError>,
    /// Error of recording the outcome in the audit log, which then has it as unknown.
    pub unsettled: Option<RepositoryError>,
}

/// An error of a reset, which may have been done.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The audit log cannot be written: nothing was reset.
    #[error(transparent)]
    Unrecorded(RepositoryError),
    /// The request was not sent to the store: nothing was reset.
    #[error(transparent)]
    NotSent(StoreError),
    /// The store did not confirm the reset, which may have been done.
    #[error("the reset was not confirmed and may have been done: {0}")]
    Unconfirmed(StoreError),
}

/// A failed call of the store.
pub(super) struct ResetFailure {
    cause: StoreError,
    /// `true` if the store may have reset something.
    sent: bool,
}

/// Recorded before a reset, and kept if its outcome stays unknown.
const UNKNOWN: &str = r#"{"outcome":"unknown"}"#;

/// Recorded for a reset that was not done.
const NOT_DONE: &str = r#"{"outcome":"not_done"}"#;

/// Maximum number of keys per store call.
const MAX_BATCH: usize = 100;

// === impl ResetLimit ===

impl ResetLimit {
    /// Creates the use case on the rules of `catalog`.
    pub fn new(catalog: Arc<Catalog>, limiter: BatchLimiter, audit: Arc<dyn AuditLog>) -> Self {
        Self { catalog, limiter, audit }
    }

    /// Resets the usage of a subject under every window and algorithm that can apply to it. Nothing
    /// is reset if the audit log cannot be written first. If the future is dropped, the audit log
    /// has the outcome as unknown.
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

    async fn forget(&self, scope: Scope, subject: Key<'_>) -> Result<(), ResetFailure> {
        let suffixes = self.catalog.load().key_suffixes(scope, subject.subject());
        let states: Vec<(Limit, KeySpace<'_>)> = suffixes
            .iter()
            .filter_map(|(window, algorithm, suffix)| {
                let window = Duration::from_secs((*window).into());
                let limit = Limit::new(*algorithm, 1, window).ok()?;
                Some((limit, KeySpace::new(scope.key_prefix(), suffix)))
            })
            .collect();
        for (i, some) in states.chunks(MAX_BATCH).enumerate() {
            let checks = some.iter().filter_map(|(limit, space)| {
                Check::new(subject.within(space), limit, Cost::ONE).ok()
            });
            if let Ok(batch) = Batch::new(checks) {
                let reset = self.limiter.reset(&batch).await;
                reset.map_err(|cause| ResetFailure::from(cause).after(i))?;
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

// === impl ResetFailure ===

impl ResetFailure {
    /// The failure of a call after `calls` successful ones.
    const fn after(mut self, calls: usize) -> Self {
        self.sent |= calls > 0;
        self
    }
}

impl From<ResetFailure> for ResetError {
    fn from(ResetFailure { cause, sent }: ResetFailure) -> Self {
        if sent { Self::Unconfirmed(cause) } else { Self::NotSent(cause) }
    }
}

impl From<StoreError> for ResetFailure {
    fn from(cause: StoreError) -> Self {
        let sent = !cause.is_unsent();
        Self { cause, sent }
    }
}

/// The audit entry of a reset that is about to be made.
pub(super) fn entry(target: String, reason: Option<String>, author: Author) -> AuditEntry {
    AuditEntry {
        // The audit log assigns the id.
        id: 0,
        author,
        action: "counter.reset".to_owned(),
        target,
        before: None,
        after: Some(UNKNOWN.to_owned()),
        reason,
    }
}

/// Records `entry`, runs `forget`, then records the outcome.
pub(super) async fn recorded(
    audit: &dyn AuditLog,
    entry: &AuditEntry,
    forget: impl Future<Output = Result<(), ResetFailure>>,
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
        Err(ResetError::NotSent(_)) => audit.settle(id, Some(NOT_DONE)).await,
        // The entry already has the outcome as unknown.
        Err(_) => Ok(()),
    };
    ResetReport { outcome, unsettled: settled.err() }
}
