//! How a client shows who it is: it signs what it was asked to.

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

/// How old a signature may be, and how far its clock may be ahead of ours.
const MAX_APART_SECONDS: Second = 600;

/// An authentication event says little.
const BOUNDS: EventBounds = EventBounds { max_bytes: 4_096, max_tags: 16 };

/// What one connection has to sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Challenge(String);

/// Why a client did not show who it is.
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
    /// A challenge that nobody can guess.
    pub(crate) fn random() -> Self {
        let mut bytes = [0; 16];
        // Without randomness nothing is asked that anybody could sign.
        let drawn = SystemRandom::new().fill(&mut bytes).is_ok();
        let text =
            if drawn { format!("{:032x}", u128::from_be_bytes(bytes)) } else { String::new() };
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Who signed this challenge for the relay at `url`.
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
