//! Addresses at which newer events of an author replace older ones (NIP-01).

use nostr::{event::Event, key::PublicKey};

use super::footprint;

/// An address that holds the newest event only: an author, a kind and, for addressable events, a
/// name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    kind: u16,
    pub(crate) author: PublicKey,
    /// The event's first `d` tag; empty for replaceable events.
    identifier: Box<str>,
}

// === impl Address ===

impl Address {
    /// Returns the address of `event`, if newer ones replace it.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        let kind = event.kind.as_u16();
        let identifier = match kind {
            0 | 3 | 10_000..20_000 => "",
            30_000..40_000 => {
                let name = event.tags.iter().find(|tag| tag.kind() == "d");
                name.and_then(|tag| tag.content()).unwrap_or_default()
            }
            _ => return None,
        };
        Some(Self { kind, author: event.pubkey, identifier: identifier.into() })
    }

    /// Parses `<kind>:<public key>:<identifier>`, the value of an `a` tag.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let kind = parts.next()?.parse().ok()?;
        let author = PublicKey::from_hex(parts.next()?).ok()?;
        Some(Self { kind, author, identifier: parts.next().unwrap_or_default().into() })
    }

    /// Bytes on the heap.
    pub(crate) fn footprint(&self) -> usize {
        footprint::text(&self.identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::samples::{NOW, keys, of_kind, signed_by};

    #[test]
    fn replaceable_kinds_have_an_address_and_others_have_none() {
        for kind in [0, 3, 10_000, 19_999, 30_000, 39_999] {
            let address = Address::of(&of_kind(kind, &["a"], NOW, "")).unwrap();
            let author = keys(1).public_key().to_hex();
            assert_eq!(Address::read(&format!("{kind}:{author}:")), Some(address), "{kind}");
        }
        for kind in [1, 2, 4, 9_999, 20_000, 29_999, 40_000] {
            assert_eq!(Address::of(&of_kind(kind, &["a"], NOW, "")), None, "{kind}");
        }
    }

    #[test]
    fn an_addressable_event_is_named_by_its_first_d_tag() {
        let author = keys(1).public_key().to_hex();
        let event = signed_by(1, 30_023, &[["t", "a"], ["d", "z:1"], ["d", "b"]], NOW);
        assert_eq!(Address::of(&event), Address::read(&format!("30023:{author}:z:1")));
        let replaceable = signed_by(1, 10_002, &[["d", "x"]], NOW);
        assert_eq!(Address::of(&replaceable), Address::read(&format!("10002:{author}:")));
    }

    #[test]
    fn what_is_no_address_is_not_read() {
        let author = keys(1).public_key().to_hex();
        for bad in ["", "30023", "30023:x:y", &format!("x:{author}:"), &format!("70000:{author}:")]
        {
            assert_eq!(Address::read(bad), None, "{bad}");
        }
    }
}
