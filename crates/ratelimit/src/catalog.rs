//! The snapshot in force.

use std::sync::{Arc, PoisonError, RwLock};

use arc_swap::ArcSwap;
use headgate::{Clock, LimitError, Timestamp};
use tokio::sync::Mutex;

use crate::{Defaults, RateLimitRuleRepository, RepositoryError, Revision, Snapshot};

/// Holds the rules in force. Reading them takes no lock; they are replaced as a whole.
pub struct Catalog {
    current: ArcSwap<Snapshot>,
    defaults: Defaults,
    clock: Arc<dyn Clock>,
    freshness: RwLock<Freshness>,
    /// Whoever loads later installs later: refreshes take turns.
    refreshing: Mutex<()>,
}

/// How well the catalog knows what the repository holds.
#[derive(Clone, Debug)]
pub struct Freshness {
    /// When it last knew that nothing had changed; `None` until it has read the rules once.
    pub confirmed_at: Option<Timestamp>,
    /// Why it has not known since.
    pub error: Option<RepositoryError>,
}

impl Catalog {
    /// A catalog in which only the default rule applies.
    pub fn new(defaults: Defaults, clock: Arc<dyn Clock>) -> Result<Self, LimitError> {
        let empty = Snapshot::compile(Revision::default(), Vec::new(), &defaults, None)?;
        Ok(Self {
            current: ArcSwap::from_pointee(empty),
            defaults,
            clock,
            freshness: RwLock::new(Freshness { confirmed_at: None, error: None }),
            refreshing: Mutex::default(),
        })
    }

    /// The rules in force.
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// What applies where no rule was written.
    pub const fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The server's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How well the rules in force are known to be those that are kept.
    pub fn freshness(&self) -> Freshness {
        self.freshness.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Microseconds since the rules were last known to be those that are kept.
    pub fn age(&self) -> Option<u64> {
        Some(self.clock.now().since(self.freshness().confirmed_at?))
    }

    /// Puts the rules that `repository` keeps in force, if they have changed; on failure those
    /// in force stay. Says whether anything changed.
    pub async fn refresh(
        &self,
        repository: &dyn RateLimitRuleRepository,
    ) -> Result<bool, RepositoryError> {
        let _turn = self.refreshing.lock().await;
        let asked_at = self.clock.now();
        let outcome = self.load_from(repository).await;
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(_) => *freshness = Freshness { confirmed_at: Some(asked_at), error: None },
            Err(error) => freshness.error = Some(error.clone()),
        }
        outcome
    }

    /// Notes that the repository could not even be asked.
    pub fn lost(&self, error: &RepositoryError) {
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        freshness.error = Some(error.clone());
    }

    async fn load_from(
        &self,
        repository: &dyn RateLimitRuleRepository,
    ) -> Result<bool, RepositoryError> {
        let current = self.load();
        let known = self.freshness().confirmed_at.is_some();
        if known && repository.revision().await? == current.revision() {
            return Ok(false);
        }
        let (revision, rules) = repository.load().await?;
        let next = Snapshot::compile(revision, rules, &self.defaults, Some(&current))
            .map_err(|error| RepositoryError::Corrupt(error.to_string()))?;
        self.current.store(Arc::new(next));
        Ok(true)
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("revision", &self.load().revision()).finish_non_exhaustive()
    }
}
