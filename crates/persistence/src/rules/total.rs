//! The cached number of rules.

use std::sync::{Mutex, PoisonError};

use headgate_ratelimit::{RepositoryError, Revision};

use crate::{session::Session, statement::Statement};

const COUNT: &str = "SELECT count(*) AS total FROM rate_limit_rules";

/// The number of rules at a revision.
#[derive(Debug, Default)]
pub(crate) struct CachedTotal(Mutex<Option<(Revision, u64)>>);

impl CachedTotal {
    /// Sets the number of rules at a revision.
    pub(crate) fn set(&self, revision: Revision, total: u64) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *cached = Some((revision, total));
    }

    /// Returns the number of rules at a revision, if it is cached.
    pub(crate) fn get(&self, revision: Revision) -> Option<u64> {
        let cached = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.filter(|(cached, _)| *cached == revision).map(|(_, total)| total)
    }

    /// Returns the number of rules at the revision that `session` sees; counts them if it is not
    /// cached.
    pub(super) async fn at(
        &self,
        revision: Revision,
        session: &mut Session,
    ) -> Result<u64, RepositoryError> {
        if let Some(total) = self.get(revision) {
            return Ok(total);
        }
        let total = session.count(Statement::new(COUNT)).await?;
        self.set(revision, total);
        Ok(total)
    }
}
