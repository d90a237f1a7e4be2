//! Why somebody has to wait, and how long.

use std::{fmt, time::Duration};

use headgate::Decision;
use thiserror::Error;

use crate::Surface;

/// Somebody has to wait. Nothing was taken from anybody.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("rate limited on {surface} by {reason}: retry in {retry_after:?}")]
#[non_exhaustive]
pub struct Denied {
    /// Which entrance was closed.
    pub surface: Surface,
    /// Which limit closed it.
    pub reason: Reason,
    /// How long until the same request is admitted, penalty included.
    pub retry_after: Duration,
    /// What the rate said that denied, or would have said if it had to be asked; nothing if it was no
    /// rate.
    pub decision: Option<Decision>,
    /// The window of that rate in seconds.
    pub(crate) window_secs: u64,
}

/// Which limit denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The rate of an address.
    Address,
    /// The rate of a subject.
    Subject,
    /// The rate of a peer.
    Peer,
    /// The rate of everybody together.
    Global,
    /// The number of requests or connections that one client has open.
    InFlight,
    /// The number of requests or connections that everybody has open.
    Capacity,
    /// A penalty for having been denied before.
    Penalty,
    /// No limit: the service does not know where the request comes from.
    UnknownPeer,
}

// === impl Denied ===

impl Denied {
    /// Whole seconds for a `Retry-After` field: rounded up, at least 1.
    pub fn retry_after_secs(&self) -> u64 {
        let secs = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        secs.max(1)
    }
}

// === impl Reason ===

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 8] = [
        Self::Address,
        Self::Subject,
        Self::Peer,
        Self::Global,
        Self::InFlight,
        Self::Capacity,
        Self::Penalty,
        Self::UnknownPeer,
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
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
