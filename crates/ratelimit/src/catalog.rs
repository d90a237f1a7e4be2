//! The snapshot in force.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use arc_swap::ArcSwap;
use headgate::{Clock, LimitError, Timestamp};
use tokio::sync::Mutex;

use crate::{
    Defaults, RateLimitRule, RateLimitRuleRepository, RepositoryError, Revision, RuleDelta,
    Snapshot,
};

/// Holds the rules in force. Reading them takes no lock; a change replaces the snapshot, which
/// shares with the next one what does not change.
pub struct Catalog {
    current: ArcSwap<Snapshot>,
    defaults: Defaults,
    clock: Arc<dyn Clock>,
    freshness: RwLock<Freshness>,
    /// Whoever loads later installs later: refreshes take turns.
    refreshing: Mutex<()>,
    read: Reads,
}

/// How many rules were read so far, to keep those in force current.
#[derive(Debug, Default)]
pub struct Reads {
    /// Rules that had changed.
    pub changed: AtomicU64,
    /// Rules that were read because all were.
    pub all: AtomicU64,
}

/// How well the catalog knows what the repository holds.
#[derive(Clone, Debug)]
pub struct Freshness {
    /// When it last knew that nothing had changed; `None` until it has read the rules once.
    pub confirmed_at: Option<Timestamp>,
    /// Why it has not known since.
    pub error: Option<RepositoryError>,
}

/// What a refresh did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refreshed {
    /// Nothing had changed.
    Unchanged,
    /// So many rules that had changed, or were deleted, were read and put in force.
    Changes(usize),
    /// So many rules were read, which are all: the changes were not known.
    All(usize),
}

/// How many rules are put in force on the spot. More of them are made ready on a thread of their
/// own, so that nothing else waits for that.
const AT_ONCE: usize = 256;

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
            read: Reads::default(),
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

    /// How many rules were read so far.
    pub const fn reads(&self) -> &Reads {
        &self.read
    }

    /// Microseconds since the rules were last known to be those that are kept.
    pub fn age(&self) -> Option<u64> {
        Some(self.clock.now().since(self.freshness().confirmed_at?))
    }

    /// Puts the rules that `repository` keeps in force, if they have changed; on failure those
    /// in force stay. What changed is read, and not the rest, where the repository knows it.
    pub async fn refresh(
        &self,
        repository: &dyn RateLimitRuleRepository,
    ) -> Result<Refreshed, RepositoryError> {
        let _turn = self.refreshing.lock().await;
        let asked_at = self.clock.now();
        let outcome = self.load_from(repository).await;
        let mut freshness = self.freshness.write().unwrap_or_else(PoisonError::into_inner);
        match &outcome {
            Ok(Refreshed::Changes(rules)) => self.read.changed.fetch_add(*rules as u64, Relaxed),
            Ok(Refreshed::All(rules)) => self.read.all.fetch_add(*rules as u64, Relaxed),
            Ok(Refreshed::Unchanged) | Err(_) => 0,
        };
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
    ) -> Result<Refreshed, RepositoryError> {
        let current = self.load();
        if self.freshness().confirmed_at.is_some()
            && let Some(delta) = repository.changes(current.revision()).await?
        {
            if delta.revision == current.revision() {
                return Ok(Refreshed::Unchanged);
            }
            let read = delta.changed.len() + delta.deleted.len();
            self.install(current, Loaded::Delta(delta), read).await?;
            return Ok(Refreshed::Changes(read));
        }
        let (revision, rules) = repository.load().await?;
        let read = rules.len();
        self.install(current, Loaded::All(revision, rules), read).await?;
        Ok(Refreshed::All(read))
    }

    /// Puts what was read in force, if every rule of it makes sense.
    async fn install(
        &self,
        current: Arc<Snapshot>,
        loaded: Loaded,
        read: usize,
    ) -> Result<(), RepositoryError> {
        let next = if read <= AT_ONCE {
            loaded.compile(&current, &self.defaults)?
        } else {
            let defaults = self.defaults.clone();
            let compile = move || loaded.compile(&current, &defaults);
            tokio::task::spawn_blocking(compile).await.map_err(RepositoryError::unavailable)??
        };
        self.current.store(Arc::new(next));
        Ok(())
    }
}

/// What a repository gave.
enum Loaded {
    Delta(RuleDelta),
    All(Revision, Vec<RateLimitRule>),
}

impl Loaded {
    fn compile(self, current: &Snapshot, defaults: &Defaults) -> Result<Snapshot, RepositoryError> {
        let next = match self {
            Self::Delta(delta) => current.after(delta, defaults),
            Self::All(revision, rules) => {
                Snapshot::compile(revision, rules, defaults, Some(current))
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
