//! Slots of connections that peers open.

use std::{net::IpAddr, sync::Arc};

use headgate_guard::{AddressKey, Busy, InFlight, InFlightLimits, Ipv6Prefix, Permit};
use iroh::EndpointId;

/// Maximum number of connections of one peer.
const BY_PEER: u32 = 4;

/// Maximum number of connections from one address. It has as many ids as it likes.
const BY_ADDRESS: u32 = 16;

/// Maximum number of connections of all peers that are not configured.
const OTHERS: u32 = 256;

/// Counts the connections that peers opened. Configured peers have slots of their own, which
/// others cannot take.
#[derive(Debug)]
pub(super) struct Slots {
    configured: Arc<InFlight>,
    others: Arc<InFlight>,
    by_address: Arc<InFlight>,
    ipv6: Ipv6Prefix,
}

/// Slots of one connection, released on drop.
#[derive(Debug)]
pub(super) struct Slot {
    _peer: Permit,
    /// `None` for configured peers, which may share an address.
    _address: Option<Permit>,
}

// === impl Slots ===

impl Slots {
    /// Counts IPv6 addresses by networks of this length.
    pub(super) fn new(ipv6: Ipv6Prefix) -> Self {
        let [configured, others, by_address] = [(); 3].map(|()| InFlight::new());
        Self { configured, others, by_address, ipv6 }
    }

    /// Takes a slot for a configured peer.
    pub(super) fn of_configured(&self, peer: EndpointId) -> Result<Slot, Busy> {
        // The total is bounded by the number of configured peers.
        let permit = self.configured.acquire(peer, InFlightLimits::new(BY_PEER, u32::MAX))?;
        Ok(Slot { _peer: permit, _address: None })
    }

    /// Takes a slot for another peer. Those without an address are counted together.
    pub(super) fn of_other(&self, peer: EndpointId, address: Option<IpAddr>) -> Result<Slot, Busy> {
        let network = address.map(|address| AddressKey::grouped("", address, self.ipv6));
        let network = network.as_ref().map_or("", AddressKey::as_str);
        let limits = InFlightLimits::new(BY_ADDRESS, u32::MAX);
        let address = self.by_address.acquire(network, limits)?;
        let permit = self.others.acquire(peer, InFlightLimits::new(BY_PEER, OTHERS))?;
        Ok(Slot { _peer: permit, _address: Some(address) })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use iroh::SecretKey;

    use super::*;

    fn peer(n: u32) -> EndpointId {
        let mut secret = [7; 32];
        secret[..4].copy_from_slice(&n.to_be_bytes());
        SecretKey::from_bytes(&secret).public()
    }

    #[test]
    fn an_address_has_few_slots_however_many_ids_it_uses() {
        let slots = Slots::new(Ipv6Prefix::default());
        let (v4, v6) = (Ipv4Addr::new(192, 0, 2, 1), "2001:db8::1".parse::<Ipv6Addr>().unwrap());
        for address in [IpAddr::from(v4), v6.into()] {
            let held: Vec<_> =
                (0..BY_ADDRESS).map(|n| slots.of_other(peer(n), Some(address)).unwrap()).collect();
            let refused = slots.of_other(peer(BY_ADDRESS), Some(address));
            assert_eq!(refused.unwrap_err(), Busy::PerKey(BY_ADDRESS));
            drop(held);
            assert!(slots.of_other(peer(BY_ADDRESS), Some(address)).is_ok());
        }
        let neighbours = (0..BY_ADDRESS).map(|n| Ipv6Addr::from_bits(v6.to_bits() + u128::from(n)));
        let held: Vec<_> =
            neighbours.map(|address| slots.of_other(peer(0), Some(address.into()))).collect();
        assert_eq!(held.iter().filter(|slot| slot.is_ok()).count(), BY_PEER as usize);
    }

    #[test]
    fn configured_peers_have_slots_when_all_others_are_taken() {
        let slots = Slots::new(Ipv6Prefix::default());
        let address = |n: u32| Some(Ipv4Addr::from_bits(n / BY_ADDRESS).into());
        let held: Vec<_> =
            (0..OTHERS).map(|n| slots.of_other(peer(n), address(n)).unwrap()).collect();
        let refused = slots.of_other(peer(OTHERS), address(OTHERS));
        assert_eq!(refused.unwrap_err(), Busy::Total(OTHERS));
        let ours: Vec<_> =
            (0..BY_PEER).map(|_| slots.of_configured(peer(OTHERS)).unwrap()).collect();
        assert!(slots.of_configured(peer(OTHERS)).is_err());
        drop((held, ours));
        assert_eq!(slots.by_address.total() + slots.others.total(), 0);
    }
}
