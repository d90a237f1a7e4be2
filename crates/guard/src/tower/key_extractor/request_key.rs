use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::AddressKey;

/// Key of one request: a digest of the values that a [`KeyExtractor`](crate::KeyExtractor) found.
///
/// The text is what stores see: 32 hexadecimal digits, the first half of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestKey([u8; Self::BYTES]);

/// Hash of several values, unambiguous about where each value ends and of which kind it is.
#[derive(Clone, Default)]
pub(super) struct Digest(Sha256);

/// Kind of value that a key is made of.
#[derive(Clone, Copy)]
pub(super) enum Origin {
    Request = 0,
    AddressInstead = 1,
    Shared = 2,
}

const HEX: &[u8; 16] = b"0123456789abcdef";

// === impl RequestKey ===

impl RequestKey {
    const BYTES: usize = 32;

    /// The key of an address that is used in place of a missing key.
    pub(in crate::tower) fn address_instead(address: &AddressKey) -> Self {
        let mut digest = Digest::default();
        digest.write(0, address.as_bytes());
        digest.finish(Origin::AddressInstead)
    }

    /// The key of all requests whose key is missing.
    pub(in crate::tower) fn shared() -> Self {
        Digest::default().finish(Origin::Shared)
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        // Digits are text.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Omits the digits, which would allow guessing the value.
impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestKey").finish_non_exhaustive()
    }
}

// === impl Digest ===

impl Digest {
    /// Adds a value. Its length and its kind come behind it: read from the end, the input of the
    /// hash has one meaning only.
    pub(super) fn write(&mut self, kind: u8, value: &[u8]) {
        self.0.update(value);
        self.0.update((value.len() as u64).to_be_bytes());
        self.0.update([kind]);
    }

    /// Adds the alternative that the previous values belong to.
    pub(super) fn write_alternative(&mut self, index: u8) {
        self.0.update([index]);
    }

    pub(super) fn finish(mut self, origin: Origin) -> RequestKey {
        self.0.update([origin as u8]);
        let hash = self.0.finalize();
        let mut digits = [0; RequestKey::BYTES];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(hash) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 0xf)];
        }
        RequestKey(digits)
    }
}
