//! Callbacks about rejections and outages.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use headgate::{Degraded, FailCause};
use http::Request;

use crate::{Denied, Reason};

/// Receives the rejections of a guard, and the outages of its store. No callback identifies a
/// client.
pub trait Observer: Send + Sync {
    /// A request or message of `class` was denied.
    fn rejected(&self, class: &str, denied: &Denied);

    /// A request had no peer address.
    fn unidentified(&self) {}

    /// The lease of a request of `class` that is in flight under a
    /// [shared limit](crate::Class::shared_in_flight) could not be renewed: another request may
    /// have its place. The request goes on.
    fn place_lost(&self, class: &str) {
        let _ = class;
    }

    /// A request or message was decided without the store, which could not answer. It is called for
    /// each of them, while the log has a line every ten seconds.
    fn degraded(&self, degraded: Degraded) {
        let _ = degraded;
    }
}

/// Kind of interface on which a request or message arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Surface {
    /// An HTTP request.
    Http,
    /// A gRPC call.
    Grpc,
    /// The opening of a WebSocket.
    Connection,
    /// A message on a WebSocket.
    Message,
    /// A message from a peer.
    Peer,
}

impl Surface {
    /// Returns [`Grpc`](Self::Grpc) if the client speaks gRPC, and [`Http`](Self::Http) otherwise.
    pub fn of<B>(request: &Request<B>) -> Self {
        crate::tower::surface(request)
    }
}

/// Counts rejections by surface and reason, and degraded decisions by cause.
///
/// ```
/// use std::sync::Arc;
///
/// use headgate_guard::{
///     Allowance, Backend, PeerGuard, PeerId, PeerLimits, Reason, Rejections, Surface,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rejections = Arc::new(Rejections::default());
/// let backend = Backend::memory().observer(rejections.clone());
/// let limits = PeerLimits::new(Allowance::per_minute(0)?, Allowance::per_minute(100)?);
///
/// let denied = PeerGuard::new(limits, backend).admit(PeerId::Node("ae58ff88")).await;
/// assert!(denied.is_err());
/// assert_eq!(rejections.count(Surface::Peer, Reason::Peer), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Rejections {
    counts: [[AtomicU64; Reason::ALL.len()]; Surface::ALL.len()],
    unidentified: AtomicU64,
    places_lost: AtomicU64,
    degraded: [AtomicU64; FailCause::ALL.len()],
}

// === impl Surface ===

impl Surface {
    /// Every surface.
    pub const ALL: &[Self] = &[Self::Http, Self::Grpc, Self::Connection, Self::Message, Self::Peer];

    /// The name in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Grpc => "grpc",
            Self::Connection => "ws_connection",
            Self::Message => "ws_message",
            Self::Peer => "peer",
        }
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl Rejections ===

impl Rejections {
    /// Number of rejections at `surface` for `reason`.
    pub fn count(&self, surface: Surface, reason: Reason) -> u64 {
        self.counts[surface as usize][reason as usize].load(Relaxed)
    }

    /// Number of rejections at `surface`.
    pub fn at(&self, surface: Surface) -> u64 {
        Reason::ALL.iter().map(|reason| self.count(surface, *reason)).sum()
    }

    /// Number of requests without a peer address.
    pub fn unidentified_count(&self) -> u64 {
        self.unidentified.load(Relaxed)
    }

    /// Number of requests in flight that may have lost their place to another.
    pub fn places_lost_count(&self) -> u64 {
        self.places_lost.load(Relaxed)
    }

    /// Number of decisions that the store could not make because of `cause`.
    pub fn degraded_count(&self, cause: FailCause) -> u64 {
        let counts = FailCause::ALL.iter().zip(&self.degraded);
        counts.filter(|(known, _)| **known == cause).map(|(_, count)| count.load(Relaxed)).sum()
    }
}

impl Observer for Rejections {
    fn rejected(&self, _class: &str, denied: &Denied) {
        self.counts[denied.surface as usize][denied.reason as usize].fetch_add(1, Relaxed);
    }

    fn unidentified(&self) {
        self.unidentified.fetch_add(1, Relaxed);
    }

    fn place_lost(&self, _class: &str) {
        self.places_lost.fetch_add(1, Relaxed);
    }

    fn degraded(&self, degraded: Degraded) {
        let mut counts = FailCause::ALL.iter().zip(&self.degraded);
        if let Some((_, count)) = counts.find(|(known, _)| **known == degraded.cause) {
            count.fetch_add(1, Relaxed);
        }
    }
}
