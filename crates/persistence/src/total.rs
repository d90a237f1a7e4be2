//! The number of rows of a table, cached and bounded.

use std::sync::{Mutex, PoisonError};

use headgate_ratelimit::Revision;

use crate::{outage::Outage, session::Session, statement::Statement};

/// The number of rows of a table at a revision, and its maximum.
#[derive(Debug)]
pub(crate) struct BoundedTotal {
    count: &'static str,
    max: u64,
    cached: Mutex<Option<(Revision, u64)>>,
}

// === impl BoundedTotal ===

impl BoundedTotal {
    /// Bounds the number of rules.
    pub(crate) const fn of_rules(max: u64) -> Self {
        Self::new("SELECT count(*) AS total FROM rate_limit_rules", max)
    }

    /// Bounds the number of quota policies.
    pub(crate) const fn of_policies(max: u64) -> Self {
        Self::new("SELECT count(*) AS total FROM quota_policies", max)
    }

    const fn new(count: &'static str, max: u64) -> Self {
        Self { count, max, cached: Mutex::new(None) }
    }

    /// Returns the maximum.
    pub(crate) const fn max(&self) -> u64 {
        self.max
    }

    /// Sets the number at a revision.
    pub(crate) fn set(&self, revision: Revision, total: u64) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        *cached = Some((revision, total));
    }

    /// Returns the number at a revision, if it is cached.
    pub(crate) fn get(&self, revision: Revision) -> Option<u64> {
        let cached = *self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        cached.filter(|(cached, _)| *cached == revision).map(|(_, total)| total)
    }

    /// Returns the number at the revision that `session` sees; counts if it is not cached.
    pub(crate) async fn at(
        &self,
        revision: Revision,
        session: &mut Session,
    ) -> Result<u64, Outage> {
        if let Some(total) = self.get(revision) {
            return Ok(total);
        }
        let total = session.count(Statement::new(self.count)).await?;
        self.set(revision, total);
        Ok(total)
    }
}
