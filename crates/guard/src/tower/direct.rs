//! The simplest policy: all requests are one class, counted in memory by the peer's address.

use std::sync::Arc;

use headgate_store_memory::MemoryStore;
use http::Extensions;

use super::{
    compiled::{CompiledPolicy, CountedAllowance},
    peer,
    shared::Shared,
};
use crate::decider::{FastLimit, FastResult};

/// The limit of every request, if it depends on nothing but the peer's address.
///
/// It is found in advance, and no reference to the request is passed to code that is not inlined,
/// so that the compiler moves the request into the inner service without a copy. That saves a third
/// of the instructions that the middleware adds to a request.
pub(super) struct DirectLimit {
    memory: Arc<MemoryStore>,
    counted: CountedAllowance,
}

impl DirectLimit {
    /// Returns `None` if requests have to be looked at more closely.
    pub(super) fn of(shared: &Shared, policy: &CompiledPolicy) -> Option<Self> {
        let needs_request = shared.headers_when_admitted
            || !shared.proxies.is_empty()
            || !shared.peer.is_default()
            || policy.escalation().is_some();
        let counted = policy.only_class()?.by_address.clone().filter(|_| !needs_request)?;
        counted.allowance().limit()?;
        let memory = Arc::clone(shared.decider.backend().memory_store()?);
        Some(Self { memory, counted })
    }

    /// Counts a request with these extensions.
    #[inline]
    pub(super) fn acquire(&self, extensions: &Extensions) -> FastResult {
        match (peer::default(extensions), self.counted.allowance().limit()) {
            (Some(peer), Some(limit)) => {
                let limit = FastLimit { memory: &self.memory, limit };
                limit.acquire(&self.counted.check_address(&peer))
            }
            _ => FastResult::Undecided,
        }
    }
}
