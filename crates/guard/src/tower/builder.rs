//! How a guard is made.

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use arc_swap::ArcSwap;
use http::Extensions;

use super::{
    Guard, Policy, PolicyError, Routes,
    guard::Live,
    peer::{FindPeer, usual},
    rules::{Open, Rules},
};
use crate::{Backend, TrustedProxies, judge::Judge};

/// Makes a [`Guard`].
#[must_use = "a builder does nothing until it is built"]
pub struct GuardBuilder {
    policy: Policy,
    routes: Routes,
    backend: Option<Backend>,
    proxies: TrustedProxies,
    peer: Box<FindPeer>,
    tell_admitted: bool,
}

impl GuardBuilder {
    pub(super) fn new(policy: Policy, routes: Routes) -> Self {
        Self {
            policy,
            routes,
            backend: None,
            proxies: TrustedProxies::default(),
            peer: Box::new(usual),
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
    ///
    /// All requests without a peer are counted together, as one client's.
    pub fn peer<F>(self, peer: F) -> Self
    where
        F: Fn(&Extensions) -> Option<IpAddr> + Send + Sync + 'static,
    {
        Self { peer: Box::new(peer), ..self }
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
