//! The domains in force, and who keeps them those that the files say.

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwapOption, Guard};
use headgate_config::ConfigError;
use tokio::{
    sync::{Notify, watch},
    task, time,
};
use tracing::{info, warn};

use super::source::{self, Compiled, Domains, Source, Text};
use crate::metrics::EnvoyNumbers;

/// The domains in force: read without a lock, replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct EnvoyCatalog {
    /// None before the first configuration.
    domains: ArcSwapOption<Domains>,
    /// Why the last configuration is not in force, if it is not.
    refused: ArcSwapOption<String>,
    /// Reason the management server is unreachable, or has sent nothing on this connection.
    unreachable: ArcSwapOption<String>,
    /// Whether the first configuration is still waited for.
    starting: watch::Sender<bool>,
}

/// Reads the files again, every now and then.
pub(crate) struct Reloader {
    catalog: Arc<EnvoyCatalog>,
    source: Source,
    every: Duration,
    numbers: EnvoyNumbers,
    /// Makes it read the files at once.
    reload: Arc<Notify>,
    /// What was read last, whether or not it is in force.
    seen: Vec<Text>,
    /// The files in force: one that does not change is not compiled again.
    compiled: Compiled,
}

// === impl EnvoyCatalog ===

impl EnvoyCatalog {
    /// A catalog whose first configuration is yet to come.
    pub(super) fn starting() -> Self {
        Self { starting: watch::Sender::new(true), ..Self::default() }
    }

    /// The domains in force; `None` before the first configuration.
    pub(super) fn load(&self) -> Guard<Option<Arc<Domains>>> {
        self.domains.load()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.domains.load().is_none()
    }

    /// Reason the newest configuration is not in force, or is unknown.
    pub(crate) fn trouble(&self) -> Option<Arc<String>> {
        self.refused.load_full().or_else(|| self.unreachable.load_full())
    }

    /// Whether readiness waits for the first configuration, now and later.
    pub(super) fn watch_start(&self) -> watch::Receiver<bool> {
        self.starting.subscribe()
    }

    /// Whether readiness waits for the first configuration.
    pub(super) fn is_starting(&self) -> bool {
        *self.starting.borrow()
    }

    /// Readiness waits no longer.
    pub(super) fn started(&self) {
        self.starting.send_replace(false);
    }

    pub(super) fn is_refusing(&self) -> bool {
        self.refused.load().is_some()
    }

    /// Sets or clears the reason the management server is unreachable.
    pub(super) fn set_unreachable(&self, reason: Option<String>) {
        self.unreachable.store(reason.map(Arc::new));
    }

    pub(super) fn replace(&self, domains: Domains, numbers: &EnvoyNumbers) {
        let rules = domains.values().flat_map(|domain| {
            domain.rules().into_iter().map(|rule| (domain.name.clone(), rule.label.clone()))
        });
        numbers.keep(&rules.collect());
        numbers.loaded(true);
        let before = self.domains.load().as_ref().map_or(0, |domains| domains.len());
        if before > 0 && domains.is_empty() {
            warn!(
                before,
                "The new Envoy configuration has no domains: nothing is limited any more"
            );
        }
        info!(domains = domains.len(), "In force: {} Envoy domains", domains.len());
        self.refused.store(None);
        self.domains.store(Some(Arc::new(domains)));
        self.started();
    }

    /// Keeps what is in force. A reason that is known already is not told again.
    pub(super) fn refuse(&self, error: &str, numbers: &EnvoyNumbers) {
        if self.refused.load().as_ref().is_some_and(|known| **known == error) {
            return;
        }
        numbers.loaded(false);
        warn!(error, "Cannot use the Envoy configuration: the one in force stays");
        self.refused.store(Some(Arc::new(error.to_owned())));
    }
}

// === impl Reloader ===

impl Reloader {
    /// Reads the files once.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with them: there is nothing yet that could stay in force.
    pub(crate) fn start(
        source: Source,
        every: Duration,
        numbers: EnvoyNumbers,
    ) -> Result<(Arc<EnvoyCatalog>, Self), ConfigError> {
        let catalog = Arc::new(EnvoyCatalog::default());
        let seen = source.read()?;
        let compiled = source::compiled(&seen, &Compiled::new())?;
        catalog.replace(source::domains(&compiled)?, &numbers);
        let reload = Arc::default();
        Ok((Arc::clone(&catalog), Self { catalog, source, every, numbers, reload, seen, compiled }))
    }

    /// Makes it read the files at once.
    pub(crate) const fn reload(&self) -> &Arc<Notify> {
        &self.reload
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        loop {
            tokio::select! {
                () = time::sleep(self.every) => {}
                () = self.reload.notified() => {}
            }
            let source = self.source.clone();
            // A task that was told to stop reads nothing more.
            let Ok(read) = task::spawn_blocking(move || source.read()).await else {
                return;
            };
            self.take(read);
        }
    }

    /// Puts what was read in force if it changed and makes sense.
    fn take(&mut self, read: Result<Vec<Text>, ConfigError>) {
        let compiled = match read {
            Ok(texts) if texts == self.seen && !self.catalog.is_refusing() => return,
            Ok(texts) => {
                let unchanged = texts == self.seen;
                let compiled = source::compiled(&texts, &self.compiled);
                let compiled = compiled.and_then(|files| Ok((source::domains(&files)?, files)));
                self.seen = texts;
                // It is as wrong as it was, and that was told.
                if unchanged && compiled.is_err() {
                    return;
                }
                compiled
            }
            Err(error) => Err(error),
        };
        match compiled {
            Ok((domains, compiled)) => {
                self.compiled = compiled;
                self.catalog.replace(domains, &self.numbers);
            }
            Err(error) => self.catalog.refuse(&error.to_string(), &self.numbers),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use prometheus::Registry;

    use super::*;

    #[test]
    fn a_configuration_that_removes_all_domains_is_logged_as_a_warning() {
        let log = tempfile::NamedTempFile::new().unwrap();
        let lines = tracing_subscriber::fmt().with_writer(log.reopen().unwrap()).finish();
        let _capture = tracing::subscriber::set_default(lines);
        let warned = || fs::read_to_string(log.path()).unwrap().contains("has no domains");
        let numbers = EnvoyNumbers::new(&Registry::new()).unwrap();
        let catalog = EnvoyCatalog::default();
        catalog.replace(Domains::new(), &numbers);
        let domain = source::domain(&("a.yaml".into(), "domain: a\ndescriptors: []".into()));
        let some = Domains::from([("a".to_owned(), Arc::new(domain.unwrap()))]);
        catalog.replace(some, &numbers);
        assert!(!warned());
        catalog.replace(Domains::new(), &numbers);
        assert!(warned());
    }

    #[test]
    fn a_file_that_does_not_change_is_not_compiled_again() {
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
        let source = Source::Folder(folder.path().to_owned());
        let numbers = EnvoyNumbers::new(&Registry::new()).unwrap();
        let (catalog, mut reloader) =
            Reloader::start(source.clone(), Duration::ZERO, numbers).unwrap();
        let in_force = || Arc::clone(catalog.load().as_ref().unwrap());
        let before = in_force();

        write("two", 2);
        reloader.take(source.read());
        let after = in_force();
        assert!(Arc::ptr_eq(&before["one"], &after["one"]));
        assert!(!Arc::ptr_eq(&before["two"], &after["two"]));

        fs::remove_file(folder.path().join("one.yaml")).unwrap();
        reloader.take(source.read());
        assert_eq!(in_force().keys().collect::<Vec<_>>(), ["two"]);
    }
}
