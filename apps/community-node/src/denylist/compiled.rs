//! The list, compiled for lookups: one for each length of prefix in it.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use headgate_service_config::Denylist;
use tracing::warn;

use super::Subject;

/// Time at which an entry expires, in seconds since the Unix epoch.
type End = u64;

/// The list, compiled for lookups.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    /// `None` if the list was never read.
    pub(super) revision: Option<i64>,
    /// Networks by the number of low bits to ignore.
    v4: BTreeMap<u32, HashMap<u32, End>>,
    v6: BTreeMap<u32, HashMap<u128, End>>,
    keys: HashMap<String, End>,
}

// === impl Compiled ===

impl Compiled {
    pub(super) fn new(list: &Denylist) -> Self {
        let mut compiled = Self { revision: Some(list.revision), ..Self::default() };
        for entry in &list.entries {
            let end = entry.expires_at.map_or(End::MAX, |end| end.as_micros().div_ceil(1_000_000));
            if let Ok(subject) = entry.subject.parse() {
                compiled.add(subject, end);
            } else {
                // Not written by the admin API. It is not logged: it may be an address or a key.
                warn!("ignoring a denylist entry with an invalid subject");
            }
        }
        compiled
    }

    fn add(&mut self, subject: Subject, end: End) {
        match subject {
            Subject::Key(key) => drop(self.keys.insert(key, end)),
            Subject::Network(range) => {
                let prefix = u32::from(range.prefix());
                match range.network() {
                    IpAddr::V4(v4) => {
                        self.v4.entry(32 - prefix).or_default().insert(v4.to_bits(), end);
                    }
                    IpAddr::V6(v6) => {
                        self.v6.entry(128 - prefix).or_default().insert(v6.to_bits(), end);
                    }
                }
            }
        }
    }

    pub(super) fn denies_address(&self, address: IpAddr, now: u64) -> bool {
        let lasts = |end: Option<&End>| end.is_some_and(|end| now < *end);
        match address.to_canonical() {
            IpAddr::V4(v4) => self.v4.iter().any(|(host_bits, networks)| {
                let mask = u32::MAX.checked_shl(*host_bits).unwrap_or(0);
                lasts(networks.get(&(v4.to_bits() & mask)))
            }),
            IpAddr::V6(v6) => self.v6.iter().any(|(host_bits, networks)| {
                let mask = u128::MAX.checked_shl(*host_bits).unwrap_or(0);
                lasts(networks.get(&(v6.to_bits() & mask)))
            }),
        }
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(super) fn denies_key(&self, key: &str, now: u64) -> bool {
        self.keys.get(key).is_some_and(|end| now < *end)
    }
}

#[cfg(test)]
mod tests {
    use headgate::Timestamp;
    use headgate_service_config::DenyEntry;

    use super::*;

    fn list(entries: &[(&str, Option<u64>)]) -> Compiled {
        let entry = |(subject, end): &(&str, Option<u64>)| DenyEntry {
            subject: (*subject).to_owned(),
            reason: String::new(),
            expires_at: end.map(|end| Timestamp::from_micros(end * 1_000_000)),
            created_at: Timestamp::from_micros(0),
            created_by: String::new(),
        };
        let entries = entries.iter().map(entry).collect();
        Compiled::new(&Denylist { revision: 1, entries })
    }

    #[test]
    fn networks_of_all_sizes_deny_what_is_in_them() {
        let cases = [
            ("203.0.113.0/24", "203.0.113.255", "203.0.114.0"),
            ("203.0.113.7", "::ffff:203.0.113.7", "203.0.113.8"),
            ("0.0.0.0/0", "255.1.2.3", "::1"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::2"),
        ];
        for (network, within, without) in cases {
            // Another entry changes nothing.
            let list = list(&[("198.51.100.0/30", None), (network, None)]);
            assert!(list.denies_address(within.parse().unwrap(), 0), "{network} {within}");
            assert!(!list.denies_address(without.parse().unwrap(), 0), "{network} {without}");
        }
    }

    #[test]
    fn an_entry_ends_when_it_says() {
        let key = "ab".repeat(32);
        let list = list(&[("203.0.113.7", Some(100)), (&key, Some(100)), ("nonsense", None)]);
        let address = "203.0.113.7".parse().unwrap();
        assert!(list.denies_address(address, 99) && list.denies_key(&key, 99));
        assert!(!list.denies_address(address, 100) && !list.denies_key(&key, 100));
        assert!(!list.denies_key("nonsense", 0));
    }
}
