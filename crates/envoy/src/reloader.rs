use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use headgate_config::{ConfigError, FileReads, Problem, ReadFailure};
use tokio::{sync::Notify, time};

use crate::{
    EnvoyCatalog, EnvoyConfig, EnvoyMetrics,
    compiled::{CompiledFiles, Domains, compile_all},
    source::{FileSource, SourceFile},
};

/// Reloads the domain files periodically.
pub(crate) struct FileReloader(DomainFiles);

/// The domain files in force. Clones share them.
#[derive(Clone)]
pub(crate) struct DomainFiles(Arc<Shared>);

struct Shared {
    catalog: Arc<EnvoyCatalog>,
    metrics: EnvoyMetrics,
    state: Mutex<State>,
    /// Ends the pause before the next read: the interval has changed.
    replaced: Notify,
}

#[derive(Clone)]
struct State {
    source: FileSource,
    interval: Duration,
    /// The files as last read, whether or not they are in force.
    files: Arc<Vec<SourceFile>>,
    /// The files in force: one that does not change is not compiled again.
    compiled: Arc<CompiledFiles>,
    /// Incremented when the source is replaced.
    generation: u64,
}

/// Files that are read and compiled, but not in force yet.
pub(crate) struct PreparedFiles {
    files: DomainFiles,
    source: FileSource,
    interval: Duration,
    read: Vec<SourceFile>,
    compiled: CompiledFiles,
    domains: Domains,
}

/// Outcome of a reload.
enum Reloaded {
    Unchanged,
    Valid { files: Vec<SourceFile>, compiled: CompiledFiles, domains: Domains },
    Invalid { files: Vec<SourceFile>, error: ConfigError },
    Unreadable(ConfigError),
}

// === impl FileReloader ===

impl FileReloader {
    /// Loads the files once.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with them: there is no previous configuration to keep.
    pub(crate) fn start(
        source: FileSource,
        interval: Duration,
        metrics: EnvoyMetrics,
    ) -> Result<(Arc<EnvoyCatalog>, Self), ConfigError> {
        let files = source.read()?;
        let (compiled, domains) = compile_all(&files, &CompiledFiles::new())?;
        let catalog = Arc::new(EnvoyCatalog::default());
        catalog.replace(domains, &metrics);
        let (files, compiled) = (Arc::new(files), Arc::new(compiled));
        let state = Mutex::new(State { source, interval, files, compiled, generation: 0 });
        let shared =
            Shared { catalog: Arc::clone(&catalog), metrics, state, replaced: Notify::new() };
        Ok((catalog, Self(DomainFiles(Arc::new(shared)))))
    }

    /// Returns the files.
    pub(crate) const fn files(&self) -> &DomainFiles {
        &self.0
    }

    /// Reloads until it is dropped.
    pub(crate) async fn run(self) {
        self.run_by(load).await;
    }

    async fn run_by(self, load: impl Fn(&State, bool) -> Reloaded + Clone + Send + 'static) {
        let Self(files) = self;
        let mut reads = FileReads::default();
        loop {
            let interval = files.state().interval;
            let reloading = async {
                time::sleep(interval).await;
                files.reload_once(&mut reads, load.clone()).await
            };
            let is_running = tokio::select! {
                is_running = reloading => is_running,
                // Also if a read of the replaced files hangs.
                () = files.0.replaced.notified() => true,
            };
            if !is_running {
                return;
            }
        }
    }
}

// === impl DomainFiles ===

impl DomainFiles {
    /// Reads and compiles the files that `config` names.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with them.
    pub(crate) fn prepare(&self, config: &EnvoyConfig) -> Result<PreparedFiles, ConfigError> {
        let source = FileSource::of(config).ok_or_else(|| {
            let message =
                "set envoy.config_dir or envoy.config_file; another source needs a restart";
            ConfigError::problems(vec![Problem::new("envoy", message)])
        })?;
        let read = source.read()?;
        let in_force = Arc::clone(&self.state().compiled);
        let (compiled, domains) = compile_all(&read, &in_force)?;
        let interval = config.reload_interval();
        Ok(PreparedFiles { files: self.clone(), source, interval, read, compiled, domains })
    }

    /// Reads and compiles on a blocking thread: large files would delay requests. Returns false if
    /// the runtime is shutting down.
    async fn reload_once(
        &self,
        reads: &mut FileReads,
        load: impl Fn(&State, bool) -> Reloaded + Send + 'static,
    ) -> bool {
        let before = self.state().clone();
        let is_refusing = self.0.catalog.is_refusing();
        let generation = before.generation;
        let path = before.source.path().to_owned();
        let reloaded = match reads.read(move || load(&before, is_refusing)).await {
            Ok(reloaded) => reloaded,
            Err(ReadFailure::ShuttingDown) => return false,
            Err(failure) => {
                let cause = io::Error::other(failure);
                Reloaded::Unreadable(ConfigError::Unreadable { path, cause })
            }
        };
        self.apply(reloaded, generation);
        true
    }

    fn apply(&self, reloaded: Reloaded, generation: u64) {
        let mut state = self.state();
        if state.generation != generation {
            // The files of another source came into force meanwhile.
            return;
        }
        let Shared { catalog, metrics, .. } = &*self.0;
        match reloaded {
            Reloaded::Unchanged => {}
            Reloaded::Valid { files, compiled, domains } => {
                state.files = Arc::new(files);
                state.compiled = Arc::new(compiled);
                catalog.replace(domains, metrics);
            }
            Reloaded::Invalid { files, error } => {
                // Problems of unchanged files have already been reported.
                if files != *state.files {
                    state.files = Arc::new(files);
                    catalog.refuse(&error.to_string(), metrics);
                }
            }
            Reloaded::Unreadable(error) => {
                // Problems of the same files are reported again once they can be read.
                state.files = Arc::default();
                catalog.refuse(&error.to_string(), metrics);
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl PreparedFiles ===

impl PreparedFiles {
    /// Puts the files into force.
    pub(crate) fn commit(self) {
        let Self { files, source, interval, read, compiled, domains } = self;
        let mut state = files.state();
        let generation = state.generation + 1;
        let (read, compiled) = (Arc::new(read), Arc::new(compiled));
        *state = State { source, interval, files: read, compiled, generation };
        files.0.catalog.replace(domains, &files.0.metrics);
        drop(state);
        files.0.replaced.notify_one();
    }
}

fn load(before: &State, is_refusing: bool) -> Reloaded {
    let files = match before.source.read() {
        Ok(files) if files == *before.files && !is_refusing => return Reloaded::Unchanged,
        Ok(files) => files,
        Err(error) => return Reloaded::Unreadable(error),
    };
    match compile_all(&files, &before.compiled) {
        Ok((compiled, domains)) => Reloaded::Valid { files, compiled, domains },
        Err(error) => Reloaded::Invalid { files, error },
    }
}

#[cfg(test)]
mod tests;
