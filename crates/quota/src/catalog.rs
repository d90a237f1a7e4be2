//! The policies in force.

mod active;
mod strangers;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use headgate::{Clock, Timestamp};
use headgate_admin::Revision;
use tokio::sync::Mutex;

pub use self::active::ActivePolicy;
use self::strangers::Strangers;
use crate::{Changes, QuotaId, QuotaPolicy, QuotaPolicyRepository, RepositoryError};

/// Holds the policies in force. There may be one for every user: what did not change is not read again.
pub struct PolicyCatalog {
    repository: Arc<dyn QuotaPolicyRepository>,
    clock: Arc<dyn Clock>,
    current: RwLock<Policies>,
    freshness: RwLock<Freshness>,
    strangers: Strangers,
    /// Whoever loads later installs later: refreshes take turns.
    refreshing: Mutex<()>,
}

/// All policies, and which set they are.
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
            current: RwLock::default(),
            freshness: RwLock::default(),
            strangers: Strangers::default(),
            refreshing: Mutex::default(),
        }
    }

    /// Which policies are in force.
    pub fn revision(&self) -> Revision {
        self.policies().revision
    }

    /// How many policies are in force.
    pub fn len(&self) -> usize {
        self.policies().by_id.len()
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
        self.policies().by_id.get(id).cloned()
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
        if self.freshness().confirmed_at.is_some() {
            let known = self.revision();
            if self.repository.revision().await? == known {
                return Ok(false);
            }
            if self.catch_up(self.repository.changes(known).await?)? {
                return Ok(true);
            }
        }
        let (revision, policies) = self.repository.load().await?;
        let by_id = self.activate(policies)?.collect();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) =
            Policies { revision, by_id };
        Ok(true)
    }

    /// Puts what has changed in force; says whether that is all, or more is different.
    fn catch_up(&self, changes: Changes) -> Result<bool, RepositoryError> {
        let newer = self.activate(changes.changed)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        for id in &changes.deleted {
            current.by_id.remove(id);
        }
        current.by_id.extend(newer);
        let complete = current.by_id.len() as u64 == changes.total;
        if complete {
            current.revision = changes.revision;
        }
        Ok(complete)
    }

    /// Makes policies ready; those that say the same as before are.
    fn activate(
        &self,
        policies: Vec<QuotaPolicy>,
    ) -> Result<impl Iterator<Item = (QuotaId, Arc<ActivePolicy>)>, RepositoryError> {
        let mut active = Vec::with_capacity(policies.len());
        for policy in policies {
            let id = policy.id.clone();
            active.push(match self.load(&id).filter(|old| *old.policy() == policy) {
                Some(old) => (id, old),
                None => (id, Arc::new(ActivePolicy::new(policy)?)),
            });
        }
        Ok(active.into_iter())
    }

    fn policies(&self) -> RwLockReadGuard<'_, Policies> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
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
