//! Service documents: one JSON document for each service, changed while the service runs.
//!
//! A program defines its kinds of documents and registers them. An operator writes a document; it
//! is validated, stored under the next version, written to the audit log and notified of, in one
//! transaction. Services read it again on the notification and from time to time. A service that
//! cannot load its document keeps the last good one, or starts with safe defaults, and reports it.
//!
//! Registered kinds are stored as data beside the documents. This lets another program, such as the
//! Headgate server, show and validate documents whose types it does not know.
//!
//! | module | contents |
//! |---|---|
//! | [`document`] | [`Document`]: a document as a service reads it from JSON |
//! | [`reader`], [`schema`] | fields of a document: values, defaults, bounds |
//! | [`kinds`] | [`Kinds`]: the registry of documents, and their validation |
//! | [`problem`], [`secrets`] | problems of a document |
//! | [`repository`] | [`ServiceConfigRepository`]: storage of documents, kinds, audit log and states |
//! | [`payload`] | notifications about changed documents |
//! | [`source`] | [`Source`]: the source of a service's settings |
//! | [`watcher`], [`reloader`] | the document in force, and the task that keeps it up to date |
//! | [`denylist`] | [`DenyEntry`]: an entry of the operator's denylist |
//!
//! ```
//! use headgate_service_config::{Document, Kinds, LoadError, Reader, document};
//! use serde_json::json;
//!
//! #[derive(Clone, Debug)]
//! struct Mailer {
//!     mails_per_minute: u64,
//! }
//!
//! impl Document for Mailer {
//!     const SERVICE: &'static str = "mailer";
//!
//!     fn read(reader: &mut Reader<'_>) -> Self {
//!         Self { mails_per_minute: reader.number("mails_per_minute", 1..=1_000, 60) }
//!     }
//!
//!     fn safe_defaults(_: &LoadError) -> Self {
//!         Self { mails_per_minute: 10 }
//!     }
//! }
//!
//! let kinds = Kinds::new().with::<Mailer>();
//! let config = json!({"mails_per_minute": 240});
//! assert!(kinds.validate("mailer", &config).is_ok());
//! assert!(kinds.validate("mailer", &json!({"mails_per_hour": 240})).is_err());
//!
//! let mailer: Mailer = document::read(&config).unwrap();
//! assert_eq!(mailer.mails_per_minute, 240);
//! assert_eq!(document::defaults::<Mailer>().mails_per_minute, 60);
//! ```

pub mod denylist;
pub mod document;
pub mod kinds;
pub mod payload;
pub mod problem;
pub mod reader;
pub mod reloader;
pub mod repository;
#[cfg(test)]
mod sample;
pub mod schema;
pub mod secrets;
pub mod source;
pub mod watcher;

pub use denylist::{DenyEntry, DenyError, DenyUpdate, Denylist};
pub use document::Document;
pub use kinds::{DocumentKind, Invalid, Kinds};
pub use problem::FieldProblem;
pub use reader::Reader;
pub use reloader::Reloader;
pub use repository::{
    AuditFilter, ConfigChange, ConfigUpdate, DocumentStoreError, ServiceConfig,
    ServiceConfigRepository, ServiceState,
};
pub use schema::DocumentSchema;
pub use source::{LoadError, Source};
pub use watcher::{Active, Watcher};
