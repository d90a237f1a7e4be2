//! Challenges to sign. Issuing one takes no memory: only signed ones are remembered, until they
//! expire. Each process remembers its own, so nodes with the same secret accept a challenge once
//! each.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, PoisonError},
};

use headgate_app_common::Secret;
use nostr::key::PublicKey;

use super::signed::{Signer, draw};

/// Issues challenges, and accepts each once.
pub(super) struct Challenges {
    signer: Signer,
    /// Signed challenges, with the time at which they expire.
    used: Mutex<HashMap<[u8; RANDOM_BYTES], u64>>,
}

/// A challenge of ours that has not expired.
pub(super) struct Asked {
    random: [u8; RANDOM_BYTES],
    expires_at: u64,
}

/// Lifetime of a challenge, in seconds.
const LIFETIME: u64 = 600;

/// Maximum number of signed challenges that are remembered.
const MAX_USED: usize = 100_000;

const RANDOM_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const TIME_BYTES: usize = 8;
const ALL_BYTES: usize = RANDOM_BYTES + KEY_BYTES + TIME_BYTES;

// === impl Challenges ===

impl Challenges {
    pub(super) fn new(secret: Option<&Secret>) -> io::Result<Self> {
        Ok(Self { signer: Signer::new(secret, "challenge")?, used: Mutex::default() })
    }

    /// Issues a challenge to `pubkey`; returns it with its expiry.
    pub(super) fn ask(&self, pubkey: &PublicKey, now: u64) -> io::Result<(String, u64)> {
        let expires_at = now + LIFETIME;
        let mut bytes = [0; ALL_BYTES];
        draw(&mut bytes[..RANDOM_BYTES])?;
        bytes[RANDOM_BYTES..][..KEY_BYTES].copy_from_slice(pubkey.as_bytes());
        bytes[RANDOM_BYTES + KEY_BYTES..].copy_from_slice(&expires_at.to_be_bytes());
        Ok((self.signer.sign(&bytes), expires_at))
    }

    /// Parses `challenge`, if it was issued to `pubkey` and has not expired.
    pub(super) fn open(&self, challenge: &str, pubkey: &PublicKey, now: u64) -> Option<Asked> {
        let bytes = self.signer.open::<ALL_BYTES>(challenge)?;
        let (random, rest) = bytes.split_at(RANDOM_BYTES);
        let (key, time) = rest.split_at(KEY_BYTES);
        let expires_at = u64::from_be_bytes(time.try_into().ok()?);
        let asked = Asked { random: random.try_into().ok()?, expires_at };
        (key == pubkey.as_bytes() && now < expires_at).then_some(asked)
    }

    /// Accepts a signed challenge, once.
    pub(super) fn use_up(&self, asked: &Asked, now: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED {
            used.retain(|_, expires_at| now < *expires_at);
        }
        // Fails closed: refusing logins is better than accepting a challenge twice.
        used.len() < MAX_USED && used.insert(asked.random, asked.expires_at).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_accepted_once_from_whom_it_was_meant_for() {
        let challenges = Challenges::new(None).unwrap();
        let [ada, bob] = [1, 2].map(|n| PublicKey::from_slice(&[n; 32]).unwrap());
        let (first, expires_at) = challenges.ask(&ada, 1_000).unwrap();
        assert_eq!(expires_at, 1_600);
        assert!(challenges.open(&first, &bob, 1_000).is_none());
        assert!(challenges.open(&first, &ada, 1_600).is_none());
        assert!(challenges.open("made up", &ada, 1_000).is_none());
        let asked = || challenges.open(&first, &ada, 1_599).unwrap();
        assert!(challenges.use_up(&asked(), 1_599));
        assert!(!challenges.use_up(&asked(), 1_599), "it was accepted before");
        let (second, _) = challenges.ask(&ada, 1_000).unwrap();
        assert_ne!(first, second);
        let second = challenges.open(&second, &ada, 1_000).unwrap();
        assert!(challenges.use_up(&second, 1_000));
    }
}
