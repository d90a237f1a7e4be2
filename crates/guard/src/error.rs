//! Why a request could not be let through.

use thiserror::Error;

use crate::Denied;

/// Why [`Guard::check`](crate::Guard::check) did not let somebody through.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GuardError {
    /// A limit denied.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The program asked for a class that it did not configure.
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
