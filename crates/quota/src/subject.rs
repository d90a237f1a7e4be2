//! Subjects of policies.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The type of a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SubjectType {
    /// A customer.
    Tenant,
    /// A person.
    User,
    /// An API key.
    ApiKey,
}

/// The subject of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// Its type.
    pub kind: SubjectType,
    /// Its id.
    pub id: String,
}

/// Unknown subject type.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("must be one of: tenant, user, api_key")]
pub struct UnknownSubjectType;

// === impl SubjectType ===

impl SubjectType {
    /// All types.
    pub const ALL: [Self; 3] = [Self::Tenant, Self::User, Self::ApiKey];

    /// Returns the name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::User => "user",
            Self::ApiKey => "api_key",
        }
    }
}

impl FromStr for SubjectType {
    type Err = UnknownSubjectType;

    fn from_str(name: &str) -> Result<Self, UnknownSubjectType> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or(UnknownSubjectType)
    }
}

impl fmt::Display for SubjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
