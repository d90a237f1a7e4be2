//! The current policies.

mod active;
mod negative_cache;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use headgate::{Clock, Timestamp};
use headgate_admin::Revision;
use tokio::sync::Mutex;

pub use self::active::ActivePolicy;
use self::negative_cache::NegativeCache;
use crate::{Changes, QuotaId, QuotaPolicy, QuotaPolicyRepository, RepositoryError};

/// Holds the current policies. There may be one for every user, so that only changes are loaded
/// again.
pub struct PolicyCatalog {
    repository: Arc<dyn QuotaPolicyRepository>,
    clock: Arc<dyn Clock>,
    current: RwLock<Policies>,
    freshness: RwLock<Freshness>,
    unknown: NegativeCache,
    /// Serializes refreshes, so that an older load never replaces a newer one.
    refreshing: Mutex<()>,
}

/// All policies and their revision.
#[derive(Debug, Default)]
struct Policies {
    revision: Revision,
    by_id: HashMap<QuotaId, Arc<ActivePolicy>>,
    /// Errors of policies that cannot be used. Their last valid version stays in `by_id`.
    invalid: BTreeMap<QuotaId, RepositoryError>,
}

/// Time and error of the catalog's refreshes from the repository.
#[derive(Clone, Debug, Default)]
pub struct Freshness {
    /// Time of the last successful refresh; `None` before the first.
    pub confirmed_at: Option<Timestamp>,
    /// Error of the refreshes since then, or of policies that cannot be used.
    pub error: Option<RepositoryError>,
}

// === impl PolicyCatalog ===

impl PolicyCatalog {
    /// Creates an empty catalog, which a refresh fills from `repository`.
    pub fn new(repository: Arc<dyn QuotaPolicyRepository>, clock: Arc<dyn Clock>) -> Self {
        Self {
            repository,
            clock,
            current: RwLock::default(),
            freshness: RwLock::default(),
            unknown: NegativeCache::default(),
            refreshing: Mutex::default(),
        }
    }

    /// Returns the revision of the policies.
    pub fn revision(&self) -> Revision {
        self.policies().revision
    }

    /// Returns the number of policies.
    pub fn len(&self) -> usize {
        self.policies().by_id.len()
    }

    /// Returns `true` if there is no policy.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the time by which periods are chosen.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the time and error of the latest refreshes.
    pub fn freshness(&self) -> Freshness {
        self.freshness.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the policy with this id.
    pub fn load(&self, id: &QuotaId) -> Option<Arc<ActivePolicy>> {
        self.policies().by_id.get(id).cloned()
    }

    /// Returns the policy with this id. An unknown id is looked up in the repository, because
    /// another process may just have created the policy, but at most once a second.
    pub async fn find(&self, id: &QuotaId) -> Result<Arc<ActivePolicy>, RepositoryError> {
        let not_found = || RepositoryError::NotFound(id.clone());
        if let Some(policy) = self.load(id) {
            return Ok(policy);
        }
        if let Some(error) = self.policies().invalid.get(id) {
            return Err(error.clone());
        }
        if self.unknown.contains(id, self.clock.now()) {
            return Err(not_found());
        }
        if self.repository.get(id).await?.is_none() {
            self.unknown.insert(id, self.clock.now());
            return Err(not_found());
        }
        self.refresh().await?;
        let policies = self.policies();
        match (policies.by_id.get(id), policies.invalid.get(id)) {
            (Some(policy), _) => Ok(Arc::clone(policy)),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(not_found()),
        }
    }

    /// Loads the policies from the repository if they have changed; keeps the current ones on
    /// failure. Returns `true` if anything changed.
    ///
    /// A policy that cannot be used is reported in [`freshness`](Self::freshness), and affects no
    /// other: its last valid version stays in force, if there is one.
    pub async fn refresh(&self) -> Result<bool, RepositoryError> {
        let _turn = self.refreshing.lock().await;
        let started_at = self.clock.now();
        let outcome = self.read().await;
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(_) => {
                let error = self.policies().invalid.values().next().cloned();
                *freshness = Freshness { confirmed_at: Some(started_at), error };
            }
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
            if self.apply(self.repository.changes(known).await?) {
                return Ok(true);
            }
        }
        let (revision, policies) = self.repository.load().await?;
        let mut loaded = Policies { revision, ..Policies::default() };
        for (id, active) in self.activate(policies) {
            // An invalid policy is replaced by its last valid version.
            if let (Err(_), Some(valid)) = (&active, self.load(&id)) {
                loaded.by_id.insert(id.clone(), valid);
            }
            loaded.put(id, active);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(true)
    }

    /// Applies changes; returns `false` if more has changed and all policies must be loaded.
    fn apply(&self, changes: Changes) -> bool {
        let newer = self.activate(changes.changed);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        for id in &changes.deleted {
            current.by_id.remove(id);
            current.invalid.remove(id);
        }
        for (id, active) in newer {
            current.put(id, active);
        }
        let complete = current.total() as u64 == changes.total;
        if complete {
            current.revision = changes.revision;
        }
        complete
    }

    /// Prepares policies for use; unchanged ones are reused.
    fn activate(
        &self,
        policies: Vec<QuotaPolicy>,
    ) -> Vec<(QuotaId, Result<Arc<ActivePolicy>, RepositoryError>)> {
        let prepare = |policy: QuotaPolicy| {
            let id = policy.id.clone();
            match self.load(&id).filter(|old| *old.policy() == policy) {
                Some(old) => (id, Ok(old)),
                None => (id, ActivePolicy::new(policy).map(Arc::new)),
            }
        };
        policies.into_iter().map(prepare).collect()
    }

    fn policies(&self) -> RwLockReadGuard<'_, Policies> {
        self.current.read().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Policies ===

impl Policies {
    /// Puts the result of preparing a policy; an error keeps the last valid version.
    fn put(&mut self, id: QuotaId, active: Result<Arc<ActivePolicy>, RepositoryError>) {
        match active {
            Ok(active) => {
                self.invalid.remove(&id);
                self.by_id.insert(id, active);
            }
            Err(error) => {
                self.invalid.insert(id, error);
            }
        }
    }

    /// Returns the number of stored policies.
    fn total(&self) -> usize {
        let is_unused = |id: &&QuotaId| !self.by_id.contains_key(*id);
        self.by_id.len() + self.invalid.keys().filter(is_unused).count()
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
