//! What every surface is made of: REST and gRPC are two voices of these.

use std::sync::Arc;

use headgate::Clock;
use headgate_ratelimit::{
    AuditLog, Author, Catalog,
    usecase::{CheckRateLimit, Explain, GetUsage, ManageRules, ResetLimit},
};

use crate::{
    auth::{Actor, Auth},
    metrics::Metrics,
    stores::Probe,
    telemetry::Tracer,
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
    /// Who changes something, in the words of the audit log.
    pub(crate) fn author(&self, actor: Actor, request_id: &str) -> Author {
        Author {
            actor: actor.name.into_owned(),
            request_id: request_id.to_owned(),
            at: self.clock.now(),
        }
    }
}
