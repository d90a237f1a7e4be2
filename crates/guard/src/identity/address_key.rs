//! The text under which an address is counted.

use std::{
    fmt,
    hash::{Hash, Hasher},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    ops::Deref,
};

use super::Ipv6Prefix;

/// The text under which an address is counted.
///
/// IPv4 is counted by address. IPv6 is counted by network, of 64 bits or as an [`Ipv6Prefix`] says,
/// because a client can use any address of its network. An IPv4-mapped IPv6 address is an IPv4
/// address. The text is stored inline, without an allocation.
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

const HEX: &[u8; 16] = b"0123456789abcdef";

// === impl AddressKey ===

impl AddressKey {
    /// The longest prefix, in bytes.
    pub const MAX_PREFIX_BYTES: usize = 39;

    // The prefix, and the longest network: `1111:2222:3333:4444::/64`.
    const MAX_BYTES: usize = Self::MAX_PREFIX_BYTES + 24;

    /// The key of `address`.
    pub fn of(address: IpAddr) -> Self {
        Self::with_prefix("", address)
    }

    /// The key of `address` with a prefix, such as `ip:`.
    ///
    /// # Panics
    ///
    /// If the prefix is longer than [`MAX_PREFIX_BYTES`](Self::MAX_PREFIX_BYTES).
    #[track_caller]
    pub fn with_prefix(prefix: &str, address: IpAddr) -> Self {
        Self::grouped(prefix, address, Ipv6Prefix::default())
    }

    /// The key of `address` with a prefix, by IPv6 networks of another length.
    ///
    /// # Panics
    ///
    /// If the prefix is longer than [`MAX_PREFIX_BYTES`](Self::MAX_PREFIX_BYTES).
    #[track_caller]
    pub fn grouped(prefix: &str, address: IpAddr, ipv6: Ipv6Prefix) -> Self {
        assert!(
            prefix.len() <= Self::MAX_PREFIX_BYTES,
            "key prefix must be at most {} bytes, got {}",
            Self::MAX_PREFIX_BYTES,
            prefix.len()
        );
        let mut key = Self { bytes: [0; Self::MAX_BYTES], len: prefix.len() as u8 };
        key.bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        match address.to_canonical() {
            IpAddr::V4(v4) => key.push_v4(v4),
            IpAddr::V6(v6) => key.push_network(v6, ipv6),
        }
        key
    }

    // Formatted by hand: `fmt` takes longer than the decision itself.

    fn push_v4(&mut self, address: Ipv4Addr) {
        for (i, octet) in address.octets().into_iter().enumerate() {
            if i > 0 {
                self.push(b'.');
            }
            if octet >= 100 {
                self.push(b'0' + octet / 100);
            }
            if octet >= 10 {
                self.push(b'0' + octet / 10 % 10);
            }
            self.push(b'0' + octet % 10);
        }
    }

    /// The network of at most 64 bits. Its last four groups are zero, so the run of zeros that is
    /// abbreviated to `::` is always the last one.
    fn push_network(&mut self, address: Ipv6Addr, prefix: Ipv6Prefix) {
        let network = Ipv6Addr::from_bits(u128::from(prefix.network(address)) << 64);
        let groups = &network.segments()[..4];
        let significant = groups.iter().rposition(|group| *group != 0).map_or(0, |last| last + 1);
        for (i, group) in groups[..significant].iter().enumerate() {
            if i > 0 {
                self.push(b':');
            }
            let digits = (16 - group.leading_zeros()).div_ceil(4).max(1);
            for digit in (0..digits).rev() {
                self.push(HEX[usize::from(group >> (4 * digit) & 0xf)]);
            }
        }
        for byte in [b':', b':', b'/', b'0' + prefix.get() / 10, b'0' + prefix.get() % 10] {
            self.push(byte);
        }
    }

    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.len)] = byte;
        self.len += 1;
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // Only ASCII was written.
        str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }
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

/// Omits the address: debug output ends up in logs.
impl fmt::Debug for AddressKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddressKey").finish_non_exhaustive()
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
    fn keys_match_the_formatting_of_std() {
        for i in 0..=u16::MAX {
            let v4 = Ipv4Addr::from((u32::from(i) * 65_537) ^ 0x0a0b_0c0d);
            assert_eq!(AddressKey::of(v4.into()).as_str(), v4.to_string());
            let groups = [i, i.rotate_left(5) & 0xff, u16::from(i % 3 == 0), i % 2 * i];
            let [a, b, c, d] = groups;
            let network = Ipv6Addr::new(a | 0x2000, b, c, d, 0, 0, 0, 0);
            let host = Ipv6Addr::new(a | 0x2000, b, c, d, 7, i, 7, i);
            assert_eq!(AddressKey::of(host.into()).as_str(), format!("{network}/64"));
        }
    }

    #[test]
    fn a_shorter_network_counts_as_one() {
        let cases = [
            (48, "2001:db8:1:2ff::4", "2001:db8:1::/48"),
            (56, "2001:db8:1:2ff::4", "2001:db8:1:200::/56"),
            (60, "2001:db8:1:2ff::4", "2001:db8:1:2f0::/60"),
            (48, "::1", "::/48"),
            (48, "::ffff:192.0.2.1", "192.0.2.1"),
        ];
        for (bits, address, expected) in cases {
            let prefix = Ipv6Prefix::new(bits).unwrap();
            let key = AddressKey::grouped("", address.parse().unwrap(), prefix);
            assert_eq!(&*key, expected, "{address} by {bits}");
        }
    }

    #[test]
    fn the_longest_prefix_fits_before_the_longest_network() {
        let prefix = "p".repeat(AddressKey::MAX_PREFIX_BYTES);
        let key = AddressKey::with_prefix(&prefix, "ffff:ffff:ffff:ffff::1".parse().unwrap());
        assert_eq!(key.to_string(), format!("{prefix}ffff:ffff:ffff:ffff::/64"));
    }

    #[test]
    #[should_panic(expected = "key prefix must be at most 39 bytes, got 40")]
    fn a_longer_prefix_panics() {
        let prefix = "p".repeat(AddressKey::MAX_PREFIX_BYTES + 1);
        AddressKey::with_prefix(&prefix, "::1".parse().unwrap());
    }
}
