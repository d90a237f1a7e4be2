//! The document in force, shared by its readers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::{Mutex, watch};
use tracing::{info, warn};

use crate::{
    document::{self, Document},
    problem::summary,
    repository::{DocumentStoreError, ServiceConfig, ServiceConfigRepository},
    source::{LoadError, Source},
};

/// Holds the document in force. Reading takes no lock; clones share the same document.
#[derive(Debug)]
pub struct Watcher<D>(Arc<Inner<D>>);

#[derive(Debug)]
struct Inner<D> {
    current: ArcSwap<Active<D>>,
    changes: watch::Sender<()>,
    /// Serializes refreshes, so that an older read never replaces a newer one.
    reading: Mutex<()>,
}

/// A document in force, and its source.
#[derive(Debug)]
pub struct Active<D> {
    /// Settings.
    pub document: D,
    /// Source of the settings.
    pub source: Source,
}

/// A watcher of any kind of document.
#[async_trait]
pub(crate) trait Reload: Send + Sync {
    fn service(&self) -> &'static str;
    fn source(&self) -> Source;
    async fn reload(&self, repository: &dyn ServiceConfigRepository);
}

// === impl Watcher ===

impl<D: Document> Watcher<D> {
    /// Holds safe defaults until a document is read.
    pub fn new() -> Self {
        let problem = LoadError::Unreadable("the document has not been read yet".to_owned());
        Self::starting_with(D::safe_defaults(&problem), Source::SafeDefaults { problem })
    }

    /// Holds `document`, as version 0, unless another one is applied.
    pub fn fixed(document: D) -> Self {
        Self::starting_with(document, Source::Document { version: 0 })
    }

    fn starting_with(document: D, source: Source) -> Self {
        let current = ArcSwap::from_pointee(Active { document, source });
        let (changes, reading) = (watch::Sender::new(()), Mutex::new(()));
        Self(Arc::new(Inner { current, changes, reading }))
    }

    /// Returns the document in force.
    pub fn current(&self) -> Arc<Active<D>> {
        self.0.current.load_full()
    }

    /// Calls `read` with the document in force.
    pub fn with<T>(&self, read: impl FnOnce(&D) -> T) -> T {
        read(&self.0.current.load().document)
    }

    /// Returns the source of the document in force.
    pub fn source(&self) -> Source {
        self.0.current.load().source.clone()
    }

    /// Subscribes to changes of the document in force and of its source.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Reads the document again and applies it.
    pub async fn refresh(&self, repository: &dyn ServiceConfigRepository) {
        let _turn = self.0.reading.lock().await;
        self.apply(repository.get(D::SERVICE).await);
    }

    /// Applies the result of a read: only a valid document of another version replaces the one in
    /// force.
    pub fn apply(&self, read: Result<Option<ServiceConfig>, DocumentStoreError>) {
        let problem = match read {
            Ok(Some(config)) => match self.take(&config) {
                Ok(()) => return,
                Err(problem) => problem,
            },
            Ok(None) => LoadError::Missing,
            Err(error) => LoadError::Unreadable(error.to_string()),
        };
        self.fall_back(problem);
    }

    fn take(&self, config: &ServiceConfig) -> Result<(), LoadError> {
        let (version, present) = (config.version, self.current());
        if present.source == (Source::Document { version }) {
            return Ok(());
        }
        let source = Source::Document { version };
        if present.source.version() == Some(version) {
            self.put(present.document.clone(), source);
            return Ok(());
        }
        let invalid =
            |problems: Vec<_>| LoadError::Invalid { version, problems: summary(&problems) };
        let document = document::read::<D>(&config.config).map_err(invalid)?;
        info!(service = D::SERVICE, version, "document applied");
        self.put(document, source);
        Ok(())
    }

    /// Keeps the last good document, or else safe defaults, and records the reason.
    fn fall_back(&self, problem: LoadError) {
        let present = self.current();
        if present.source.problem() == Some(&problem) {
            return;
        }
        warn!(service = D::SERVICE, %problem, "failed to load document");
        let (document, source) = match present.source.version() {
            Some(version) => (present.document.clone(), Source::LastGood { version, problem }),
            None => (D::safe_defaults(&problem), Source::SafeDefaults { problem }),
        };
        self.put(document, source);
    }

    fn put(&self, document: D, source: Source) {
        self.0.current.store(Arc::new(Active { document, source }));
        self.0.changes.send_replace(());
    }
}

impl<D: Document> Default for Watcher<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<D> Clone for Watcher<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[async_trait]
impl<D: Document> Reload for Watcher<D> {
    fn service(&self) -> &'static str {
        D::SERVICE
    }

    fn source(&self) -> Source {
        self.source()
    }

    async fn reload(&self, repository: &dyn ServiceConfigRepository) {
        self.refresh(repository).await;
    }
}

#[cfg(test)]
mod tests;
