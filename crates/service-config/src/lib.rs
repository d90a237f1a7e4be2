//! Service documents: one JSON document for each service, changed while the service runs.
//!
//! An operator writes a document; it is validated, kept under the next version, written down in the
//! audit log and told to everybody, in one transaction. Services read it again when they hear of it
//! and from time to time. One that cannot read its document goes on with the last good one, or
//! starts with safe defaults, and says so.
//!
//! | module | what it owns |
//! |---|---|
//! | [`document`] | [`Document`]: what a service reads from JSON; [`validate`] before it is kept |
//! | [`relay`], [`user_api`], [`bootstrap`], [`auth`], [`penalty`] | the documents, with their defaults |
//! | [`denylist`] | [`DenyEntry`]: an entry of the operator's denylist |
//! | [`reader`], [`problem`] | fields out of JSON, and everything that is wrong with them |
//! | [`secrets`] | names of fields that no document may have |
//! | [`repository`] | [`ServiceConfigRepository`]: who keeps documents, their audit log, and who runs what |
//! | [`payload`] | whom a notification is about |
//! | [`source`] | [`Source`]: what a service runs on |
//! | [`watcher`], [`reloader`] | the document in force, and who keeps it so |
//!
//! ```
//! use headgate_service_config::{RelayDocument, validate};
//! use serde_json::json;
//!
//! let config = json!({"rate_limit": {"ws": {"events_per_minute": 240}}});
//! assert!(validate("relay", &config).is_ok());
//! let relay: RelayDocument = headgate_service_config::document::read(&config).unwrap();
//! assert_eq!(relay.rate_limit.ws.events_per_minute, 240);
//! assert_eq!(relay.rate_limit.ws.reqs_per_minute, 60, "what is not said is the default");
//! ```

pub mod auth;
pub mod bootstrap;
pub mod denylist;
pub mod document;
pub mod payload;
pub mod penalty;
pub mod problem;
pub mod reader;
pub mod relay;
pub mod reloader;
pub mod repository;
pub mod secrets;
pub mod source;
pub mod user_api;
pub mod watcher;

pub use auth::{AuthMode, AuthSettings};
pub use bootstrap::BootstrapDocument;
pub use denylist::{DenyEntry, DenyError, DenyUpdate, Denylist};
pub use document::{Document, Invalid, validate};
pub use penalty::PenaltySettings;
pub use problem::Problem;
pub use reader::Reader;
pub use relay::RelayDocument;
pub use reloader::Reloader;
pub use repository::{
    AuditFilter, ConfigChange, ConfigError, ConfigUpdate, ServiceConfig, ServiceConfigRepository,
    ServiceState,
};
pub use source::{Doubt, Source};
pub use user_api::UserApiDocument;
pub use watcher::{Active, Watcher};
