//! Ends the lease of another, on behalf of an operator.

use headgate::{Batch, Check, Cost, KeySpace, StoreError, Verb};
use serde_json::json;

use super::{
    ResetLimit, ResetReport,
    check::holders::HeldLease,
    reset::{ResetFailure, entry, recorded},
};
use crate::{AuditEntry, Author};

/// The result of ending a lease.
#[derive(Clone, Debug)]
pub struct EndReport {
    /// `true` if it was ended; `false` if it had ended before.
    pub ended: bool,
    /// Result of the call, and of its record in the audit log.
    pub report: ResetReport,
}

impl ResetLimit {
    /// Frees the places of a lease, and records it in the audit log first. The next
    /// renewal by its holder is refused.
    pub async fn end_lease(
        &self,
        lease: &HeldLease,
        handle: &str,
        reason: Option<String>,
        author: Author,
    ) -> EndReport {
        let before = json!({"holder": handle, "places": lease.places}).to_string();
        let entry = entry("lease.end", lease.target.clone(), reason, author);
        let entry = AuditEntry { before: Some(before), ..entry };
        let mut ended = false;
        let release = async {
            ended = self.release(lease).await.map_err(ResetFailure::from)?;
            Ok(())
        };
        let report = recorded(&*self.audit, &entry, release).await;
        EndReport { ended, report }
    }

    async fn release(&self, lease: &HeldLease) -> Result<bool, StoreError> {
        let spaces: Vec<KeySpace<'_>> = lease.limits.iter().map(|(_, key)| key.space()).collect();
        let limits = lease.limits.iter().zip(&spaces);
        let checks: Vec<Check<'_>> = limits
            .filter_map(|((rule, key), space)| rule.taking(key.as_key(space), Cost::ONE).ok())
            .collect();
        // A lease that was found holds something.
        let Ok(batch) = Batch::new(checks) else { return Ok(false) };
        Ok(self.limiter.apply(Verb::Cancel(lease.id), &batch).await?.iter().all(|it| it.allowed))
    }
}
