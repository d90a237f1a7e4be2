//! The quotas that newcomers share.

use std::{
    hash::{BuildHasher as _, RandomState},
    net::IpAddr,
};

use headgate_guard::{AddressKey, Ipv6Prefix};

/// Distributes newcomers over the quotas that they share, by network: keys are free, so that a flood
/// of them would use up a single one for all.
#[derive(Debug)]
pub(super) struct SharedQuotas {
    /// Unpredictable, so that a client cannot choose which newcomers it shares with.
    secret: RandomState,
    count: u64,
    ipv6: Ipv6Prefix,
}

/// Maximum number of shared quotas of a metric.
const MAX: usize = 1_024;

/// There is one for this many quotas of single keys.
const QUOTAS_PER_SHARED: usize = 16;

/// Bits of an IPv6 address that one network has: a provider assigns no more to a customer.
const IPV6_BITS: u8 = 48;

// === impl SharedQuotas ===

impl SharedQuotas {
    /// Shared quotas beside at most `max_policies`.
    pub(super) fn beside(max_policies: usize) -> Self {
        let count = (max_policies / QUOTAS_PER_SHARED).clamp(1, MAX) as u64;
        let ipv6 = Ipv6Prefix::new(IPV6_BITS).unwrap_or_default();
        Self { secret: RandomState::new(), count, ipv6 }
    }

    /// Number of the quota that the network of `address` shares.
    pub(super) fn of(&self, address: Option<IpAddr>) -> u64 {
        let network = address.map(|address| AddressKey::grouped("", address, self.ipv6));
        self.secret.hash_one(network.as_deref()) % self.count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn networks_are_spread_over_a_bounded_number_of_quotas() {
        let v4 = |n: u32| Some(IpAddr::from(n.to_be_bytes()));
        for (max_policies, count) in [(1, 1), (31, 1), (160, 10), (100_000, 1_024)] {
            let shared = SharedQuotas::beside(max_policies);
            let seen: HashSet<u64> = (0..50_000).map(|n| shared.of(v4(n))).collect();
            assert_eq!(seen.len(), count, "{max_policies}");
        }
    }

    #[test]
    fn a_network_has_one_of_them() {
        let shared = SharedQuotas::beside(100_000);
        let of = |address: &str| shared.of(Some(address.parse().unwrap()));
        for n in 0..100 {
            assert_eq!(of(&format!("2001:db8:1:{n:x}::{n:x}")), of("2001:db8:1::"));
        }
        assert_eq!(shared.of(None), shared.of(None));
    }
}
