//! Ranges of IP addresses.

use std::{net::IpAddr, str::FromStr};

/// A range of addresses in CIDR notation, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    v4: bool,
    /// The first address. IPv4 is in the upper bits.
    bits: u128,
    prefix: u8,
}

impl Network {
    /// The network of this prefix length that contains `address`.
    pub(crate) fn around(address: IpAddr, prefix: u8) -> Self {
        let (v4, bits, _) = bits(address.to_canonical());
        let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        Self { v4, bits: bits & mask, prefix }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        *self == Self::around(address, self.prefix)
    }

    /// Returns `true` if all addresses of `other` are in this network.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
        self.v4 == other.v4 && self.prefix <= other.prefix && self.bits == other.bits & mask
    }

    /// Returns the family and the prefix length as one number below 512.
    pub(crate) fn shape(&self) -> usize {
        usize::from(self.prefix) + if self.v4 { 256 } else { 0 }
    }

    /// The network of `shape` that contains `address`, if it is of the same family.
    pub(crate) fn of_shape(address: IpAddr, shape: usize) -> Option<Self> {
        let address = address.to_canonical();
        let prefix = u8::try_from(shape % 256).ok()?;
        (address.is_ipv4() == (shape >= 256)).then(|| Self::around(address, prefix))
    }

    /// Returns the first address, for index keys.
    pub(crate) const fn bytes(&self) -> [u8; 16] {
        self.bits.to_be_bytes()
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let parsed = address.parse::<IpAddr>().map_err(|_| {
            format!(
                "{text:?} is not a range of addresses; write one like 10.0.0.0/8 or 2001:db8::/32"
            )
        })?;
        let address = parsed.to_canonical();
        let (_, written, most) = bits(address);
        let Some(prefix) = prefix else { return Ok(Self::around(address, most)) };
        let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
        // A mapped address has 96 bits before those of IPv4.
        let mapped = if parsed == address { 0 } else { 96 };
        let length = prefix.parse::<u8>().ok().and_then(|length| length.checked_sub(mapped));
        let Some(length) = length.filter(|length| digits && *length <= most) else {
            return Err(format!("the prefix length of {text:?} must be from 0 to {most}"));
        };
        let network = Self::around(address, length);
        if network.bits == written {
            return Ok(network);
        }
        Err(format!(
            "{text:?} has bits after its prefix: leave the prefix length away for one address"
        ))
    }
}

/// Returns `true` for IPv4, the address as a number, and the number of its bits.
fn bits(address: IpAddr) -> (bool, u128, u8) {
    match address {
        IpAddr::V4(v4) => (true, u128::from(v4.to_bits()) << 96, 32),
        IpAddr::V6(v6) => (false, v6.to_bits(), 128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.1.2.3", "11.0.0.0"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.0.0.0"),
            ("0.0.0.0/0", "203.0.113.7", "2001:db8::1"),
            ("::/0", "2001:db8::1", "203.0.113.7"),
            ("2001:db8::/32", "2001:db8:1::1", "2001:db9::"),
            ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.0.0.0"),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_network() {
        for text in
            ["", "x", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.1/8", "::1/64", "10.0.0/8", "/8"]
        {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_covers_its_parts() {
        let network = |text: &str| text.parse::<Network>().unwrap();
        assert!(network("10.0.0.0/8").covers(&network("10.1.0.0/16")));
        assert!(!network("10.1.0.0/16").covers(&network("10.0.0.0/8")));
        assert!(!network("::/0").covers(&network("10.0.0.0/8")));
    }
}
