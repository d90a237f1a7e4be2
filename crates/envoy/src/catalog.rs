use std::{collections::HashSet, sync::Arc};

use arc_swap::{ArcSwapOption, Guard};
use tokio::sync::watch;
use tracing::{info, warn};

use crate::{EnvoyMetrics, compiled::Domains};

/// The domains in force: read without a lock, replaced as a whole.
#[derive(Debug, Default)]
pub struct EnvoyCatalog {
    /// `None` before the first configuration.
    domains: ArcSwapOption<Domains>,
    /// Error of the newest configuration, if it was refused.
    refused: ArcSwapOption<String>,
    /// Reason that the management server is unreachable, or has sent nothing on this connection.
    unreachable: ArcSwapOption<String>,
    /// True while readiness waits for the first configuration.
    starting: watch::Sender<bool>,
}

impl EnvoyCatalog {
    /// Creates a catalog that waits for its first configuration.
    pub(crate) fn starting() -> Self {
        Self { starting: watch::Sender::new(true), ..Self::default() }
    }

    /// The domains in force; `None` before the first configuration.
    pub(crate) fn load(&self) -> Guard<Option<Arc<Domains>>> {
        self.domains.load()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.domains.load().is_none()
    }

    pub(crate) fn degraded_reason(&self) -> Option<Arc<String>> {
        self.refused.load_full().or_else(|| self.unreachable.load_full())
    }

    pub(crate) fn watch_starting(&self) -> watch::Receiver<bool> {
        self.starting.subscribe()
    }

    pub(crate) fn is_starting(&self) -> bool {
        *self.starting.borrow()
    }

    /// Ends the wait for the first configuration.
    pub(crate) fn finish_starting(&self) {
        self.starting.send_replace(false);
    }

    pub(crate) fn is_refusing(&self) -> bool {
        self.refused.load().is_some()
    }

    /// Sets or clears the reason the management server is unreachable.
    pub(crate) fn set_unreachable(&self, reason: Option<String>) {
        self.unreachable.store(reason.map(Arc::new));
    }

    pub(crate) fn replace(&self, domains: Domains, metrics: &EnvoyMetrics) {
        let labels = |(name, rule): (&String, &str)| (name.clone(), rule.to_owned());
        let rules: HashSet<(String, String)> = domains
            .values()
            .flat_map(|domain| domain.rules().map(|rule| (&domain.name, rule.label())))
            .map(labels)
            .collect();
        metrics.retain(&rules);
        metrics.config_loaded();
        let before = self.domains.load().as_ref().map_or(0, |domains| domains.len());
        if before > 0 && domains.is_empty() {
            warn!(before, "new Envoy configuration has no domains; nothing is limited any more");
        }
        info!(domains = domains.len(), rules = rules.len(), "loaded Envoy configuration");
        self.refused.store(None);
        self.domains.store(Some(Arc::new(domains)));
        self.finish_starting();
    }

    /// Refuses a configuration and keeps the one in force. The same reason is logged once.
    pub(crate) fn refuse(&self, error: &str, metrics: &EnvoyMetrics) {
        if self.refused.load().as_ref().is_some_and(|known| **known == error) {
            return;
        }
        metrics.config_refused();
        warn!(error, "refused Envoy configuration; keeping the previous one");
        self.refused.store(Some(Arc::new(error.to_owned())));
    }
}

#[cfg(test)]
mod tests {
    use headgate_testkit::CapturedLog;
    use prometheus::Registry;

    use super::*;
    use crate::{compiled::compile, source::SourceFile};

    #[test]
    fn a_configuration_that_removes_all_domains_is_logged_as_a_warning() {
        let log = CapturedLog::start("warn");
        let warned = || log.text().contains("has no domains");
        let metrics = EnvoyMetrics::new(&Registry::new()).unwrap();
        let catalog = EnvoyCatalog::default();
        catalog.replace(Domains::new(), &metrics);
        let domain = compile(&SourceFile::new("a.yaml", "domain: a\ndescriptors: []"));
        let some = Domains::from([("a".to_owned(), Arc::new(domain.unwrap()))]);
        catalog.replace(some, &metrics);
        assert!(!warned());
        catalog.replace(Domains::new(), &metrics);
        assert!(warned());
    }
}
