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
    /// Denied: the limit of this rule is exceeded.
    RuleExceeded(&'a str),
    /// Admitted: no rule matches.
    Unlimited,
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

    /// The text, in parts.
    #[inline]
    pub const fn parts(self) -> [&'a str; 4] {
        match self {
            Self::None => [""; 4],
            Self::Exceeded(scope, subject) => {
                ["rate limit exceeded for ", scope.name(), ":", subject]
            }
            Self::RuleExceeded(name) => ["rate limit exceeded by rule ", name, "", ""],
            Self::Unlimited => ["no rule matches", "", "", ""],
            Self::FailOpen => ["redis unavailable, fail-open", "", "", ""],
            Self::FailClosed => ["redis unavailable, fail-closed", "", "", ""],
        }
    }

    /// The reason of a `decision` by the rule of this name.
    pub const fn of_rule(decision: &Decision, name: &'a str) -> Self {
        match Self::of(decision, Scope::Attributes, name) {
            Self::Exceeded(..) => Self::RuleExceeded(name),
            other => other,
        }
    }
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().into_iter().try_for_each(|part| f.write_str(part))
    }
}

impl Serialize for Reason<'_> {
    /// Serializes without an intermediate string.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
