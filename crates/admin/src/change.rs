//! Authors of changes, and revisions.

use headgate::Timestamp;

/// The caller of a change, the request and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Name of the caller, from the token.
    pub actor: String,
    /// Id of the request.
    pub request_id: String,
    /// Time by the server's clock.
    pub at: Timestamp,
}

/// Number of a version of all rules or all policies. Every change increases it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(pub i64);
