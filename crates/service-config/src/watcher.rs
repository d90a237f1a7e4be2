//! The document in force.

use std::sync::Arc;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::{
    document::{self, Document},
    problem::summary,
    repository::{ConfigError, ServiceConfig, ServiceConfigRepository},
    source::{Doubt, Source},
};

/// Holds the document in force. Reading it waits for nobody; clones hold the same one.
#[derive(Debug)]
pub struct Watcher<D>(Arc<Inner<D>>);

#[derive(Debug)]
struct Inner<D> {
    current: ArcSwap<Active<D>>,
    changes: watch::Sender<()>,
}

/// A document in force, and where it is from.
#[derive(Debug)]
pub struct Active<D> {
    /// What it says.
    pub document: D,
    /// Where it is from.
    pub source: Source,
}

/// A watcher whatever its document: whoever reloads need not know it.
#[async_trait]
pub(crate) trait Reload: Send + Sync {
    fn service(&self) -> &'static str;
    fn source(&self) -> Source;
    async fn reload(&self, repository: &dyn ServiceConfigRepository);
}

// === impl Watcher ===

impl<D: Document> Watcher<D> {
    /// Runs on safe defaults until a document was read.
    pub fn new() -> Self {
        let problem = Doubt::Unreadable("the document has not been read yet".to_owned());
        Self::holding(D::safe(&problem), Source::SafeDefaults { problem })
    }

    /// Runs on `document` for ever, where nobody reloads it.
    pub fn fixed(document: D) -> Self {
        Self::holding(document, Source::Document { version: 0 })
    }

    fn holding(document: D, source: Source) -> Self {
        let current = ArcSwap::from_pointee(Active { document, source });
        Self(Arc::new(Inner { current, changes: watch::Sender::new(()) }))
    }

    /// The document in force.
    pub fn current(&self) -> Arc<Active<D>> {
        self.0.current.load_full()
    }

    /// What `read` makes of the document in force, without keeping it.
    pub fn with<T>(&self, read: impl FnOnce(&D) -> T) -> T {
        read(&self.0.current.load().document)
    }

    /// Where the document in force is from.
    pub fn source(&self) -> Source {
        self.0.current.load().source.clone()
    }

    /// Tells of every change of the document in force or of where it is from.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.changes.subscribe()
    }

    /// Puts what `read` is in force: only a good document of another version replaces one.
    pub fn apply(&self, read: Result<Option<ServiceConfig>, ConfigError>) {
        let problem = match read {
            Ok(Some(config)) => match self.take(&config) {
                Ok(()) => return,
                Err(problem) => problem,
            },
            Ok(None) => Doubt::Missing,
            Err(error) => Doubt::Unreadable(error.to_string()),
        };
        self.doubt(problem);
    }

    fn take(&self, config: &ServiceConfig) -> Result<(), Doubt> {
        let (version, present) = (config.version, self.current());
        if present.source == (Source::Document { version }) {
            return Ok(());
        }
        let source = Source::Document { version };
        if present.source.version() == Some(version) {
            self.put(present.document.clone(), source);
            return Ok(());
        }
        let broken = |problems: Vec<_>| Doubt::Broken { version, problems: summary(&problems) };
        let document = document::read::<D>(&config.config).map_err(broken)?;
        info!(service = D::SERVICE, version, "The document is in force");
        self.put(document, source);
        Ok(())
    }

    /// Keeps what is good, and says why it is not new.
    fn doubt(&self, problem: Doubt) {
        let present = self.current();
        if present.source.problem() == Some(&problem) {
            return;
        }
        warn!(service = D::SERVICE, %problem, "The document cannot be used");
        let (document, source) = match present.source.version() {
            Some(version) => (present.document.clone(), Source::LastGood { version, problem }),
            None => (D::safe(&problem), Source::SafeDefaults { problem }),
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
        self.apply(repository.get(D::SERVICE).await);
    }
}

#[cfg(test)]
mod tests;
