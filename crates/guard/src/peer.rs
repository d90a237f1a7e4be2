//! Messages of peers: each within its own limit, and all within one.

use std::{net::IpAddr, sync::Arc};

use arc_swap::ArcSwap;
use headgate::{Decision, Key, Space};

use crate::{
    Allowance, Backend, Denied, Escalation, Reason, Surface,
    backend::UNKNOWN_WAIT,
    judge::{Ask, Asks, Judge, Refusal},
};

/// What peers may send. Without an allowance there is no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerLimits {
    /// Whether anything is limited at all.
    pub enabled: bool,
    /// What one peer may send.
    pub per_peer: Option<Allowance>,
    /// What all peers together may send.
    pub global: Option<Allowance>,
    /// How much longer those wait who are denied again and again. It is the peer who is
    /// punished, never everybody.
    pub escalation: Option<Escalation>,
}

/// Who delivers a message.
#[derive(Clone, Copy)]
pub enum PeerId<'a> {
    /// A node, by the id that it has proved to have.
    Node(&'a str),
    /// A node without an id, by its address.
    Address(IpAddr),
}

/// Decides on messages of peers. Whoever is denied is not answered: drop the message.
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
    judge: Judge,
    limits: ArcSwap<PeerLimits>,
    node: Box<str>,
    address: Box<str>,
    global: Box<str>,
}

/// The class in keys and for observers.
const CLASS: &str = "peer";

/// All peers together have one subject.
const ALL: &str = "all";

// === impl PeerLimits ===

impl PeerLimits {
    /// So much for one peer, and so much for all.
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
    /// Guards with `limits`, counting in `backend`.
    pub fn new(limits: PeerLimits, backend: Backend) -> Self {
        Self(Arc::new(Inner {
            node: backend.prefix(CLASS, "id"),
            address: backend.prefix(CLASS, "ip"),
            global: backend.prefix(CLASS, "sum"),
            judge: Judge::new(backend),
            limits: ArcSwap::from_pointee(limits),
        }))
    }

    /// The limits in force.
    pub fn limits(&self) -> Arc<PeerLimits> {
        self.0.limits.load_full()
    }

    /// Puts other limits in force. What was counted stays counted.
    pub fn replace(&self, limits: PeerLimits) {
        self.0.limits.store(Arc::new(limits));
    }

    /// Takes one message of `peer`, within its own limit and that of all, or nothing.
    pub async fn admit(&self, peer: PeerId<'_>) -> Result<Option<Decision>, Denied> {
        let limits = self.limits();
        if !limits.enabled {
            return Ok(None);
        }
        let inner = &*self.0;
        let (node, global) = (Space::new(&inner.node, ""), Space::new(&inner.global, ""));
        let address;
        let key = match peer {
            PeerId::Node(id) => Key::new(id).map(|key| key.within(&node)),
            PeerId::Address(ip) => {
                address = inner.judge.backend().address_key(&inner.address, ip);
                Key::new(&address)
            }
        };
        let Ok(key) = key else {
            return Err(inner.denied(Refusal::new(Reason::Peer, UNKNOWN_WAIT)));
        };
        let mut asks = Asks::new();
        let own = limits.per_peer.as_ref();
        asks.extend(own.map(|allowance| Ask { key, allowance, reason: Reason::Peer }));
        if let (Some(allowance), Ok(all)) = (&limits.global, Key::new(ALL)) {
            asks.push(Ask { key: all.within(&global), allowance, reason: Reason::Global });
        }
        let ruling = inner.judge.decide(&asks, limits.escalation.as_ref()).await;
        ruling.map_err(|refusal| inner.denied(refusal))
    }
}

impl Inner {
    fn denied(&self, refusal: Refusal) -> Denied {
        self.judge.backend().rejected(CLASS, refusal.at(Surface::Peer))
    }
}

/// Says nothing of who it is.
impl std::fmt::Debug for PeerId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Node(_) => "Node(..)",
            Self::Address(_) => "Address(..)",
        })
    }
}
