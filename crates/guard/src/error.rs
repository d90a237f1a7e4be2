//! Errors of direct checks.

use thiserror::Error;

use crate::Denied;

/// Error of [`Guard::check`](crate::Guard::check).
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuardError {
    /// A limit denied the request.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The policy has no class of this name.
    #[error("unknown class {0:?}: the policy has no class of that name")]
    UnknownClass(String),
}

impl GuardError {
    /// The denial, if it is one.
    pub const fn denied(&self) -> Option<&Denied> {
        match self {
            Self::Denied(denied) => Some(denied),
            Self::UnknownClass(_) => None,
        }
    }
}
