//! What every surface is made of: REST and gRPC are two voices of these.

use std::sync::Arc;

use headgate::Clock;
use headgate_ratelimit::{
    AuditLog, Author, Catalog,
    usecase::{
        CheckError, CheckRateLimit, Explain, GetUsage, ManageRules, Question, ResetLimit, Verdict,
    },
};
use tokio::time::Instant;

use crate::{
    auth::{Actor, Auth},
    metrics::Metrics,
    stores::Probe,
    telemetry::{Span, Tracer},
};

/// What handlers need.
pub(crate) struct Services {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) check: CheckRateLimit,
    pub(crate) usage: GetUsage,
    pub(crate) explain: Explain,
    pub(crate) reset: ResetLimit,
    pub(crate) rules: ManageRules,
    pub(crate) audit: Arc<dyn AuditLog>,
    pub(crate) auth: Auth,
    pub(crate) probe: Probe,
    pub(crate) metrics: Metrics,
    /// Whether requests are followed, and how.
    pub(crate) tracer: Option<Tracer>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Services {
    /// Decides, and counts what was decided; a dry run only says what would be.
    pub(crate) async fn decide(
        &self,
        question: &Question<'_>,
        dry_run: bool,
    ) -> Result<Verdict, CheckError> {
        let verdict = if dry_run {
            self.check.peek(question).await?
        } else {
            let started = Instant::now();
            let verdict = self.check.check(question).await?;
            self.metrics.checks.decided(&verdict.decision, started.elapsed());
            verdict
        };
        if self.tracer.is_some() {
            Span::decided(&[&verdict.decision]);
        }
        Ok(verdict)
    }

    /// Who changes something, in the words of the audit log.
    pub(crate) fn author(&self, actor: Actor, request_id: &str) -> Author {
        Author {
            actor: actor.name.into_owned(),
            request_id: request_id.to_owned(),
            at: self.clock.now(),
        }
    }
}
