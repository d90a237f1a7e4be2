//! The `reason` of a decision, in the words that REST and gRPC share.

use std::fmt;

use headgate::{Decision, FailMode};
use headgate_ratelimit::Scope;
use serde::{Serialize, Serializer};

/// Reason for denying a request, or for admitting it without counting.
#[derive(Clone, Copy, Debug)]
pub enum Reason<'a> {
    /// Admitted and counted.
    None,
    /// Denied: the limit of this subject is exceeded.
    Exceeded(Scope, &'a str),
    /// Admitted by the failure policy.
    FailOpen,
    /// Denied by the failure policy.
    FailClosed,
}

impl<'a> Reason<'a> {
    /// The reason of a `decision` about a subject.
    #[inline]
    pub const fn of(decision: &Decision, scope: Scope, subject: &'a str) -> Self {
        let mode = match decision.degraded {
            Some(degraded) => degraded.fail_mode(),
            // The store denied it.
            None => None,
        };
        match (mode, decision.allowed) {
            (Some(FailMode::Open | FailMode::Capped), true) => Self::FailOpen,
            (Some(FailMode::Closed), false) => Self::FailClosed,
            (_, true) => Self::None,
            (_, false) => Self::Exceeded(scope, subject),
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Exceeded(scope, subject) => {
                write!(f, "rate limit exceeded for {scope}:{subject}")
            }
            Self::FailOpen => f.write_str("redis unavailable, fail-open"),
            Self::FailClosed => f.write_str("redis unavailable, fail-closed"),
        }
    }
}

impl Serialize for Reason<'_> {
    /// Serializes without an intermediate string.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
