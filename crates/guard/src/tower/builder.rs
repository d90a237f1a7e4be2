//! How a guard is made.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use arc_swap::ArcSwap;
use http::Extensions;

use super::{
    Guard, Policy, PolicyError, Routes, UnknownPeers,
    guard::Live,
    peer::FindPeer,
    rules::{Open, Rules},
    unknown_peer::Complaint,
};
use crate::{Backend, TrustedProxies, judge::Judge};

/// Makes a [`Guard`].
///
/// ```
/// use headgate_guard::{
///     Allowance, Backend, Cidr, Class, Guard, Policy, Routes, TrustedProxies, UnknownPeers,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let public = Class::new("public")?.by_address(Allowance::per_minute(120)?);
/// let guard = Guard::builder(Policy::new([public])?, Routes::all("public"))
///     .backend(Backend::memory().namespace("shop")?)
///     .trusted_proxies(TrustedProxies::from_iter(["10.0.0.0/8".parse::<Cidr>()?]))
///     .unknown_peers(UnknownPeers::CountTogether)
///     .tell_admitted(true)
///     .build()?;
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct GuardBuilder {
    policy: Policy,
    routes: Routes,
    backend: Option<Backend>,
    proxies: TrustedProxies,
    peer: FindPeer,
    unknown_peers: UnknownPeers,
    tell_admitted: bool,
}

impl GuardBuilder {
    pub(super) fn new(policy: Policy, routes: Routes) -> Self {
        Self {
            policy,
            routes,
            backend: None,
            proxies: TrustedProxies::default(),
            peer: FindPeer::Usual,
            unknown_peers: UnknownPeers::default(),
            tell_admitted: false,
        }
    }

    /// Where it counts; [in memory](Backend::memory) unless said.
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend: Some(backend), ..self }
    }

    /// The proxies whose word about their clients is believed; nobody's unless said.
    pub fn trusted_proxies(self, proxies: TrustedProxies) -> Self {
        Self { proxies, ..self }
    }

    /// How the peer of a connection is found; unless said, axum's `ConnectInfo<SocketAddr>` or
    /// [`PeerAddress`](crate::PeerAddress).
    pub fn peer<F>(self, peer: F) -> Self
    where
        F: Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    {
        Self { peer: FindPeer::By(Box::new(peer)), ..self }
    }

    /// What becomes of requests without a peer; [refused](UnknownPeers::Refuse) unless said.
    pub fn unknown_peers(self, unknown_peers: UnknownPeers) -> Self {
        Self { unknown_peers, ..self }
    }

    /// Tells those who are admitted, too, what they have left. It costs a few allocations.
    pub fn tell_admitted(self, tell_admitted: bool) -> Self {
        Self { tell_admitted, ..self }
    }

    /// Makes the guard.
    pub fn build(self) -> Result<Guard, PolicyError> {
        let judge = Judge::new(self.backend.unwrap_or_default());
        let mut open = Open::new();
        let rules = Rules::compile(self.policy, &self.routes, judge.backend(), &mut open)?;
        Ok(Guard(Arc::new(Live {
            judge,
            proxies: self.proxies,
            peer: self.peer,
            unknown_peers: self.unknown_peers,
            complaint: Complaint::default(),
            routes: self.routes,
            tell_admitted: self.tell_admitted,
            rules: ArcSwap::from_pointee(rules),
            generation: AtomicU64::new(0),
            open: Mutex::new(open),
        })))
    }
}

impl fmt::Debug for GuardBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardBuilder")
            .field("policy", &self.policy)
            .field("routes", &self.routes)
            .finish_non_exhaustive()
    }
}
