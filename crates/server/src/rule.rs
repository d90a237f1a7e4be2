//! Which limit answers a check: so far the default rule, for everybody.

use std::{fmt, str::FromStr};

use headgate::{
    Batch, Check, CheckError, Cost, Decision, FailMode, Key, Limit, LimitError, Limiter, Space,
    StoreError,
};
use thiserror::Error;

use crate::config::RateLimitConfig;

/// What kind of subject a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Service,
    User,
    Endpoint,
}

/// A name that is no scope's.
#[derive(Clone, Copy, Debug, Error)]
#[error("scope must be one of: service, user, endpoint")]
pub(crate) struct UnknownScope;

/// What applies to every subject for which no rule was written.
#[derive(Debug)]
pub(crate) struct DefaultRule {
    limit: Limit,
    window_seconds: u64,
    fail_mode: FailMode,
    /// What a key ends in, so that naming a subject allocates nothing.
    key_suffix: String,
}

/// Why there is no decision.
#[derive(Clone, Debug, Error)]
pub(crate) enum DecideError {
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

// === impl Scope ===

impl Scope {
    /// The name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::User => "user",
            Self::Endpoint => "endpoint",
        }
    }

    /// What a key of this scope begins with.
    const fn key_prefix(self) -> &'static str {
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
        [Self::Service, Self::User, Self::Endpoint]
            .into_iter()
            .find(|scope| scope.name() == name)
            .ok_or(UnknownScope)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl DefaultRule ===

impl DefaultRule {
    pub(crate) fn new(config: &RateLimitConfig) -> Result<Self, LimitError> {
        let window_seconds = config.default_window_seconds.get();
        Ok(Self {
            limit: config.default_rule()?,
            window_seconds,
            fail_mode: config.fail_mode(),
            key_suffix: format!(":{window_seconds}"),
        })
    }

    pub(crate) const fn limit(&self) -> &Limit {
        &self.limit
    }

    pub(crate) const fn window_seconds(&self) -> u64 {
        self.window_seconds
    }

    /// Takes one unit from `subject`'s allowance if there is one.
    pub(crate) async fn decide(
        &self,
        limiter: &Limiter,
        scope: Scope,
        subject: Key<'_>,
    ) -> Result<Decision, DecideError> {
        let space = Space::new(scope.key_prefix(), &self.key_suffix);
        let key = subject.within(&space);
        let check = Check::new(key, &self.limit, Cost::ONE)?.or_else(self.fail_mode);
        Ok(limiter.check(&Batch::from(check)).await?)
    }
}
