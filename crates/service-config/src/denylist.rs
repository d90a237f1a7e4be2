//! The operator's denylist: subjects that a service denies, whatever their limits are.
//!
//! A subject is plain text to this crate. Only the service that uses the list interprets it.

use headgate::Timestamp;
use thiserror::Error;

use crate::DocumentStoreError;

/// An entry of the denylist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyEntry {
    /// Denied subject in the service's notation, such as an address, a network or a public key.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// Time at which the entry expires, if it does.
    pub expires_at: Option<Timestamp>,
    /// Time at which it was written.
    pub created_at: Timestamp,
    /// Author of the entry.
    pub created_by: String,
}

/// An entry to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyUpdate {
    /// Denied subject.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// Time at which the entry expires, if it does.
    pub expires_at: Option<Timestamp>,
}

/// The denylist as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denylist {
    /// Revision, which grows with every change.
    pub revision: i64,
    /// All entries by subject, including expired ones that were not removed yet.
    pub entries: Vec<DenyEntry>,
}

/// Error of writing an entry.
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
