//! The text by which an address is counted.

use std::{
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv6Addr},
    ops::Deref,
};

/// The text by which an address is counted.
///
/// IPv4 counts by the address. IPv6 counts by the network of 64 bits, because whoever
/// has one address there has all of them. An IPv4 address in IPv6 clothes is an IPv4
/// address. The text is kept in place: making it allocates nothing.
///
/// ```
/// use headgate_guard::AddressKey;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// assert_eq!(&*AddressKey::of("192.0.2.1".parse()?), "192.0.2.1");
/// assert_eq!(&*AddressKey::of("::ffff:192.0.2.1".parse()?), "192.0.2.1");
/// assert_eq!(&*AddressKey::of("2001:db8:1:2:3:4:5:6".parse()?), "2001:db8:1:2::/64");
/// assert_eq!(&*AddressKey::with_prefix("ip:", "192.0.2.1".parse()?), "ip:192.0.2.1");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct AddressKey {
    bytes: [u8; Self::MAX_BYTES],
    len: u8,
}

// === impl AddressKey ===

impl AddressKey {
    /// The longest prefix, in bytes.
    pub const MAX_PREFIX_BYTES: usize = 39;

    // Beside the prefix the longest network, `1111:2222:3333:4444::/64`.
    const MAX_BYTES: usize = Self::MAX_PREFIX_BYTES + 24;

    /// The key of `address`.
    pub fn of(address: IpAddr) -> Self {
        Self::with_prefix("", address)
    }

    /// The key of `address` after a word of the program's own, such as `ip:`.
    ///
    /// # Panics
    ///
    /// If the prefix is longer than [`MAX_PREFIX_BYTES`](Self::MAX_PREFIX_BYTES).
    #[track_caller]
    pub fn with_prefix(prefix: &str, address: IpAddr) -> Self {
        assert!(
            prefix.len() <= Self::MAX_PREFIX_BYTES,
            "a key's prefix must be at most {} bytes, got {}",
            Self::MAX_PREFIX_BYTES,
            prefix.len()
        );
        let mut key = Self { bytes: [0; Self::MAX_BYTES], len: 0 };
        let written = match address.to_canonical() {
            IpAddr::V4(v4) => write!(key, "{prefix}{v4}"),
            IpAddr::V6(v6) => write!(key, "{prefix}{}/64", network(v6)),
        };
        debug_assert!(written.is_ok(), "the buffer holds every address");
        key
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Only whole texts were written.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
}

impl fmt::Write for AddressKey {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let start = usize::from(self.len);
        let end = start + text.len();
        self.bytes.get_mut(start..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end as u8;
        Ok(())
    }
}

fn network(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))
}

impl Deref for AddressKey {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for AddressKey {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq for AddressKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for AddressKey {}

impl Hash for AddressKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_by_itself_or_by_its_network() {
        let cases = [
            ("192.0.2.1", "192.0.2.1"),
            ("255.255.255.255", "255.255.255.255"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::", "2001:db8:1:3::/64"),
            ("2001:db8::1", "2001:db8::/64"),
            ("2001:0:0:1::1", "2001:0:0:1::/64"),
            ("::1", "::/64"),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff::/64"),
        ];
        for (address, expected) in cases {
            assert_eq!(&*AddressKey::of(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn the_longest_prefix_fits_before_the_longest_network() {
        let prefix = "p".repeat(AddressKey::MAX_PREFIX_BYTES);
        let key = AddressKey::with_prefix(&prefix, "ffff:ffff:ffff:ffff::1".parse().unwrap());
        assert_eq!(key.to_string(), format!("{prefix}ffff:ffff:ffff:ffff::/64"));
    }

    #[test]
    #[should_panic(expected = "a key's prefix must be at most 39 bytes, got 40")]
    fn a_longer_prefix_is_refused() {
        let prefix = "p".repeat(AddressKey::MAX_PREFIX_BYTES + 1);
        AddressKey::with_prefix(&prefix, "::1".parse().unwrap());
    }
}
