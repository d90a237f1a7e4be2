//! What is asked of whoever keeps documents.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::Author;
use serde_json::Value;
use thiserror::Error;

/// Keeps service documents, their audit log, and who runs on which version.
///
/// Its contract:
///
/// - [`put`](Self::put) is atomic: the document is kept under the next version, written to the audit
///   log and told to everybody, or nothing is.
/// - Of two that put with the same expected version, one fails.
/// - No two documents of a service have the same version.
#[async_trait]
pub trait ServiceConfigRepository: Send + Sync {
    /// All documents, by the names of their services.
    async fn list(&self) -> Result<Vec<ServiceConfig>, ConfigError>;

    /// The document of `service`.
    async fn get(&self, service: &str) -> Result<Option<ServiceConfig>, ConfigError>;

    /// Keeps a document that was [validated](crate::validate).
    async fn put(
        &self,
        update: &ConfigUpdate,
        author: &Author,
    ) -> Result<ServiceConfig, ConfigError>;

    /// The changes that pass `filter`, the newest first.
    async fn changes(&self, filter: &AuditFilter) -> Result<Vec<ConfigChange>, ConfigError>;

    /// Notes what instances run on, and forgets those not seen since `forget_before`.
    async fn report(
        &self,
        states: &[ServiceState],
        forget_before: Timestamp,
    ) -> Result<(), ConfigError>;

    /// What instances run on, by service and instance; those seen last come first past
    /// [`MAX_STATES`].
    async fn states(&self) -> Result<Vec<ServiceState>, ConfigError>;

    /// Tells `heard` with every notification, and with an empty one once it listens; returns when it
    /// cannot any more. Where nobody can be heard it never returns.
    async fn listen(&self, heard: &Hearer<'_>) -> ConfigError;
}

/// Somebody who is told what notifications say.
pub type Hearer<'h> = dyn Fn(&str) + Send + Sync + 'h;

/// The most states that are shown.
pub const MAX_STATES: u32 = 1_000;

/// The document of a service, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// Whose it is.
    pub service: String,
    /// Which one, from 1 on.
    pub version: i64,
    /// What it says.
    pub config: Value,
    /// When it was put.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: String,
}

/// What a service's document shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigUpdate {
    /// Whose document.
    pub service: String,
    /// What it shall say.
    pub config: Value,
    /// The version that it replaces, 0 for none; whatever there is, if nothing is said.
    pub expected_version: Option<i64>,
}

/// One change of a document, as the audit log has it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigChange {
    /// Names it; later ones are greater.
    pub id: i64,
    /// Who did it, when, and with which request.
    pub author: Author,
    /// What was done: [`ConfigChange::UPDATE`].
    pub action: String,
    /// To what: `service:<name>`.
    pub target: String,
    /// Version and document before and after: `{"before": ..., "after": ...}`.
    pub diff: Value,
}

/// Which changes are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those with this action.
    pub action: Option<String>,
    /// Only those of this target.
    pub target: Option<String>,
    /// Only those not before.
    pub since: Option<Timestamp>,
    /// At most so many: 1 to [`AuditFilter::MAX`], [`AuditFilter::USUAL`] unless said.
    pub limit: Option<u32>,
}

/// What one running service runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceState {
    /// Which service.
    pub service: String,
    /// Which of those that run: a name of the process.
    pub instance: String,
    /// The version in force; none with safe defaults.
    pub version: Option<i64>,
    /// [`Source::name`](crate::Source::name).
    pub source: String,
    /// When it last said so.
    pub seen_at: Timestamp,
}

/// Why there is no answer.
#[derive(Clone, Debug, Error)]
pub enum ConfigError {
    /// Another version is there than was expected.
    #[error("the document has version {}", .current.unwrap_or_default())]
    VersionMismatch {
        /// The version that is there, if there is one.
        current: Option<i64>,
    },
    /// The change could not be written down, so that it was not made.
    #[error("the audit log does not take the change: {0}")]
    AuditLog(Arc<dyn StdError + Send + Sync>),
    /// What is kept makes no sense.
    #[error("the database holds something that is no document: {0}")]
    Corrupt(String),
    /// The database cannot be reached, or failed.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

// === impl ConfigChange ===

impl ConfigChange {
    /// A document was put.
    pub const UPDATE: &'static str = "service_config.update";

    /// What stands for the document of `service` in the audit log.
    pub fn target(service: &str) -> String {
        format!("service:{service}")
    }
}

// === impl AuditFilter ===

impl AuditFilter {
    /// How many changes are shown unless said.
    pub const USUAL: u32 = 200;

    /// The most changes that are shown.
    pub const MAX: u32 = 1_000;

    /// How many changes are shown.
    pub fn count(&self) -> u32 {
        self.limit.unwrap_or(Self::USUAL).clamp(1, Self::MAX)
    }
}

// === impl ConfigError ===

impl ConfigError {
    /// An outage with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// A change that could not be written down, with the cause.
    pub fn audit_log(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::AuditLog(Arc::new(cause))
    }
}
