//! The number of rules, without counting them each time.

use std::sync::{Mutex, PoisonError};

use headgate_ratelimit::{RepositoryError, Revision};

use crate::{session::Session, statement::Statement};

const COUNT: &str = "SELECT count(*) AS total FROM rate_limit_rules";

/// The number of rules that there were at a revision.
#[derive(Debug, Default)]
pub(crate) struct KnownTotal(Mutex<Option<(Revision, u64)>>);

impl KnownTotal {
    /// Notes how many rules there are at a revision.
    pub(super) fn note(&self, revision: Revision, total: u64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((revision, total));
    }

    /// The number of rules at a revision, if it is known.
    pub(super) fn known(&self, revision: Revision) -> Option<u64> {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.filter(|(known, _)| *known == revision).map(|(_, total)| total)
    }

    /// The number of rules at the revision that `session` sees; counted if it is not known.
    pub(super) async fn at(
        &self,
        revision: Revision,
        session: &mut Session,
    ) -> Result<u64, RepositoryError> {
        if let Some(total) = self.known(revision) {
            return Ok(total);
        }
        let total = session.count(Statement::new(COUNT)).await?;
        self.note(revision, total);
        Ok(total)
    }
}
