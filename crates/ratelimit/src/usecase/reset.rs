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

/// Why a subject was not reset.
#[derive(Clone, Debug, Error)]
pub enum ResetError {
    /// The store cannot.
    #[error(transparent)]
    Store(#[from] StoreError),
}

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
        self.forget(scope, subject).await?;
        let entry = AuditEntry {
            id: 0,
            author,
            action: "counter.reset".to_owned(),
            target: format!("{scope}:{}", subject.subject()),
            before: None,
            after: None,
            reason,
        };
        Ok(self.audit.record(&entry).await.err())
    }

    async fn forget(&self, scope: Scope, subject: Key<'_>) -> Result<(), StoreError> {
        let suffixes = self.catalog.load().key_suffixes(scope, subject.subject());
        let states: Vec<(Limit, Space<'_>)> = suffixes
            .iter()
            .filter_map(|(window, algorithm, suffix)| {
                let window = Duration::from_secs((*window).into());
                let limit = Limit::new(*algorithm, 1, window).ok()?;
                Some((limit, Space::new(scope.key_prefix(), suffix)))
            })
            .collect();
        for some in states.chunks(Batch::MAX_CHECKS) {
            let checks = some.iter().filter_map(|(limit, space)| {
                Check::new(subject.within(space), limit, Cost::ONE).ok()
            });
            if let Ok(batch) = Batch::new(checks) {
                self.limiter.reset(&batch).await?;
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
