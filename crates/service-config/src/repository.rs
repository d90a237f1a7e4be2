//! Storage of documents.

use std::{error::Error as StdError, sync::Arc};

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::Author;
use serde_json::Value;
use thiserror::Error;

use crate::kinds::{DocumentKind, Kinds};

/// Stores service documents, their kinds, their audit log, and the version that each instance runs.
///
/// Its contract:
///
/// - [`put`](Self::put) is atomic: the document is stored under the next version, written to the
///   audit log and notified of, or nothing happens.
/// - Of two writers with the same expected version, one fails.
/// - No two documents of a service have the same version.
#[async_trait]
pub trait ServiceConfigRepository: Send + Sync {
    /// Lists all documents, by service.
    async fn list(&self) -> Result<Vec<ServiceConfig>, DocumentStoreError>;

    /// Returns the document of `service`.
    async fn get(&self, service: &str) -> Result<Option<ServiceConfig>, DocumentStoreError>;

    /// Stores a document that was [validated](Kinds::validate).
    async fn put(
        &self,
        update: &ConfigUpdate,
        author: &Author,
    ) -> Result<ServiceConfig, DocumentStoreError>;

    /// Lists the changes that pass `filter`, the newest first.
    async fn changes(&self, filter: &AuditFilter) -> Result<Vec<ConfigChange>, DocumentStoreError>;

    /// Registers kinds of documents, in place of those of the same services. A kind of a newer
    /// [revision](crate::Document::REVISION) stays: an older program may start after it.
    async fn register(&self, kinds: &Kinds, now: Timestamp) -> Result<(), DocumentStoreError>;

    /// Returns the registered kinds that this program can read. A kind stays registered while its
    /// program does not run.
    async fn kinds(&self) -> Result<Kinds, DocumentStoreError>;

    /// Returns the kind of the documents of `service`, if it is registered and this program can
    /// read it.
    async fn kind(&self, service: &str) -> Result<Option<DocumentKind>, DocumentStoreError>;

    /// Stores the states of instances, and removes those not seen since `forget_before`.
    async fn report(
        &self,
        states: &[ServiceState],
        forget_before: Timestamp,
    ) -> Result<(), DocumentStoreError>;

    /// Lists the states of instances, by service and instance: the [`MAX_STATES`] seen last.
    async fn states(&self) -> Result<Vec<ServiceState>, DocumentStoreError>;

    /// Calls `handler` with the payload of every notification, and with an empty one once it
    /// listens. Returns when it cannot listen any more; never, where there are no notifications.
    async fn listen(&self, handler: &PayloadHandler<'_>) -> DocumentStoreError;
}

/// Receives the payloads of notifications.
pub type PayloadHandler<'h> = dyn Fn(&str) + Send + Sync + 'h;

/// Maximum number of states in a list.
pub const MAX_STATES: u32 = 1_000;

/// A service's document as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// Name of the service.
    pub service: String,
    /// Version, from 1 on.
    pub version: i64,
    /// The document.
    pub config: Value,
    /// Time at which it was written.
    pub updated_at: Timestamp,
    /// Author of the document.
    pub updated_by: String,
}

/// A document to be stored.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigUpdate {
    /// Name of the service.
    pub service: String,
    /// The document.
    pub config: Value,
    /// Version that it replaces, 0 for none; any if `None`.
    pub expected_version: Option<i64>,
}

/// A change of a document in the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigChange {
    /// Id; later ones are greater.
    pub id: i64,
    /// Actor, time and request id.
    pub author: Author,
    /// Action, such as [`ConfigChange::UPDATE`].
    pub action: String,
    /// Target, such as `service:<name>`.
    pub target: String,
    /// Version and document before and after: `{"before": ..., "after": ...}`.
    pub diff: Value,
}

/// Filter of a list of changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Only those with this action.
    pub action: Option<String>,
    /// Only those of this target.
    pub target: Option<String>,
    /// Only those at or after this time.
    pub since: Option<Timestamp>,
    /// Maximum number of changes in the list: 1 to [`AuditFilter::MAX`], by default
    /// [`AuditFilter::USUAL`].
    pub limit: Option<u32>,
}

/// State of one instance of a service: the version that it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceState {
    /// Name of the service.
    pub service: String,
    /// Name of the process.
    pub instance: String,
    /// Version in force; `None` with safe defaults.
    pub version: Option<i64>,
    /// [`Source::name`](crate::Source::name).
    pub source: String,
    /// Time of its last report.
    pub seen_at: Timestamp,
}

/// Error of a repository.
#[derive(Clone, Debug, Error)]
pub enum DocumentStoreError {
    /// The document does not have the expected version.
    #[error("the document has version {}", .current.unwrap_or_default())]
    VersionMismatch {
        /// Its version, if there is a document.
        current: Option<i64>,
    },
    /// The change could not be written to the audit log, and was not made.
    #[error("cannot write to the audit log: {0}")]
    AuditLog(Arc<dyn StdError + Send + Sync>),
    /// The database holds an invalid row.
    #[error("invalid row in the database: {0}")]
    Corrupt(String),
    /// The database cannot be reached, or failed.
    #[error("database unavailable: {0}")]
    Unavailable(Arc<dyn StdError + Send + Sync>),
}

// === impl ConfigChange ===

impl ConfigChange {
    /// Audit action: a document was written.
    pub const UPDATE: &'static str = "service_config.update";

    /// Audit target of the document of `service`.
    pub fn target(service: &str) -> String {
        format!("service:{service}")
    }
}

// === impl AuditFilter ===

impl AuditFilter {
    /// Default number of changes in a list.
    pub const USUAL: u32 = 200;

    /// Maximum number of changes in a list.
    pub const MAX: u32 = 1_000;

    /// Number of changes in the list.
    pub fn count(&self) -> u32 {
        self.limit.unwrap_or(Self::USUAL).clamp(1, Self::MAX)
    }
}

// === impl DocumentStoreError ===

impl DocumentStoreError {
    /// An outage, with its cause.
    pub fn unavailable(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::Unavailable(Arc::new(cause))
    }

    /// A change that could not be written to the audit log, with the cause.
    pub fn audit_log(cause: impl StdError + Send + Sync + 'static) -> Self {
        Self::AuditLog(Arc::new(cause))
    }
}
