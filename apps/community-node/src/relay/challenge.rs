//! Authentication of a client by a signed challenge (NIP-42).

use nostr::{
    event::{Event, Kind},
    key::PublicKey,
    nips::nip42,
    types::RelayUrl,
};
use ring::rand::{SecureRandom, SystemRandom};
use thiserror::Error;

use super::{
    event::{EventBounds, parse},
    second::Second,
};

/// Maximum difference between a signature's time and ours, in seconds.
const MAX_APART_SECONDS: Second = 600;

/// Bounds of an authentication event.
const BOUNDS: EventBounds = EventBounds { max_bytes: 4_096, max_tags: 16 };

/// The challenge of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge(String);

/// Reason of a failed authentication.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum AuthError {
    #[error("auth-required: sign the challenge that was sent just now")]
    NotAsked,
    #[error("invalid: not an authentication event")]
    Malformed,
    #[error("invalid: created_at is more than 10 minutes from now")]
    Stale,
    #[error("invalid: challenge or relay is not this one")]
    Elsewhere,
    #[error("invalid: id or signature does not match the event")]
    Forged,
}

// === impl Challenge ===

impl Challenge {
    /// A random challenge.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        // Without randomness there is no challenge that could be signed.
        let drawn = SystemRandom::new().fill(&mut bytes).is_ok();
        let text =
            if drawn { format!("{:032x}", u128::from_be_bytes(bytes)) } else { String::new() };
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the public key that signed this challenge for the relay at `url`.
    pub(crate) fn verify(
        &self,
        json: &str,
        url: &RelayUrl,
        now: Second,
    ) -> Result<PublicKey, AuthError> {
        let event = read(json)?;
        if event.created_at.as_secs().abs_diff(now) > MAX_APART_SECONDS {
            return Err(AuthError::Stale);
        }
        if self.0.is_empty() || !nip42::is_valid_auth_event(&event, url, &self.0) {
            return Err(AuthError::Elsewhere);
        }
        event.verify().map_err(|_| AuthError::Forged)?;
        Ok(event.pubkey)
    }
}

fn read(json: &str) -> Result<Event, AuthError> {
    let event = parse(json, BOUNDS).map_err(|_| AuthError::Malformed)?;
    if event.kind == Kind::Authentication { Ok(event) } else { Err(AuthError::Malformed) }
}

#[cfg(test)]
mod tests;
