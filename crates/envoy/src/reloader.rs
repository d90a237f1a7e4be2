use std::{sync::Arc, time::Duration};

use headgate_config::ConfigError;
use tokio::{sync::Notify, task, time};

use crate::{
    EnvoyCatalog, EnvoyMetrics,
    compiled::{CompiledFiles, Domains, compile_all},
    source::{FileSource, SourceFile},
};

/// Reloads the domain files periodically.
pub(crate) struct FileReloader {
    catalog: Arc<EnvoyCatalog>,
    source: FileSource,
    interval: Duration,
    metrics: EnvoyMetrics,
    /// Triggers a reload at once.
    reload: Arc<Notify>,
    /// The files as last read, whether or not they are in force.
    files: Arc<Vec<SourceFile>>,
    /// The files in force: one that does not change is not compiled again.
    compiled: Arc<CompiledFiles>,
}

/// Outcome of a reload.
enum Reloaded {
    Unchanged,
    Valid { files: Vec<SourceFile>, compiled: CompiledFiles, domains: Domains },
    Invalid { files: Vec<SourceFile>, error: ConfigError },
    Unreadable(ConfigError),
}

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
        let reloader = Self {
            catalog: Arc::clone(&catalog),
            source,
            interval,
            metrics,
            reload: Arc::default(),
            files: Arc::new(files),
            compiled: Arc::new(compiled),
        };
        Ok((catalog, reloader))
    }

    /// Triggers a reload at once.
    pub(crate) const fn reload(&self) -> &Arc<Notify> {
        &self.reload
    }

    /// Reloads until it is dropped.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                () = time::sleep(self.interval) => {}
                () = self.reload.notified() => {}
            }
            if self.reload_once().await.is_err() {
                // The runtime is shutting down.
                return;
            }
        }
    }

    /// Reads and compiles on a blocking thread: large files would delay requests.
    async fn reload_once(&mut self) -> Result<(), task::JoinError> {
        let source = self.source.clone();
        let (files, compiled) = (Arc::clone(&self.files), Arc::clone(&self.compiled));
        let is_refusing = self.catalog.is_refusing();
        let reloaded =
            task::spawn_blocking(move || load(&source, &files, &compiled, is_refusing)).await?;
        self.apply(reloaded);
        Ok(())
    }

    fn apply(&mut self, reloaded: Reloaded) {
        match reloaded {
            Reloaded::Unchanged => {}
            Reloaded::Valid { files, compiled, domains } => {
                self.files = Arc::new(files);
                self.compiled = Arc::new(compiled);
                self.catalog.replace(domains, &self.metrics);
            }
            Reloaded::Invalid { files, error } => {
                // Problems of unchanged files have already been reported.
                if files != *self.files {
                    self.files = Arc::new(files);
                    self.catalog.refuse(&error.to_string(), &self.metrics);
                }
            }
            Reloaded::Unreadable(error) => {
                self.catalog.refuse(&error.to_string(), &self.metrics);
            }
        }
    }
}

fn load(
    source: &FileSource,
    before: &[SourceFile],
    compiled: &CompiledFiles,
    is_refusing: bool,
) -> Reloaded {
    let files = match source.read() {
        Ok(files) if files == before && !is_refusing => return Reloaded::Unchanged,
        Ok(files) => files,
        Err(error) => return Reloaded::Unreadable(error),
    };
    match compile_all(&files, compiled) {
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
        let (catalog, mut reloader) = FileReloader::start(source, Duration::ZERO, metrics).unwrap();
        let in_force = || Arc::clone(catalog.load().as_ref().unwrap());
        let before = in_force();

        write("two", 2);
        reloader.reload_once().await.unwrap();
        let after = in_force();
        assert!(Arc::ptr_eq(&before["one"], &after["one"]));
        assert!(!Arc::ptr_eq(&before["two"], &after["two"]));

        fs::remove_file(folder.path().join("one.yaml")).unwrap();
        reloader.reload_once().await.unwrap();
        assert_eq!(in_force().keys().collect::<Vec<_>>(), ["two"]);
    }
}
