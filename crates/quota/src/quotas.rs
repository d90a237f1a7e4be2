//! What the use cases share.

use std::sync::Arc;

use headgate::{Clock, Timestamp};
use tokio::sync::Mutex;

use crate::{
    ActivePolicy, PolicyCatalog, QuotaCounter, QuotaId, QuotaLedger, QuotaPolicyRepository,
    RepositoryError, known::Known,
};

/// What the use cases share: policies, the ledger, the counters, and what was heard lately.
/// Clones share it too.
#[derive(Clone)]
pub struct Quotas {
    pub(crate) repository: Arc<dyn QuotaPolicyRepository>,
    pub(crate) ledger: Arc<dyn QuotaLedger>,
    pub(crate) counter: Arc<dyn QuotaCounter>,
    pub(crate) catalog: Arc<PolicyCatalog>,
    pub(crate) known: Arc<Known>,
    /// Whoever puts counters right holds it: others see the same, and need not do the same.
    pub(crate) repairing: Arc<Mutex<()>>,
}

impl Quotas {
    /// Quotas whose policies are in `repository`, whose usage is in `ledger`, and whose periods go
    /// by `clock`.
    pub fn new(
        repository: Arc<dyn QuotaPolicyRepository>,
        ledger: Arc<dyn QuotaLedger>,
        counter: Arc<dyn QuotaCounter>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let catalog = Arc::new(PolicyCatalog::new(Arc::clone(&repository), clock));
        Self {
            repository,
            ledger,
            counter,
            catalog,
            known: Arc::default(),
            repairing: Arc::default(),
        }
    }

    /// The policies in force, to be refreshed when they change.
    pub const fn catalog(&self) -> &Arc<PolicyCatalog> {
        &self.catalog
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        self.catalog.now()
    }

    pub(crate) async fn find(&self, id: &QuotaId) -> Result<Arc<ActivePolicy>, RepositoryError> {
        self.catalog.find(id).await
    }
}

impl std::fmt::Debug for Quotas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Quotas").field("catalog", &self.catalog).finish_non_exhaustive()
    }
}
