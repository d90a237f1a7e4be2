//! A range of addresses.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use thiserror::Error;

/// A range of addresses: a network and the length of its prefix, `10.0.0.0/8`.
///
/// A single address is a range of one. IPv4-mapped IPv6 addresses count as IPv4, both in the range
/// and in the addresses that are compared with it: `::ffff:10.0.0.0/104` is `10.0.0.0/8`. For the
/// same reason `::/0` contains no IPv4 address; all addresses are `0.0.0.0/0` and `::/0`.
///
/// ```
/// use headgate_guard::Cidr;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let range: Cidr = "10.0.0.0/8".parse()?;
/// assert!(range.contains("10.1.2.3".parse()?));
/// assert!(range.contains("::ffff:10.1.2.3".parse()?));
///
/// let error = "10.1.2.3/8".parse::<Cidr>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "10.1.2.3/8 names an address within a range: write 10.0.0.0/8 for the range, 10.1.2.3/32 for the address",
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cidr {
    // First, so that ranges sort by their first address.
    network: IpAddr,
    prefix: u8,
}

/// Invalid address range.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CidrError {
    /// Invalid address before the slash.
    #[error("{0:?} is not an IP address: write one as 192.0.2.1 or 2001:db8::1")]
    Address(Box<str>),
    /// Invalid prefix length after the slash.
    #[error("{prefix:?} is not a prefix length: write a number from 0 to {max}")]
    Prefix {
        /// The text after the slash.
        prefix: Box<str>,
        /// Longest prefix of this address family.
        max: u8,
    },
    /// The address has bits set after the prefix.
    #[error(
        "{address}/{prefix} names an address within a range: \
         write {meant} for the range, {one} for the address",
        one = Cidr::from(*address)
    )]
    HostBits {
        /// The address.
        address: IpAddr,
        /// The prefix length.
        prefix: u8,
        /// The range that contains the address.
        meant: Cidr,
    },
}

// === impl Cidr ===

impl Cidr {
    /// Returns `true` if `address` is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        cut(address.to_canonical(), self.prefix) == self.network
    }

    /// The first address of the range.
    pub const fn network(&self) -> IpAddr {
        self.network
    }

    /// Length of the prefix in bits.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }
}

impl From<IpAddr> for Cidr {
    fn from(address: IpAddr) -> Self {
        let network = address.to_canonical();
        Self { network, prefix: bits(network) }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let written: IpAddr = address.parse().map_err(|_| CidrError::Address(excerpt(address)))?;
        match prefix {
            Some(prefix) => within(written, prefix),
            None => Ok(written.into()),
        }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

fn within(written: IpAddr, prefix: &str) -> Result<Cidr, CidrError> {
    let max = bits(written);
    // `parse` accepts a sign.
    let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
    let length = prefix.parse::<u8>().ok().filter(|length| digits && *length <= max);
    let Some(length) = length else {
        return Err(CidrError::Prefix { prefix: excerpt(prefix), max });
    };
    let network = cut(written, length);
    let meant = match network.to_canonical() {
        // An IPv4-mapped network has a prefix of at least 96: a shorter one clears the mapping.
        v4 @ IpAddr::V4(_) if network.is_ipv6() => Cidr { network: v4, prefix: length - 96 },
        network => Cidr { network, prefix: length },
    };
    if network == written {
        Ok(meant)
    } else {
        Err(CidrError::HostBits { address: written, prefix: length, meant })
    }
}

/// Clears all bits after the prefix.
fn cut(address: IpAddr, prefix: u8) -> IpAddr {
    let prefix = u32::from(prefix);
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(prefix)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// The part of an invalid text that an error quotes.
fn excerpt(text: &str) -> Box<str> {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed_and_displayed() {
        let cases = [
            ("10.0.0.0/8", "10.0.0.0/8"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.1", "192.0.2.1/32"),
            (" 192.0.2.1/32 ", "192.0.2.1/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
        ];
        for (text, expected) in cases {
            let range = text.parse::<Cidr>().map(|range| range.to_string());
            assert_eq!(range.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write_instead() {
        let cases = [
            ("", r#""" is not an IP address: write one as 192.0.2.1 or 2001:db8::1"#),
            ("/8", r#""" is not an IP address: write one as 192.0.2.1 or 2001:db8::1"#),
            (
                "proxy.local",
                r#""proxy.local" is not an IP address: write one as 192.0.2.1 or 2001:db8::1"#,
            ),
            ("10.0.0.0/", r#""" is not a prefix length: write a number from 0 to 32"#),
            ("10.0.0.0/33", r#""33" is not a prefix length: write a number from 0 to 32"#),
            ("10.0.0.0/+8", r#""+8" is not a prefix length: write a number from 0 to 32"#),
            ("10.0.0.0/8/8", r#""8/8" is not a prefix length: write a number from 0 to 32"#),
            ("::/129", r#""129" is not a prefix length: write a number from 0 to 128"#),
            (
                "10.0.0.1/8",
                "10.0.0.1/8 names an address within a range: write 10.0.0.0/8 for the range, 10.0.0.1/32 for the address",
            ),
            (
                "2001:db8::1/32",
                "2001:db8::1/32 names an address within a range: write 2001:db8::/32 for the range, 2001:db8::1/128 for the address",
            ),
            (
                "::ffff:10.0.0.1/104",
                "::ffff:10.0.0.1/104 names an address within a range: write 10.0.0.0/8 for the range, 10.0.0.1/32 for the address",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Cidr>().unwrap_err().to_string(), expected, "{text}");
        }
        let long = "x".repeat(100_000).parse::<Cidr>().unwrap_err().to_string();
        assert!(long.len() < 200, "{} bytes of error", long.len());
    }

    #[test]
    fn a_range_contains_the_addresses_with_its_prefix() {
        let cases = [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "9.255.255.255", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("::ffff:10.0.0.0/104", "10.1.2.3", true),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.0", false),
            ("0.0.0.0/0", "255.255.255.255", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "10.0.0.1", false),
            ("::/0", "::ffff:10.0.0.1", false),
            ("2001:db8::/33", "2001:db8:7fff::", true),
            ("2001:db8::/33", "2001:db8:8000::", false),
            // Equal bits, but another address family.
            ("::/8", "0.0.0.0", false),
        ];
        for (range, address, expected) in cases {
            let range: Cidr = range.parse().unwrap();
            assert_eq!(range.contains(address.parse().unwrap()), expected, "{range} {address}");
        }
    }
}
