//! The current snapshot of the rules.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use arc_swap::ArcSwap;
use headgate::{Clock, LimitError, Timestamp};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    Defaults, RateLimitRule, RateLimitRuleRepository, RepositoryError, Revision, RuleDelta,
    RuleOverride, Snapshot,
};

/// Holds the current snapshot of the rules. Reading takes no lock; a change replaces the snapshot,
/// and the next one shares what did not change.
pub struct Catalog {
    current: ArcSwap<Snapshot>,
    defaults: ArcSwap<Defaults>,
    clock: Arc<dyn Clock>,
    freshness: RwLock<Freshness>,
    /// Serializes refreshes, so that an older load never replaces a newer one.
    refreshing: Arc<Mutex<()>>,
    read: Reads,
}

/// Defaults that are ready to be applied: the rules are compiled with them. No refresh runs until
/// this is applied or dropped.
#[must_use = "the defaults apply when they are committed"]
pub struct PreparedDefaults {
    catalog: Arc<Catalog>,
    defaults: Arc<Defaults>,
    snapshot: Arc<Snapshot>,
    _turn: OwnedMutexGuard<()>,
}

/// Number of rules read from the repository so far.
#[derive(Debug, Default)]
pub struct Reads {
    /// Rules read as changes.
    pub changed: AtomicU64,
    /// Rules read by full loads.
    pub all: AtomicU64,
}

/// Time and error of the catalog's refreshes from the repository.
#[derive(Clone, Debug)]
pub struct Freshness {
    /// Time of the last successful refresh; `None` before the first.
    pub confirmed_at: Option<Timestamp>,
    /// Error of the refreshes since then.
    pub error: Option<RepositoryError>,
}

/// The result of a refresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing had changed.
    Unchanged,
    /// Number of changed or deleted rules that were applied.
    Changes(usize),
    /// Number of rules of a full load: the changes were not available.
    All(usize),
}

/// Maximum number of rules that are compiled in place. More are compiled on a blocking thread, so
/// that they do not delay other tasks.
const MAX_INLINE: usize = 256;

impl Catalog {
    /// Creates a catalog with the default rule only.
    pub fn new(defaults: Defaults, clock: Arc<dyn Clock>) -> Result<Self, LimitError> {
        let empty = Snapshot::compile(Revision::default(), Vec::new(), &defaults, None)?;
        Ok(Self {
            current: ArcSwap::from_pointee(empty),
            defaults: ArcSwap::from_pointee(defaults),
            clock,
            freshness: RwLock::new(Freshness { confirmed_at: None, error: None }),
            refreshing: Arc::default(),
            read: Reads::default(),
        })
    }

    /// Returns the current rules.
    pub fn load(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Returns the limit for subjects without a rule.
    pub fn defaults(&self) -> Arc<Defaults> {
        self.defaults.load_full()
    }

    /// Compiles the rules with other defaults, on a blocking thread. Nothing changes until they are
    /// committed.
    pub async fn prepare_defaults(
        self: &Arc<Self>,
        defaults: Defaults,
    ) -> Result<PreparedDefaults, RepositoryError> {
        let turn = Arc::clone(&self.refreshing).lock_owned().await;
        let (current, defaults) = (self.load(), Arc::new(defaults));
        let new = Arc::clone(&defaults);
        let compile = move || current.with_defaults(&new);
        let compiled =
            tokio::task::spawn_blocking(compile).await.map_err(RepositoryError::unavailable)?;
        let snapshot = compiled.map_err(|error| RepositoryError::Corrupt(error.to_string()))?;
        let (catalog, snapshot) = (Arc::clone(self), Arc::new(snapshot));
        Ok(PreparedDefaults { catalog, defaults, snapshot, _turn: turn })
    }

    /// Returns the server's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the time and error of the latest refreshes.
    pub fn freshness(&self) -> Freshness {
        self.freshness.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of rules read so far.
    pub const fn reads(&self) -> &Reads {
        &self.read
    }

    /// Microseconds since the last successful refresh.
    pub fn age(&self) -> Option<u64> {
        Some(self.clock.now().since(self.freshness().confirmed_at?))
    }

    /// Loads the rules from `repository` if they have changed; keeps the current ones on failure.
    /// Loads only the changes if the repository can list them.
    pub async fn refresh(
        &self,
        repository: &dyn RateLimitRuleRepository,
    ) -> Result<Refreshed, RepositoryError> {
        let _turn = self.refreshing.lock().await;
        let started_at = self.clock.now();
        let outcome = self.load_from(repository).await;
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(Refreshed::Changes(rules)) => self.read.changed.fetch_add(*rules as u64, Relaxed),
            Ok(Refreshed::All(rules)) => self.read.all.fetch_add(*rules as u64, Relaxed),
            Ok(Refreshed::Unchanged) | Err(_) => 0,
        };
        match &outcome {
            Ok(_) => *freshness = Freshness { confirmed_at: Some(started_at), error: None },
            Err(error) => freshness.error = Some(error.clone()),
        }
        outcome
    }

    /// Records a failure of the connection to the repository.
    pub fn lost(&self, error: &RepositoryError) {
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        freshness.error = Some(error.clone());
    }

    async fn load_from(
        &self,
        repository: &dyn RateLimitRuleRepository,
    ) -> Result<Refreshed, RepositoryError> {
        let current = self.load();
        if self.freshness().confirmed_at.is_some()
            && let Some(delta) = repository.changes(current.revision()).await?
        {
            if delta.revision == current.revision() {
                return Ok(Refreshed::Unchanged);
            }
            let read = delta.changed.len() + delta.deleted.len();
            let compiled = read + delta.overrides.len() + delta.deleted_overrides.len();
            self.install(current, Loaded::Delta(delta), compiled).await?;
            return Ok(Refreshed::Changes(read));
        }
        let (revision, rules) = repository.load().await?;
        let overrides = repository.load_overrides().await?;
        let read = rules.len();
        let compiled = read + overrides.len();
        self.install(current, Loaded::All(revision, rules, overrides), compiled).await?;
        Ok(Refreshed::All(read))
    }

    /// Replaces all rules and overrides, for programs whose rules do not come from a repository. The
    /// current ones stay if one is invalid.
    pub fn replace_rules(
        &self,
        rules: Vec<RateLimitRule>,
        overrides: Vec<RuleOverride>,
    ) -> Result<(), LimitError> {
        let current = self.load();
        let revision = Revision(current.revision().0 + 1);
        let next = Snapshot::compile(revision, rules, &self.defaults(), Some(&current))?;
        self.current.store(Arc::new(next.with_overrides(overrides)));
        Ok(())
    }

    /// Replaces the rules.
    #[cfg(test)]
    pub(crate) fn replace(&self, snapshot: Snapshot) {
        self.current.store(Arc::new(snapshot));
    }

    /// Replaces the snapshot, if all loaded rules are valid.
    async fn install(
        &self,
        current: Arc<Snapshot>,
        loaded: Loaded,
        compiled: usize,
    ) -> Result<(), RepositoryError> {
        let defaults = self.defaults();
        let next = if compiled <= MAX_INLINE {
            loaded.compile(&current, &defaults)?
        } else {
            let compile = move || loaded.compile(&current, &defaults);
            tokio::task::spawn_blocking(compile).await.map_err(RepositoryError::unavailable)??
        };
        self.current.store(Arc::new(next));
        Ok(())
    }
}

// === impl PreparedDefaults ===

impl PreparedDefaults {
    /// Applies the defaults.
    pub fn commit(self) {
        self.catalog.defaults.store(self.defaults);
        self.catalog.current.store(self.snapshot);
    }
}

/// The result of reading the repository.
enum Loaded {
    Delta(RuleDelta),
    All(Revision, Vec<RateLimitRule>, Vec<RuleOverride>),
}

impl Loaded {
    fn compile(self, current: &Snapshot, defaults: &Defaults) -> Result<Snapshot, RepositoryError> {
        let next = match self {
            Self::Delta(delta) => current.after(delta, defaults),
            Self::All(revision, rules, overrides) => {
                Snapshot::compile(revision, rules, defaults, Some(current))
                    .map(|snapshot| snapshot.with_overrides(overrides))
            }
        };
        next.map_err(|error| RepositoryError::Corrupt(error.to_string()))
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").field("revision", &self.load().revision()).finish_non_exhaustive()
    }
}
