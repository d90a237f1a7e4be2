//! Kinds of subjects.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The kind of subject that a rule limits. It is also the name of an attribute: a check of the user
/// `u1` is one with the attribute `user`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// A calling service.
    Service,
    /// A person.
    User,
    /// A called path.
    Endpoint,
    /// No kind of subject: the conditions of the rule choose the checks. Only rules have it.
    Attributes,
}

/// Unknown scope name.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("scope must be one of: service, user, endpoint")]
pub struct UnknownScope;

/// The scope of rules, which may be over attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleScope(pub Scope);

/// Unknown name of a scope of rules.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("scope must be one of: service, user, endpoint, attributes")]
pub struct UnknownRuleScope;

impl Scope {
    /// All kinds of subjects.
    pub const ALL: [Self; 3] = [Self::Service, Self::User, Self::Endpoint];

    /// Returns the name in APIs and in the database.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::User => "user",
            Self::Endpoint => "endpoint",
            Self::Attributes => "attributes",
        }
    }

    /// Returns the prefix of keys.
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Service => "ratelimit:service:",
            Self::User => "ratelimit:user:",
            Self::Endpoint => "ratelimit:endpoint:",
            Self::Attributes => "ratelimit:rule:",
        }
    }
}

/// Parses a kind of subject.
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

impl FromStr for RuleScope {
    type Err = UnknownRuleScope;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Scope::ALL.into_iter().chain([Scope::Attributes]);
        known.map(Self).find(|known| known.0.name() == name).ok_or(UnknownRuleScope)
    }
}
