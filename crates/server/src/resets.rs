//! Resets: each goes on to its end, also when the caller does not wait for it, so that the audit log
//! tells what came of it.

use std::{future, panic, sync::Arc};

use headgate::Key;
use headgate_quota::{QuotaId, usecase as quota};
use headgate_ratelimit::{
    Author, KeyedAlgorithm, Scope,
    usecase::{ResetError, ResetReport},
};
use tracing::error;

use crate::services::Services;

impl Services {
    /// Gives a subject its whole allowance back.
    pub(crate) async fn reset_subject(
        self: &Arc<Self>,
        scope: Scope,
        subject: Key<'_>,
        reason: Option<String>,
        author: Author,
    ) -> Result<(), ResetError> {
        let (services, subject) = (Arc::clone(self), subject.to_owned());
        to_the_end(async move {
            let request_id = author.request_id.clone();
            let space = subject.space();
            let subject = subject.as_key(&space);
            let report = services.reset.reset(scope, subject, reason, author).await;
            told(&request_id, report)
        })
        .await
    }

    /// Gives a key its whole allowance back, under one algorithm or under all.
    pub(crate) async fn reset_key(
        self: &Arc<Self>,
        algorithm: Option<KeyedAlgorithm>,
        key: Key<'_>,
        author: Author,
    ) -> Result<(), ResetError> {
        let (services, key) = (Arc::clone(self), key.to_owned());
        to_the_end(async move {
            let request_id = author.request_id.clone();
            let space = key.space();
            let report = services.keyed.reset(algorithm, key.as_key(&space), author).await;
            told(&request_id, report)
        })
        .await
    }

    /// Gives a subject its whole quota back. The ledger records it in the same transaction; the
    /// counter is to follow even if nobody waits.
    pub(crate) async fn reset_quota(
        self: &Arc<Self>,
        id: &QuotaId,
        reason: &str,
        author: Author,
    ) -> Result<quota::ResetDone, quota::ResetError> {
        let (services, id, reason) = (Arc::clone(self), id.clone(), reason.to_owned());
        to_the_end(async move { services.quotas.reset.reset(&id, &reason, author).await }).await
    }
}

/// Runs `reset` as a task of its own, which the caller's end does not stop.
async fn to_the_end<T: Send + 'static>(reset: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(reset).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(cause) => panic::resume_unwind(cause),
            // The process ends, and this with it.
            Err(_) => future::pending().await,
        },
    }
}

/// Says in the log what the audit log could not be told.
fn told(request_id: &str, report: ResetReport) -> Result<(), ResetError> {
    if let Some(cause) = &report.unsettled {
        let outcome = if report.outcome.is_ok() { "done" } else { "not done" };
        error!(
            request_id,
            outcome,
            %cause,
            "A reset is in the audit log with an unknown outcome, which was: {outcome}"
        );
    }
    report.outcome
}
