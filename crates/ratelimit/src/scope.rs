//! Kinds of subjects.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The kind of subject that a rule limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// A calling service.
    Service,
    /// A person.
    User,
    /// A called path.
    Endpoint,
}

/// Unknown scope name.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("scope must be one of: service, user, endpoint")]
pub struct UnknownScope;

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Service, Self::User, Self::Endpoint];

    /// Returns the name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::User => "user",
            Self::Endpoint => "endpoint",
        }
    }

    /// Returns the prefix of keys.
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Service => "ratelimit:service:",
            Self::User => "ratelimit:user:",
            Self::Endpoint => "ratelimit:endpoint:",
        }
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|scope| scope.name() == name).ok_or(UnknownScope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
