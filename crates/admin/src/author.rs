//! Who changes something, and when.

use headgate::Timestamp;

/// Who changes something, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// By the name that the token gives.
    pub actor: String,
    /// In which request.
    pub request_id: String,
    /// When, by the server's clock.
    pub at: Timestamp,
}
