//! Management of rules, usage, explanations and resets.

use std::sync::Arc;

use headgate::Key;
use headgate_ratelimit::{
    Attributes, AuditLog, Author, Catalog, Scope,
    usecase::{
        EndReport, Explain, GetUsage, ManageOverrides, ManageRules, ResetError, ResetLimit,
        ResetReport, check::holders::HeldLease,
    },
};
use tokio::sync::Semaphore;
use tracing::error;

use crate::completion::run_to_completion;

/// The use cases of rules other than checks.
pub struct RuleAdmin {
    /// The rules in force.
    pub catalog: Arc<Catalog>,
    /// Managing rules.
    pub rules: ManageRules,
    /// Managing overrides.
    pub overrides: ManageOverrides,
    /// Usage under a rule.
    pub usage: GetUsage,
    /// Explanations of decisions.
    pub explain: Explain,
    /// The audit log.
    pub audit: Arc<dyn AuditLog>,
    /// Admits one long list of rules at a time, since each needs much memory.
    pub long_lists: Semaphore,
    reset: ResetLimit,
}

impl RuleAdmin {
    /// Creates the use cases around the rules in `catalog`.
    pub fn new(
        catalog: Arc<Catalog>,
        rules: ManageRules,
        overrides: ManageOverrides,
        usage: GetUsage,
        explain: Explain,
        reset: ResetLimit,
        audit: Arc<dyn AuditLog>,
    ) -> Self {
        let long_lists = Semaphore::new(1);
        Self { catalog, rules, overrides, usage, explain, audit, long_lists, reset }
    }

    /// Restores the whole limit of a subject.
    pub async fn reset(
        &self,
        scope: Scope,
        subject: Key<'_>,
        reason: Option<String>,
        author: Author,
    ) -> Result<(), ResetError> {
        let (reset, subject) = (self.reset.clone(), subject.to_owned());
        run_to_completion(async move {
            let request_id = author.request_id.clone();
            let space = subject.space();
            let report = reset.reset(scope, subject.as_key(&space), reason, author).await;
            log_unsettled(&request_id, &report);
            report.outcome
        })
        .await
    }

    /// Restores the whole limits of a check with these attributes.
    pub async fn reset_attributes(
        &self,
        attributes: Attributes<'static>,
        reason: Option<String>,
        author: Author,
    ) -> Result<(), ResetError> {
        let reset = self.reset.clone();
        run_to_completion(async move {
            let request_id = author.request_id.clone();
            let report = reset.reset_attributes(&attributes, reason, author).await;
            log_unsettled(&request_id, &report);
            report.outcome
        })
        .await
    }

    /// Ends the lease of another. Returns `false` if it had ended before.
    pub async fn end_lease(
        &self,
        lease: HeldLease,
        handle: String,
        reason: Option<String>,
        author: Author,
    ) -> Result<bool, ResetError> {
        let reset = self.reset.clone();
        run_to_completion(async move {
            let request_id = author.request_id.clone();
            let EndReport { ended, report } =
                reset.end_lease(&lease, &handle, reason, author).await;
            log_unsettled(&request_id, &report);
            report.outcome.map(|()| ended)
        })
        .await
    }
}

/// Logs the outcome of a reset that the audit log could not record.
pub(super) fn log_unsettled(request_id: &str, report: &ResetReport) {
    if let Some(cause) = &report.unsettled {
        let outcome = if report.outcome.is_ok() { "done" } else { "not done" };
        error!(
            request_id,
            outcome,
            %cause,
            "audit log has no outcome for a reset, which was {outcome}"
        );
    }
}
