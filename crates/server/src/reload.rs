//! Reloads the configuration while the server runs.
//!
//! A reload reads the same layers as the start did and validates the whole. Then every owner of
//! live state prepares its part, which may fail and changes nothing, and only if all have
//! succeeded, the parts are committed, which cannot fail. [`config::effect`](crate::config) says
//! which keys are live; the others wait for a restart.

mod files;
mod metrics;
mod watch;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;
use async_trait::async_trait;
use headgate::Clock;
use headgate_config::{Change, ConfigError, Printed};
use headgate_ratelimit::{AuditEntry, AuditLog, Author, RepositoryError};
use serde_json::json;
use thiserror::Error;
use tokio::{sync::Mutex, task};
use tracing::{info, warn};

use crate::config::{Config, Effect};

use self::files::Contents;
pub(crate) use self::metrics::ReloadMetrics;

/// An owner of state that follows the configuration.
#[async_trait]
pub(crate) trait Live: Send + Sync {
    /// Returns the keys and sections that this state depends on.
    fn keys(&self) -> &[&'static str];

    /// Returns true if files that the configuration names are read again with every reload.
    fn reads_files(&self) -> bool {
        false
    }

    /// Returns the files that this state was read from: it is prepared again if one of them has
    /// changed, even if no key has.
    fn files(&self, _config: &Config) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Prepares what `new` says. Nothing changes until the commit; dropping it changes nothing.
    /// Files are read on blocking threads: a disk that hangs must not stop a worker.
    async fn prepare(&self, new: &Config) -> Result<Commit, ConfigError>;
}

/// Applies a prepared part. It cannot fail.
pub(crate) type Commit = Box<dyn FnOnce() + Send>;

/// Reads the configuration again, from the layers of the start.
pub type Load = dyn Fn() -> Result<Config, ConfigError> + Send + Sync;

/// Reloads the configuration.
pub struct Reloader {
    load: Arc<Load>,
    parts: Vec<Arc<dyn Live>>,
    audit: Arc<dyn AuditLog>,
    clock: Arc<dyn Clock>,
    metrics: ReloadMetrics,
    /// The lock is held during a reload: one at a time.
    running: Mutex<Running>,
    status: ArcSwap<Status>,
}

/// The configuration in force, and what was last read.
struct Running {
    config: Config,
    /// Contents of the files of each part.
    files: Vec<Contents>,
    last_read: Found,
}

/// What a read of the files found.
#[derive(Clone, PartialEq)]
enum Found {
    Valid(Printed),
    Invalid(String),
}

/// The cause of a reload.
#[derive(Clone, Debug)]
pub enum Trigger {
    /// A request. It is refused if the audit log cannot record it.
    Request(Author),
    /// SIGHUP.
    Signal,
    /// A changed file, with `server.watch_config`.
    File,
}

/// The result of a reload.
#[derive(Clone, Debug, Default)]
pub struct Reloaded {
    /// Changes that are in force now.
    pub applied: Vec<Change>,
    /// Changes that need a restart.
    pub restart_required: Vec<Change>,
}

/// A reload that changed nothing.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// The configuration is invalid, or names files that are.
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    /// The configuration is valid, but its live keys are not together with the values that the
    /// other keys have until a restart.
    #[error("restart the server to apply {}: until then, {cause}", keys.join(", "))]
    NeedsRestart {
        /// The keys that need a restart.
        keys: Vec<String>,
        /// The contradiction.
        cause: ConfigError,
    },
    /// The audit log cannot be written.
    #[error("cannot record the reload in the audit log: {0}")]
    Unrecorded(RepositoryError),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
}

/// What is known about the configuration since the last reload.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    /// Fingerprint of the configuration in force.
    pub(crate) version: String,
    /// Keys whose values in the file need a restart.
    pub(crate) restart_required: Vec<String>,
    /// True if the last reload was refused.
    pub(crate) refused: bool,
}

// === impl Status ===

impl Status {
    /// Describes what the last reload left open, without values or places.
    pub(crate) fn warning(&self) -> Option<String> {
        if self.refused {
            return Some("the last reload was refused; the log says why".to_owned());
        }
        let keys = &self.restart_required;
        (!keys.is_empty()).then(|| format!("restart required by {}", keys.join(", ")))
    }
}

/// Wraps the closure that applies a prepared part.
pub(crate) fn commit(apply: impl FnOnce() + Send + 'static) -> Commit {
    Box::new(apply)
}

// === impl Reloader ===

impl Reloader {
    pub(crate) fn new(
        config: Config,
        load: Arc<Load>,
        parts: Vec<Arc<dyn Live>>,
        audit: Arc<dyn AuditLog>,
        clock: Arc<dyn Clock>,
        metrics: ReloadMetrics,
    ) -> Self {
        let version = config.version();
        metrics.started(&version, clock.now());
        let status = ArcSwap::from_pointee(Status { version, ..Status::default() });
        let last_read = Found::Valid(config.printed());
        let files = parts.iter().map(|part| Contents::of(&part.files(&config))).collect();
        let running = Mutex::new(Running { config, files, last_read });
        Self { load, parts, audit, clock, metrics, running, status }
    }

    /// Returns the state of the configuration.
    pub(crate) fn status(&self) -> Arc<Status> {
        self.status.load_full()
    }

    /// Returns the keys and sections that some owner depends on.
    #[cfg(test)]
    pub(crate) fn owned_keys(&self) -> Vec<&'static str> {
        self.parts.iter().flat_map(|part| part.keys()).copied().collect()
    }

    /// Reads the configuration again, and applies its live keys, all or none. Reloads take turns.
    ///
    /// # Errors
    ///
    /// Nothing has changed then.
    pub async fn reload(&self, by: Trigger) -> Result<Reloaded, ReloadError> {
        let mut running = self.running.lock().await;
        let outcome = self.apply(&mut running, by).await;
        match &outcome {
            Ok(reloaded) => self.succeeded(reloaded, &running.config),
            Err(error) => self.refused(error),
        }
        outcome
    }

    /// Returns what a reload would do, and changes nothing.
    ///
    /// # Errors
    ///
    /// A reload would fail with the same.
    pub async fn dry_run(&self) -> Result<Reloaded, ReloadError> {
        let running = self.running.lock().await;
        let new = self.read().await?;
        let (reloaded, mixed) = plan(&running.config, new).await?;
        self.prepare(&mixed, &reloaded.applied, &running.files).await?;
        Ok(reloaded)
    }

    async fn apply(&self, running: &mut Running, by: Trigger) -> Result<Reloaded, ReloadError> {
        let read = self.read().await;
        running.last_read = Found::by(&read);
        let new = read?;
        let (reloaded, mixed) = plan(&running.config, new).await?;
        let (commits, files) = self.prepare(&mixed, &reloaded.applied, &running.files).await?;
        let changed = files.iter().zip(&running.files).flat_map(|(new, old)| new.changed(old));
        self.record(&reloaded.applied, &changed.collect(), by).await?;
        for commit in commits {
            commit();
        }
        running.config = mixed;
        running.files = files;
        Ok(reloaded)
    }

    /// Reads files on a blocking thread.
    async fn read(&self) -> Result<Config, ReloadError> {
        let load = Arc::clone(&self.load);
        // The task is cancelled only if the runtime shuts down.
        let loaded = task::spawn_blocking(move || load()).await;
        Ok(loaded.map_err(|_| ReloadError::Stopping)??)
    }

    /// Prepares the parts that have changed. Returns what applies them, and the contents of the
    /// files of all parts.
    async fn prepare(
        &self,
        new: &Config,
        changes: &[Change],
        files: &[Contents],
    ) -> Result<(Vec<Commit>, Vec<Contents>), ReloadError> {
        // Read before they are used: a later change is found by the next reload.
        let new_files = self.contents(new).await?;
        let mut commits = Vec::new();
        for ((part, contents), before) in self.parts.iter().zip(&new_files).zip(files) {
            let is_changed = changes.iter().any(|change| is_owned(part.keys(), &change.key));
            if is_changed || contents != before || part.reads_files() {
                commits.push(part.prepare(new).await?);
            }
        }
        Ok((commits, new_files))
    }

    /// Reads the files of each part on a blocking thread.
    async fn contents(&self, config: &Config) -> Result<Vec<Contents>, ReloadError> {
        let files: Vec<_> = self.parts.iter().map(|part| part.files(config)).collect();
        let read = move || files.iter().map(|files| Contents::of(files)).collect();
        task::spawn_blocking(read).await.map_err(|_| ReloadError::Stopping)
    }

    /// Records the changes of keys and of the contents of files before they are made. A signal is
    /// not refused without the database: it comes from the machine itself, and may be needed to
    /// repair that.
    async fn record(
        &self,
        changes: &[Change],
        files: &BTreeSet<&Path>,
        by: Trigger,
    ) -> Result<(), ReloadError> {
        if changes.is_empty() && files.is_empty() {
            return Ok(());
        }
        let (author, is_required) = match by {
            Trigger::Request(author) => (author, true),
            Trigger::Signal => (self.author("SIGHUP"), false),
            Trigger::File => (self.author("watch_config"), false),
        };
        match self.audit.record(&entry(changes, files, author)).await {
            Ok(_) => Ok(()),
            Err(error) if is_required => Err(ReloadError::Unrecorded(error)),
            Err(error) => {
                warn!(%error, "failed to record a reload in the audit log");
                Ok(())
            }
        }
    }

    fn author(&self, actor: &str) -> Author {
        Author { actor: actor.to_owned(), request_id: String::new(), at: self.clock.now() }
    }

    fn succeeded(&self, reloaded: &Reloaded, running: &Config) {
        for Change { key, old, new } in &reloaded.applied {
            info!(key, "applied {key}: {} -> {}", json!(old), json!(new));
        }
        for Change { key, .. } in &reloaded.restart_required {
            warn!(key, "{key} has changed; restart the server to apply it");
        }
        let (applied, waiting) = (reloaded.applied.len(), reloaded.restart_required.len());
        info!(applied, restart_required = waiting, "reloaded the configuration");
        let keys = reloaded.restart_required.iter().map(|change| change.key.clone());
        let (version, restart_required) = (running.version(), keys.collect::<Vec<_>>());
        self.metrics.succeeded(&version, applied, waiting, self.clock.now());
        self.status.store(Arc::new(Status { version, restart_required, refused: false }));
    }

    fn refused(&self, error: &ReloadError) {
        warn!(%error, "refused to reload; keeping the running configuration");
        self.metrics.refused();
        let status = Status { refused: true, ..Status::clone(&self.status.load()) };
        self.status.store(Arc::new(status));
    }
}

// === impl Found ===

impl Found {
    fn by(read: &Result<Config, ReloadError>) -> Self {
        match read {
            Ok(config) => Self::Valid(config.printed()),
            Err(error) => Self::Invalid(error.to_string()),
        }
    }
}

/// Returns what changes, and the configuration in force afterwards: live keys as in `new`, all
/// others as they are.
async fn plan(running: &Config, new: Config) -> Result<(Reloaded, Config), ReloadError> {
    let changes = running.printed().changes(&new.printed());
    let is_live = |change: &Change| Effect::of(&change.key) == Effect::Live;
    let (applied, restart_required): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_live);
    let mixed = running.with_live_keys_of(&new);
    // It reads files.
    let validate = move || (mixed.validate(), mixed);
    let validated = task::spawn_blocking(validate).await;
    let (valid, mixed) = validated.map_err(|_| ReloadError::Stopping)?;
    valid.map_err(|cause| ReloadError::NeedsRestart {
        keys: restart_required.iter().map(|change| change.key.clone()).collect(),
        cause,
    })?;
    Ok((Reloaded { applied, restart_required }, mixed))
}

/// Returns true if one of `owned` is `key`, or a section of it.
pub(crate) fn is_owned(owned: &[&str], key: &str) -> bool {
    owned.iter().any(|owned| {
        key.strip_prefix(owned).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// The entry in the audit log: the changed keys, with secrets masked, and the names of files with
/// changed contents.
fn entry(changes: &[Change], files: &BTreeSet<&Path>, author: Author) -> AuditEntry {
    let before: BTreeMap<_, _> = changes.iter().map(|change| (&*change.key, &change.old)).collect();
    let after = changes.iter().map(|change| (&*change.key, json!(change.new)));
    let mut after: BTreeMap<_, _> = after.collect();
    if !files.is_empty() {
        after.insert("changed_files", json!(files));
    }
    AuditEntry {
        id: 0,
        author,
        action: "config.reload".to_owned(),
        target: "config".to_owned(),
        before: Some(json!(before).to_string()),
        after: Some(json!(after).to_string()),
        reason: None,
    }
}

#[cfg(test)]
mod tests;
