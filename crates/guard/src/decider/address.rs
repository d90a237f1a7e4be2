//! Limits of addresses, which are counted by number in memory and by text elsewhere.

use std::net::{IpAddr, Ipv4Addr};

use headgate::{Cost, Key, Limit, Outcome};
use headgate_store_memory::{MemoryStore, NumericKey};

use super::{LimitCheck, Rejection};
use crate::{AddressKey, Allowance, Ipv6Prefix, Reason};

/// The limit of one address to check.
#[derive(Clone, Copy)]
pub(crate) struct AddressCheck<'a> {
    pub(crate) prefix: &'a str,
    /// Hash of the prefix, for the memory store.
    pub(crate) space: u64,
    pub(crate) address: &'a IpAddr,
    pub(crate) ipv6: Ipv6Prefix,
    pub(crate) allowance: &'a Allowance,
}

/// A limit that is counted in memory, without penalties.
pub(crate) struct FastLimit<'a> {
    pub(crate) memory: &'a MemoryStore,
    pub(crate) limit: &'a Limit,
}

/// Result of the fast path.
pub(crate) enum FastResult {
    Admitted,
    Denied(Box<Rejection>),
    /// The slow path has to decide.
    Undecided,
}

// === impl FastLimit ===

impl FastLimit<'_> {
    #[inline]
    pub(crate) fn acquire(&self, check: &AddressCheck<'_>) -> FastResult {
        match self.memory.admit_numeric(check.numeric_key(), self.limit, Cost::ONE) {
            Ok(None) => FastResult::Admitted,
            Ok(Some(outcome)) => FastResult::Denied(Box::new(check.rejection(outcome))),
            Err(_) => FastResult::Undecided,
        }
    }
}

// === impl AddressCheck ===

impl<'a> AddressCheck<'a> {
    pub(super) fn acquire(&self, memory: &MemoryStore, limit: &Limit) -> Option<Outcome> {
        memory.acquire_numeric(self.numeric_key(), limit, Cost::ONE).ok()
    }

    /// The address as a number: the whole of an IPv4 address, the network of an IPv6 address.
    #[inline]
    fn numeric_key(&self) -> NumericKey {
        let number_of_v4 = |v4: Ipv4Addr| u64::from(v4.to_bits());
        let (space, number) = match self.address {
            IpAddr::V4(v4) => (self.space, number_of_v4(*v4)),
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => (self.space, number_of_v4(v4)),
                None => (!self.space, self.ipv6.network(*v6)),
            },
        };
        NumericKey { space, number }
    }

    pub(super) fn text(&self) -> AddressKey {
        AddressKey::grouped(self.prefix, *self.address, self.ipv6)
    }

    pub(super) const fn with_key(&self, key: Key<'a>) -> LimitCheck<'a> {
        LimitCheck { key, allowance: self.allowance, reason: Reason::Address }
    }

    #[cold]
    fn rejection(&self, outcome: Outcome) -> Rejection {
        Rejection {
            reason: Reason::Address,
            retry_after: outcome.retry_after,
            decision: Some(outcome.into()),
            window_secs: self.allowance.window_secs(),
        }
    }
}
