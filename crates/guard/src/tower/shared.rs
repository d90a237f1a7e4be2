//! State that all middleware of one guard shares, and its decisions.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{Arc, Mutex, atomic::AtomicU64},
};

use arc_swap::ArcSwap;
use headgate::{Key, KeySpace};
use http::Request;

use super::{
    KeyExtractor, MissingKey, RequestHead, RequestKey, Routes, UnknownPeers,
    compiled::{CompiledClass, CompiledPolicy, InFlightCounts},
    in_flight::Keeper,
    peer::FindPeer,
    unknown_peer::UnknownPeerLog,
};
use crate::{
    Denied, Reason, Surface, TrustedProxies,
    backend::UNKNOWN_WAIT,
    decider::{CheckResult, Decider, Rejection},
};

/// State shared by all middleware of one guard.
pub(crate) struct Shared {
    pub(super) decider: Decider,
    pub(super) proxies: TrustedProxies,
    pub(super) peer: FindPeer,
    pub(super) unknown_peers: UnknownPeers,
    pub(super) unknown_peer_log: UnknownPeerLog,
    pub(super) routes: Routes,
    pub(super) headers_when_admitted: bool,
    pub(super) policy: ArcSwap<CompiledPolicy>,
    /// Incremented after each replacement of the policy.
    pub(super) generation: AtomicU64,
    pub(super) in_flight: Mutex<InFlightCounts>,
    pub(super) keeper: Arc<Keeper>,
}

/// Client address of all requests whose peer address is unknown.
pub(super) const UNKNOWN_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

// === impl Shared ===

impl Shared {
    #[inline]
    pub(super) fn client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        let peer = self.peer.find(request.extensions())?;
        Some(self.proxies.client(peer, request.headers()))
    }

    /// The address that `request` is counted by; `None` if the request has to be refused because
    /// its peer address is unknown.
    #[inline]
    pub(super) fn counted_client<B>(&self, request: &Request<B>) -> Option<IpAddr> {
        self.client(request).or_else(|| self.unknown_client())
    }

    #[cold]
    fn unknown_client(&self) -> Option<IpAddr> {
        if self.unknown_peers == UnknownPeers::Refuse {
            return None;
        }
        self.decider.backend().unidentified();
        Some(UNKNOWN_ADDRESS)
    }

    /// Rejects a request whose peer address is unknown, and logs how to fix that.
    #[cold]
    pub(super) fn reject_unknown_peer(&self) -> Rejection {
        self.decider.backend().unidentified();
        self.unknown_peer_log.write();
        Rejection::new(Reason::UnknownPeer, UNKNOWN_WAIT)
    }

    /// The key of `request`, or its replacement if it is missing.
    pub(super) fn key<B>(
        &self,
        extractor: &KeyExtractor,
        missing: MissingKey,
        request: &Request<B>,
    ) -> Result<RequestKey, Rejection> {
        let backend = self.decider.backend();
        let client = || Some(backend.address_key("", self.counted_client(request)?));
        let key = extractor.extract_with(&RequestHead::of(request), client);
        match (key, missing) {
            (Some(key), _) => Ok(key),
            (None, MissingKey::Share) => Ok(RequestKey::shared()),
            (None, MissingKey::Refuse) => Err(Rejection::new(Reason::MissingKey, UNKNOWN_WAIT)),
            (None, MissingKey::UseAddress) => client()
                .map(|client| RequestKey::address_instead(&client))
                .ok_or_else(|| self.reject_unknown_peer()),
        }
    }

    /// Decides by address, if the answer is available without waiting.
    pub(super) fn before_auth_now(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        address: IpAddr,
    ) -> Option<CheckResult> {
        let Some(counted) = &class.by_address else {
            return Some(Ok(None));
        };
        self.decider.decide_address_now(&counted.check_address(&address), policy.escalation())
    }

    pub(super) async fn before_auth(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        address: IpAddr,
    ) -> CheckResult {
        let Some(counted) = &class.by_address else {
            return Ok(None);
        };
        self.decider.decide_address(&counted.check_address(&address), policy.escalation()).await
    }

    /// Decides by subject and address, if the answer is available without waiting.
    pub(super) fn after_auth_now(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        address: IpAddr,
        subject: Option<&str>,
    ) -> Option<CheckResult> {
        let (text, space) = class.keys_after_auth(address);
        match class.checks_after_auth(&text, &space, subject) {
            Ok(checks) => self.decider.decide_now(&checks, policy.escalation()),
            Err(rejection) => Some(Err(rejection)),
        }
    }

    pub(super) async fn after_auth(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        address: IpAddr,
        subject: Option<&str>,
    ) -> CheckResult {
        let (text, space) = class.keys_after_auth(address);
        let checks = class.checks_after_auth(&text, &space, subject)?;
        self.decider.decide(&checks, policy.escalation()).await
    }

    /// Decides by key, if the answer is available without waiting.
    pub(super) fn by_key_now(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        key: &RequestKey,
    ) -> Option<CheckResult> {
        let (Some(counted), Ok(key)) = (&class.by_key, Key::new(key.as_str())) else {
            return Some(Ok(None));
        };
        let space = KeySpace::new(counted.prefix(), "");
        let check = counted.check(key.within(&space), Reason::Key);
        self.decider.decide_now(&[check], policy.escalation())
    }

    pub(super) async fn by_key(
        &self,
        policy: &CompiledPolicy,
        class: &CompiledClass,
        key: &RequestKey,
    ) -> CheckResult {
        let (Some(counted), Ok(key)) = (&class.by_key, Key::new(key.as_str())) else {
            return Ok(None);
        };
        let space = KeySpace::new(counted.prefix(), "");
        let check = counted.check(key.within(&space), Reason::Key);
        self.decider.decide(&[check], policy.escalation()).await
    }

    pub(super) fn denied(
        &self,
        surface: Surface,
        class: &CompiledClass,
        rejection: Rejection,
    ) -> Denied {
        self.decider.backend().rejected(class.name(), rejection.at(surface))
    }
}
