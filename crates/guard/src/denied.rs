//! Denials.

use std::{fmt, time::Duration};

use headgate::Decision;
use thiserror::Error;

use crate::Surface;

/// A denied request or message. It was not counted against any limit.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("rate limited on {surface} by {reason}: retry in {retry_after:?}")]
#[non_exhaustive]
pub struct Denied {
    /// Surface on which it was denied.
    pub surface: Surface,
    /// The limit that denied it.
    pub reason: Reason,
    /// Time until the same request is admitted, penalty included.
    pub retry_after: Duration,
    /// State of the rate limit that denied it; `None` if it was denied for another reason.
    pub decision: Option<Decision>,
    /// Window of that rate limit in seconds.
    pub(crate) window_secs: u64,
}

/// Reason of a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The rate of an address.
    Address,
    /// The rate of a subject.
    Subject,
    /// The rate of a peer.
    Peer,
    /// The rate of all clients together.
    Global,
    /// The number of requests or connections that one client has in flight.
    InFlight,
    /// The number of requests or connections in flight of all clients together.
    Capacity,
    /// A penalty for earlier denials.
    Penalty,
    /// Not a limit: the peer address of the request is unknown.
    UnknownPeer,
    /// The rate of a key.
    Key,
    /// Not a limit: the request has no key and is refused by [`MissingKey`](crate::MissingKey).
    MissingKey,
}

// === impl Denied ===

impl Denied {
    /// Returns the denial of a request by a rate limit with a name of its own, such as a rule.
    pub fn by_rate(surface: Surface, decision: Decision, window_secs: u64) -> Self {
        let retry_after = decision.retry_after;
        Self { surface, reason: Reason::Key, retry_after, decision: Some(decision), window_secs }
    }

    /// Returns the denial of a request that could not be decided.
    pub fn undecided(surface: Surface) -> Self {
        let retry_after = crate::backend::UNKNOWN_WAIT;
        Self { surface, reason: Reason::Global, retry_after, decision: None, window_secs: 0 }
    }

    /// Returns the denial of a request whose peer address is unknown.
    pub fn unknown_peer(surface: Surface) -> Self {
        Self { reason: Reason::UnknownPeer, ..Self::undecided(surface) }
    }

    /// Whole seconds for a `Retry-After` field: rounded up, at least 1.
    pub fn retry_after_secs(&self) -> u64 {
        let secs = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        secs.max(1)
    }
}

// === impl Reason ===

impl Reason {
    /// Every reason.
    pub const ALL: &[Self] = &[
        Self::Address,
        Self::Subject,
        Self::Peer,
        Self::Global,
        Self::InFlight,
        Self::Capacity,
        Self::Penalty,
        Self::UnknownPeer,
        Self::Key,
        Self::MissingKey,
    ];

    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Subject => "subject",
            Self::Peer => "peer",
            Self::Global => "global",
            Self::InFlight => "in_flight",
            Self::Capacity => "capacity",
            Self::Penalty => "penalty",
            Self::UnknownPeer => "unknown_peer",
            Self::Key => "key",
            Self::MissingKey => "missing_key",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
