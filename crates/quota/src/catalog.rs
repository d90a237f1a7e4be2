//! The policies in force.

mod active;
mod strangers;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use arc_swap::ArcSwap;
use headgate::{Clock, Timestamp};
use headgate_admin::Revision;
use tokio::sync::Mutex;

pub use self::active::ActivePolicy;
use self::strangers::Strangers;
use crate::{QuotaId, QuotaPolicyRepository, RepositoryError};

/// Holds the policies in force. Reading them takes no lock; they are replaced as a whole.
pub struct PolicyCatalog {
    repository: Arc<dyn QuotaPolicyRepository>,
    clock: Arc<dyn Clock>,
    current: ArcSwap<Policies>,
    freshness: RwLock<Freshness>,
    strangers: Strangers,
    /// Whoever loads later installs later: refreshes take turns.
    refreshing: Mutex<()>,
}

/// All policies at one moment.
#[derive(Debug, Default)]
struct Policies {
    revision: Revision,
    by_id: HashMap<QuotaId, Arc<ActivePolicy>>,
}

/// How well the catalog knows what the repository holds.
#[derive(Clone, Debug, Default)]
pub struct Freshness {
    /// When it last knew that nothing had changed; `None` until it has read the policies once.
    pub confirmed_at: Option<Timestamp>,
    /// Why it has not known since.
    pub error: Option<RepositoryError>,
}

// === impl PolicyCatalog ===

impl PolicyCatalog {
    /// A catalog without policies, until it is refreshed from `repository`.
    pub fn new(repository: Arc<dyn QuotaPolicyRepository>, clock: Arc<dyn Clock>) -> Self {
        Self {
            repository,
            clock,
            current: ArcSwap::default(),
            freshness: RwLock::default(),
            strangers: Strangers::default(),
            refreshing: Mutex::default(),
        }
    }

    /// Which policies are in force.
    pub fn revision(&self) -> Revision {
        self.current.load().revision
    }

    /// How many policies are in force.
    pub fn len(&self) -> usize {
        self.current.load().by_id.len()
    }

    /// Whether no policy is in force.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How well the policies in force are known to be those that are kept.
    pub fn freshness(&self) -> Freshness {
        self.freshness.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The policy in force with this id.
    pub fn load(&self, id: &QuotaId) -> Option<Arc<ActivePolicy>> {
        self.current.load().by_id.get(id).cloned()
    }

    /// The policy with this id, also if it was made a moment ago by another process: one that is
    /// not in force is looked up, but not more often than once a second.
    pub async fn find(&self, id: &QuotaId) -> Result<Arc<ActivePolicy>, RepositoryError> {
        let stranger = || RepositoryError::NotFound(id.clone());
        if let Some(policy) = self.load(id) {
            return Ok(policy);
        }
        if self.strangers.knows(id, self.clock.now()) {
            return Err(stranger());
        }
        if self.repository.get(id).await?.is_none() {
            self.strangers.remember(id, self.clock.now());
            return Err(stranger());
        }
        self.refresh().await?;
        self.load(id).ok_or_else(stranger)
    }

    /// Puts the policies that the repository keeps in force, if they have changed; on failure
    /// those in force stay. Says whether anything changed.
    pub async fn refresh(&self) -> Result<bool, RepositoryError> {
        let _turn = self.refreshing.lock().await;
        let asked_at = self.clock.now();
        let outcome = self.read().await;
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(_) => *freshness = Freshness { confirmed_at: Some(asked_at), error: None },
            Err(error) => freshness.error = Some(error.clone()),
        }
        outcome
    }

    async fn read(&self) -> Result<bool, RepositoryError> {
        let current = self.current.load_full();
        let known = self.freshness().confirmed_at.is_some();
        if known && self.repository.revision().await? == current.revision {
            return Ok(false);
        }
        let (revision, policies) = self.repository.load().await?;
        let mut by_id = HashMap::with_capacity(policies.len());
        for policy in policies {
            let same = current.by_id.get(&policy.id).filter(|old| *old.policy() == policy);
            let active = match same {
                Some(old) => Arc::clone(old),
                None => Arc::new(ActivePolicy::new(policy)?),
            };
            by_id.insert(active.policy().id.clone(), active);
        }
        self.current.store(Arc::new(Policies { revision, by_id }));
        Ok(true)
    }
}

impl std::fmt::Debug for PolicyCatalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PolicyCatalog")
            .field("revision", &self.revision())
            .field("policies", &self.len())
            .finish_non_exhaustive()
    }
}
