use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use headgate_config::{ConfigError, Problem};
use tokio::{sync::Notify, task, time};

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
        let Self(files) = self;
        loop {
            let interval = files.state().interval;
            tokio::select! {
                () = time::sleep(interval) => {}
                () = files.0.replaced.notified() => continue,
            }
            if files.reload_once().await.is_err() {
                // The runtime is shutting down.
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

    /// Reads and compiles on a blocking thread: large files would delay requests.
    async fn reload_once(&self) -> Result<(), task::JoinError> {
        let before = self.state().clone();
        let is_refusing = self.0.catalog.is_refusing();
        let generation = before.generation;
        let reloaded = task::spawn_blocking(move || load(&before, is_refusing)).await?;
        self.apply(reloaded, generation);
        Ok(())
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
mod tests {
    use std::fs;

    use prometheus::Registry;

    use super::*;

    #[tokio::test]
    async fn a_file_that_does_not_change_is_not_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let write = |domain: &str, requests: u32| {
            let text = format!(
                "domain: {domain}\ndescriptors:\n  - key: a\n    rate_limit:\n      \
                 unit: minute\n      requests_per_unit: {requests}\n"
            );
            fs::write(folder.path().join(format!("{domain}.yaml")), text).unwrap();
        };
        write("one", 1);
        write("two", 1);
        let source = FileSource::Directory(folder.path().to_owned());
        let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
        let (catalog, reloader) = FileReloader::start(source, Duration::ZERO, metrics).unwrap();
        let in_force = || Arc::clone(catalog.load().as_ref().unwrap());
        let before = in_force();

        write("two", 2);
        reloader.files().reload_once().await.unwrap();
        let after = in_force();
        assert!(Arc::ptr_eq(&before["one"], &after["one"]));
        assert!(!Arc::ptr_eq(&before["two"], &after["two"]));

        fs::remove_file(folder.path().join("one.yaml")).unwrap();
        reloader.files().reload_once().await.unwrap();
        assert_eq!(in_force().keys().collect::<Vec<_>>(), ["two"]);
    }
    #[tokio::test]
    async fn a_prepared_source_is_in_force_once_it_is_committed() {
        let [first, second] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let write = |folder: &tempfile::TempDir, domain: &str| {
            let text = format!("domain: {domain}\ndescriptors: []\n");
            fs::write(folder.path().join("domain.yaml"), text).unwrap();
        };
        write(&first, "one");
        write(&second, "two");
        let source = FileSource::Directory(first.path().to_owned());
        let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
        let (catalog, reloader) =
            FileReloader::start(source, Duration::from_secs(60), metrics).unwrap();
        let in_force = || catalog.load().as_ref().unwrap().keys().cloned().collect::<Vec<_>>();
        let other = |folder: &tempfile::TempDir| EnvoyConfig {
            config_dir: Some(folder.path().to_owned()),
            ..EnvoyConfig::default()
        };

        let prepared = reloader.files().prepare(&other(&second)).unwrap();
        assert_eq!(in_force(), ["one"]);
        // A read that began before the commit must not undo it.
        let stale = load(&reloader.files().state(), true);
        prepared.commit();
        assert_eq!(in_force(), ["two"]);
        reloader.files().apply(stale, 0);
        assert_eq!(in_force(), ["two"]);

        fs::write(second.path().join("bad.yaml"), "domain: [").unwrap();
        assert!(reloader.files().prepare(&other(&second)).is_err());
        assert_eq!(in_force(), ["two"]);
    }
}
