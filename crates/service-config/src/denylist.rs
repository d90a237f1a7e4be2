//! The denylist: whom the operator denies, whatever the limits say.

use headgate::Timestamp;
use thiserror::Error;

use crate::ConfigError;

/// One entry of the denylist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyEntry {
    /// Whom: an address, a network or a public key, as the service writes it.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
    /// When it was put.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
}

/// What an entry shall say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenyUpdate {
    /// Whom.
    pub subject: String,
    /// The operator's reason.
    pub reason: String,
    /// When it ends, if it does.
    pub expires_at: Option<Timestamp>,
}

/// The denylist as it is kept. Another list has another revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denylist {
    /// Grows with every change.
    pub revision: i64,
    /// All entries by subject, also those that have ended and were not removed yet.
    pub entries: Vec<DenyEntry>,
}

/// Why an entry is not kept.
#[derive(Clone, Debug, Error)]
pub enum DenyError {
    /// There is no room for another.
    #[error("the denylist has {} entries already; remove some first", DenyEntry::MAX)]
    Full,
    /// The database did not do it.
    #[error(transparent)]
    Database(#[from] ConfigError),
}

// === impl DenyEntry ===

impl DenyEntry {
    /// The most entries: every node holds them in memory.
    pub const MAX: u32 = 10_000;

    /// The action of the audit log: an entry was put.
    pub const PUT: &'static str = "denylist.put";

    /// The action of the audit log: an entry was removed.
    pub const REMOVE: &'static str = "denylist.remove";

    /// What stands for `subject` in the audit log.
    pub fn target(subject: &str) -> String {
        format!("denylist:{subject}")
    }
}
