//! Access tokens, valid for minutes. They are signed, not stored.

use std::io;

use headgate_app_common::Secret;
use nostr::key::PublicKey;

use super::{challenge::Challenges, signed::Signer};

/// Issues and verifies tokens.
pub(crate) struct Tokens {
    signer: Signer,
    pub(super) challenges: Challenges,
}

/// Lifetime of a token, in seconds.
const LIFETIME: u64 = 900;

const KEY_BYTES: usize = 32;
const TIME_BYTES: usize = 8;

// === impl Tokens ===

impl Tokens {
    /// Signs tokens with `secret`, or with a random one.
    pub(crate) fn new(secret: Option<&Secret>) -> io::Result<Self> {
        let challenges = Challenges::new(secret)?;
        Ok(Self { signer: Signer::new(secret, "token")?, challenges })
    }

    /// Issues a token to `pubkey`; returns it with its expiry.
    pub(super) fn issue(&self, pubkey: &PublicKey, now: u64) -> (String, u64) {
        let expires_at = now + LIFETIME;
        let mut bytes = [0; KEY_BYTES + TIME_BYTES];
        bytes[..KEY_BYTES].copy_from_slice(pubkey.as_bytes());
        bytes[KEY_BYTES..].copy_from_slice(&expires_at.to_be_bytes());
        (self.signer.sign(&bytes), expires_at)
    }

    /// Returns the public key of a valid token.
    pub(super) fn owner(&self, token: &str, now: u64) -> Option<PublicKey> {
        let bytes = self.signer.open::<{ KEY_BYTES + TIME_BYTES }>(token)?;
        let (key, time) = bytes.split_at(KEY_BYTES);
        let expires_at = u64::from_be_bytes(time.try_into().ok()?);
        PublicKey::from_slice(key).ok().filter(|_| now < expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_its_owners_until_it_expires() {
        let tokens = Tokens::new(None).unwrap();
        let key = PublicKey::from_slice(&[7; 32]).unwrap();
        let (token, expires_at) = tokens.issue(&key, 1_000);
        assert_eq!(expires_at, 1_900);
        assert_eq!(tokens.owner(&token, 1_899), Some(key));
        assert_eq!(tokens.owner(&token, 1_900), None);
        assert_eq!(Tokens::new(None).unwrap().owner(&token, 1_000), None);
    }
}
