//! Length of IPv6 networks that count as one client.

use std::{fmt, net::Ipv6Addr, num::ParseIntError, str::FromStr};

use thiserror::Error;

/// Length of the IPv6 networks that count as one client: 48 to 64 bits. Default: 64.
///
/// Providers assign a subscriber anything from a /64 to a /48. With a shorter prefix, a subscriber
/// with many networks still has one allowance; with a longer one, neighbours do not share theirs.
///
/// ```
/// use headgate_guard::{AddressKey, Ipv6Prefix};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address = "2001:db8:1:2::3".parse()?;
/// assert_eq!(&*AddressKey::grouped("", address, Ipv6Prefix::new(56)?), "2001:db8:1::/56");
/// assert!(Ipv6Prefix::new(128).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Prefix(u8);

/// Invalid length of an IPv6 prefix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ipv6PrefixError {
    /// Too short or too long.
    #[error("IPv6 prefix length must be from {min} to {max}, got {0}", min = Ipv6Prefix::MIN, max = Ipv6Prefix::MAX)]
    Range(u8),
    /// Not a number at all.
    #[error("IPv6 prefix length must be a number from {min} to {max}", min = Ipv6Prefix::MIN, max = Ipv6Prefix::MAX)]
    Number(#[from] ParseIntError),
}

impl Ipv6Prefix {
    /// Expected values, for error messages.
    pub const EXPECTED: &str = "a number of bits, 48 to 64";

    /// Shortest prefix.
    pub const MIN: u8 = 48;

    /// Longest prefix.
    pub const MAX: u8 = 64;

    /// A prefix of this many bits.
    pub const fn new(bits: u8) -> Result<Self, Ipv6PrefixError> {
        if bits < Self::MIN || bits > Self::MAX {
            return Err(Ipv6PrefixError::Range(bits));
        }
        Ok(Self(bits))
    }

    /// The length in bits.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The network of `address`: the upper half, masked.
    #[inline]
    pub(crate) const fn network(self, address: Ipv6Addr) -> u64 {
        (address.to_bits() >> 64) as u64 & (u64::MAX << (Self::MAX - self.0))
    }
}

impl Default for Ipv6Prefix {
    fn default() -> Self {
        Self(Self::MAX)
    }
}

impl TryFrom<u8> for Ipv6Prefix {
    type Error = Ipv6PrefixError;

    fn try_from(bits: u8) -> Result<Self, Self::Error> {
        Self::new(bits)
    }
}

impl FromStr for Ipv6Prefix {
    type Err = Ipv6PrefixError;

    /// Parses a number, with or without a leading slash.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text.strip_prefix('/').unwrap_or(text).parse()?)
    }
}

impl fmt::Display for Ipv6Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_from_48_to_64_are_valid() {
        for bits in 0..=u8::MAX {
            assert_eq!(Ipv6Prefix::new(bits).is_ok(), (48..=64).contains(&bits), "{bits}");
        }
        assert_eq!("/56".parse(), Ipv6Prefix::new(56));
        let error = "32".parse::<Ipv6Prefix>().unwrap_err().to_string();
        assert_eq!(error, "IPv6 prefix length must be from 48 to 64, got 32");
        assert!("many".parse::<Ipv6Prefix>().is_err());
    }

    #[test]
    fn bits_after_the_prefix_are_ignored() {
        let network =
            |bits| Ipv6Prefix::new(bits).unwrap().network("2001:db8:1:2ff::4".parse().unwrap());
        assert_eq!(network(64), 0x2001_0db8_0001_02ff);
        assert_eq!(network(56), 0x2001_0db8_0001_0200);
        assert_eq!(network(48), 0x2001_0db8_0001_0000);
    }
}
