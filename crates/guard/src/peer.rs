//! Limits on messages from peers, of each and of all together.

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use headgate::{Decision, Key, KeySpace};

use crate::{
    Allowance, Backend, Denied, Escalation, Reason, Surface,
    backend::UNKNOWN_WAIT,
    decider::{Decider, LimitCheck, LimitChecks, Rejection},
};

/// Limits on messages from peers. Without an allowance there is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// `true` if limits are in force.
    pub enabled: bool,
    /// Limit of one peer.
    pub per_peer: Option<Allowance>,
    /// Limit of all peers together.
    pub global: Option<Allowance>,
    /// Penalties for peers that are denied repeatedly. Denials by the limit of all peers start no
    /// penalty.
    pub escalation: Option<Escalation>,
}

/// Sender of a message.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum PeerId<'a> {
    /// A node with an authenticated id.
    Node(&'a str),
    /// A node without an id, by its address.
    Address(IpAddr),
}

/// Limits messages from peers. Drop a denied message without a response.
///
/// ```
/// use headgate_guard::{Allowance, Backend, PeerGuard, PeerId, PeerLimits};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limits = PeerLimits::new(Allowance::per_second(1)?, Allowance::per_second(1_000)?);
/// let guard = PeerGuard::new(limits, Backend::memory());
///
/// assert!(guard.admit(PeerId::Node("ae58ff88")).await.is_ok());
/// assert!(guard.admit(PeerId::Node("ae58ff88")).await.is_err());
/// assert!(guard.admit(PeerId::Address("198.51.100.7".parse()?)).await.is_ok());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct PeerGuard(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    decider: Decider,
    limits: ArcSwap<PeerLimits>,
    node: Box<str>,
    address: Box<str>,
    global: Box<str>,
}

/// The class in keys and for observers.
const CLASS: &str = "peer";

/// Key of all peers together.
const ALL: &str = "all";

// === impl PeerLimits ===

impl PeerLimits {
    /// Limits of one peer and of all peers together.
    pub fn new(per_peer: impl Into<Allowance>, global: impl Into<Allowance>) -> Self {
        Self {
            enabled: true,
            per_peer: Some(per_peer.into()),
            global: Some(global.into()),
            escalation: None,
        }
    }
}

// === impl PeerGuard ===

impl PeerGuard {
    /// A guard with `limits` that counts in `backend`.
    pub fn new(limits: PeerLimits, backend: Backend) -> Self {
        Self(Arc::new(Inner {
            node: backend.prefix(CLASS, "id"),
            address: backend.prefix(CLASS, "ip"),
            global: backend.prefix(CLASS, "sum"),
            decider: Decider::new(backend),
            limits: ArcSwap::from_pointee(limits),
        }))
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<PeerLimits> {
        self.0.limits.load_full()
    }

    /// Replaces the limits. Counters are kept.
    pub fn replace(&self, limits: PeerLimits) {
        self.0.limits.store(Arc::new(limits));
    }

    /// Counts one message of `peer`, against its own limit and that of all peers or against
    /// neither.
    pub async fn admit(&self, peer: PeerId<'_>) -> Result<Option<Decision>, Denied> {
        let limits = self.limits();
        if !limits.enabled {
            return Ok(None);
        }
        let inner = &*self.0;
        let (node, global) = (KeySpace::new(&inner.node, ""), KeySpace::new(&inner.global, ""));
        let address;
        let key = match peer {
            PeerId::Node(id) => Key::new(id).map(|key| key.within(&node)),
            PeerId::Address(ip) => {
                address = inner.decider.backend().address_key(&inner.address, ip);
                Key::new(&address)
            }
        };
        let Ok(key) = key else {
            return Err(inner.denied(Rejection::new(Reason::Peer, UNKNOWN_WAIT)));
        };
        let mut checks = LimitChecks::new();
        let own = limits.per_peer.as_ref();
        checks.extend(own.map(|allowance| LimitCheck { key, allowance, reason: Reason::Peer }));
        if let (Some(allowance), Ok(all)) = (&limits.global, Key::new(ALL)) {
            checks.push(LimitCheck { key: all.within(&global), allowance, reason: Reason::Global });
        }
        let result = inner.decider.decide(&checks, limits.escalation.as_ref()).await;
        result.map_err(|rejection| inner.denied(rejection))
    }
}

impl Inner {
    fn denied(&self, rejection: Rejection) -> Denied {
        self.decider.backend().rejected(CLASS, rejection.at(Surface::Peer))
    }
}

/// Omits the id and the address.
impl std::fmt::Debug for PeerId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Node(_) => "Node(..)",
            Self::Address(_) => "Address(..)",
        })
    }
}
