//! Signed texts.

use std::io;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use headgate_app_common::Secret;
use ring::{
    hmac,
    rand::{SecureRandom, SystemRandom},
};

/// Signs bytes, and verifies them.
pub(super) struct Signer(hmac::Key);

/// Bytes of a signature.
const TAG_BYTES: usize = 32;

// === impl Signer ===

impl Signer {
    /// Signs with `secret`, or with a random one. Texts for another `purpose` are invalid.
    pub(super) fn new(secret: Option<&Secret>, purpose: &str) -> io::Result<Self> {
        let mut random = [0; 32];
        let secret = if let Some(secret) = secret {
            secret.reveal().as_bytes()
        } else {
            draw(&mut random)?;
            &random
        };
        let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let derived = hmac::sign(&root, purpose.as_bytes());
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())))
    }

    /// Returns `bytes` and their signature as text.
    pub(super) fn sign(&self, bytes: &[u8]) -> String {
        let tag = hmac::sign(&self.0, bytes);
        URL_SAFE_NO_PAD.encode([bytes, tag.as_ref()].concat())
    }

    /// Returns the signed bytes, if there are `N` and the signature is valid.
    pub(super) fn open<const N: usize>(&self, text: &str) -> Option<[u8; N]> {
        // Longer texts cannot be ours, and are not decoded.
        if text.len() > (N + TAG_BYTES).div_ceil(3) * 4 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (signed, tag) = bytes.split_at_checked(N)?;
        hmac::verify(&self.0, signed, tag).ok()?;
        signed.try_into().ok()
    }
}

/// Fills `bytes` with randomness.
pub(super) fn draw(bytes: &mut [u8]) -> io::Result<()> {
    let filled = SystemRandom::new().fill(bytes);
    filled.map_err(|_| io::Error::other("the system has no randomness"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_here_for_this_is_opened() {
        let signer = Signer::new(None, "a").unwrap();
        let text = signer.sign(b"four");
        assert_eq!(signer.open(&text), Some(*b"four"));
        assert_eq!(signer.open::<3>(&text), None);
        assert_eq!(Signer::new(None, "a").unwrap().open::<4>(&text), None);
        let mut forged = text.clone().into_bytes();
        forged[0] ^= 1;
        assert_eq!(signer.open::<4>(std::str::from_utf8(&forged).unwrap()), None);
        for odd in ["", "?", "AAAA", &"A".repeat(10_000)] {
            assert_eq!(signer.open::<4>(odd), None, "{odd}");
        }
    }
}
