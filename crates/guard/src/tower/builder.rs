//! Construction of a guard.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use arc_swap::ArcSwap;
use http::Extensions;

use super::{
    Guard, Policy, PolicyError, Routes, UnknownPeers,
    compiled::{CompiledPolicy, InFlightCounts},
    in_flight::Keeper,
    peer::FindPeer,
    shared::Shared,
    unknown_peer::UnknownPeerLog,
};
use crate::{Backend, TrustedProxies, decider::Decider};

/// Builder of a [`Guard`].
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
///     .headers_when_admitted(true)
///     .build()?;
/// # drop(guard);
/// # Ok(())
/// # }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct GuardBuilder {
    policy: Policy,
    routes: Routes,
    backend: Option<Backend>,
    proxies: TrustedProxies,
    peer: FindPeer,
    unknown_peers: UnknownPeers,
    headers_when_admitted: bool,
}

impl GuardBuilder {
    pub(super) fn new(policy: Policy, routes: Routes) -> Self {
        Self {
            policy,
            routes,
            backend: None,
            proxies: TrustedProxies::default(),
            peer: FindPeer::Default,
            unknown_peers: UnknownPeers::default(),
            headers_when_admitted: false,
        }
    }

    /// Sets the backend that counts requests. Default: [in memory](Backend::memory).
    pub fn backend(self, backend: Backend) -> Self {
        Self { backend: Some(backend), ..self }
    }

    /// Sets the proxies whose forwarding headers are trusted. Default: none.
    pub fn trusted_proxies(self, proxies: TrustedProxies) -> Self {
        Self { proxies, ..self }
    }

    /// Sets a function that finds the peer address of a connection. Default: axum's
    /// `ConnectInfo<SocketAddr>`, or else [`PeerAddress`](crate::PeerAddress).
    pub fn peer<F>(self, peer: F) -> Self
    where
        F: Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    {
        Self { peer: FindPeer::By(Box::new(peer)), ..self }
    }

    /// Sets the treatment of requests without a peer address. Default:
    /// [refuse](UnknownPeers::Refuse).
    pub fn unknown_peers(self, unknown_peers: UnknownPeers) -> Self {
        Self { unknown_peers, ..self }
    }

    /// Adds limit headers to responses to admitted requests, too. They cost a few allocations.
    /// Default: no.
    pub fn headers_when_admitted(self, headers_when_admitted: bool) -> Self {
        Self { headers_when_admitted, ..self }
    }

    /// Builds the guard.
    ///
    /// # Errors
    ///
    /// If the routes name a class that the policy does not have, or a path that does not begin with
    /// a slash.
    pub fn build(self) -> Result<Guard, PolicyError> {
        let decider = Decider::new(self.backend.unwrap_or_default());
        let mut in_flight = InFlightCounts::new();
        let policy =
            CompiledPolicy::compile(self.policy, &self.routes, decider.backend(), &mut in_flight)?;
        Ok(Guard(Arc::new(Shared {
            keeper: Arc::new(Keeper::new(decider.backend())),
            decider,
            proxies: self.proxies,
            peer: self.peer,
            unknown_peers: self.unknown_peers,
            unknown_peer_log: UnknownPeerLog::default(),
            routes: self.routes,
            headers_when_admitted: self.headers_when_admitted,
            policy: ArcSwap::from_pointee(policy),
            generation: AtomicU64::new(0),
            in_flight: Mutex::new(in_flight),
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
