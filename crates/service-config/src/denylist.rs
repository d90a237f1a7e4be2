//! The operator's denylist: subjects that a service denies, whatever their limits are.
//!
//! A subject is text to this crate. The service that uses the list says what it means.

use headgate::Timestamp;
use thiserror::Error;

use crate::DocumentStoreError;

/// An entry of the denylist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyEntry {
    /// Who is denied, as the service writes it: an address, a network or a public key, say.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// When the entry ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was written.
    pub created_at: Timestamp,
    /// Who wrote it.
    pub created_by: String,
}

/// An entry to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyUpdate {
    /// Who is denied.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// When the entry ends, if it does.
    pub expires_at: Option<Timestamp>,
}

/// The denylist as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denylist {
    /// Revision, which grows with every change.
    pub revision: i64,
    /// All entries by subject, including those that have ended and were not removed yet.
    pub entries: Vec<DenyEntry>,
}

/// Why an entry was not written.
#[derive(Clone, Debug, Error)]
pub enum DenyError {
    /// The list is full.
    #[error("the denylist is full ({} entries); remove some first", DenyEntry::MAX)]
    Full,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DocumentStoreError),
}

// === impl DenyEntry ===

impl DenyEntry {
    /// Most entries: every instance holds them in memory.
    pub const MAX: u32 = 10_000;

    /// Audit action: an entry was written.
    pub const PUT: &'static str = "denylist.put";

    /// Audit action: an entry was removed.
    pub const REMOVE: &'static str = "denylist.remove";

    /// Audit target of `subject`.
    pub fn target(subject: &str) -> String {
        format!("denylist:{subject}")
    }
}
