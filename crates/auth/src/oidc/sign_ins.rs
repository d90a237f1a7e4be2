//! Sign-ins in progress.
//!
//! Anyone may begin a sign-in, so that it takes no memory: its secrets are derived from its state,
//! which is authenticated, and from a key of this process.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::Timestamp;
use ring::{
    error::Unspecified,
    hmac,
    rand::{SecureRandom, SystemRandom},
};

/// The sign-ins of one server.
#[derive(Default)]
pub(super) struct SignIns {
    key: OnceLock<hmac::Key>,
    /// States that were brought back, until they expire.
    used: Mutex<HashMap<String, Timestamp>>,
}

/// The secrets of a sign-in.
pub(super) struct SignIn {
    pub(super) state: String,
    pub(super) verifier: String,
    pub(super) nonce: String,
}

/// Maximum number of remembered states; beyond it, the oldest is forgotten. The issuer accepts a
/// code once in any case.
const MAX_USED: usize = 1024;

const RANDOM_BYTES: usize = 24;

/// Random bytes, the time at which the sign-in expires, and their signature.
const STATE_BYTES: usize = RANDOM_BYTES + 8 + 32;

// === impl SignIns ===

impl SignIns {
    pub(super) fn begin(&self, expires_at: Timestamp) -> Result<SignIn, Unspecified> {
        let mut signed = [0; RANDOM_BYTES + 8];
        SystemRandom::new().fill(&mut signed[..RANDOM_BYTES])?;
        signed[RANDOM_BYTES..].copy_from_slice(&expires_at.as_micros().to_be_bytes());
        let key = if let Some(key) = self.key.get() {
            key
        } else {
            let new = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())?;
            self.key.get_or_init(|| new)
        };
        Ok(SignIn::new(key, &signed))
    }

    /// Returns the sign-in with this state, if it was begun here, is not over at `now`, and was not
    /// finished before.
    pub(super) fn finish(&self, state: &str, now: Timestamp) -> Option<SignIn> {
        let bytes: [u8; STATE_BYTES] = URL_SAFE.decode(state).ok()?.try_into().ok()?;
        let (signed, tag) = bytes.split_at(RANDOM_BYTES + 8);
        let key = self.key.get()?;
        hmac::verify(key, &labelled("state", signed), tag).ok()?;
        let expires_at = u64::from_be_bytes(signed[RANDOM_BYTES..].try_into().ok()?);
        let expires_at = Timestamp::from_micros(expires_at);
        (now < expires_at && self.mark_used(state, expires_at, now))
            .then(|| SignIn::new(key, signed))
    }

    /// Returns `false` if the state was used before.
    fn mark_used(&self, state: &str, expires_at: Timestamp, now: Timestamp) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.contains_key(state) {
            return false;
        }
        if used.len() >= MAX_USED {
            used.retain(|_, expires_at| now < *expires_at);
        }
        if used.len() >= MAX_USED {
            let oldest = used.iter().min_by_key(|(_, expires_at)| **expires_at);
            if let Some(oldest) = oldest.map(|(state, _)| state.clone()) {
                used.remove(&oldest);
            }
        }
        used.insert(state.to_owned(), expires_at).is_none()
    }
}

// === impl SignIn ===

impl SignIn {
    fn new(key: &hmac::Key, signed: &[u8]) -> Self {
        let derived = |label| hmac::sign(key, &labelled(label, signed));
        let secret = |label| URL_SAFE.encode(derived(label));
        let state = URL_SAFE.encode([signed, derived("state").as_ref()].concat());
        Self { state, verifier: secret("verifier"), nonce: secret("nonce") }
    }
}

/// The signed bytes have a fixed length, so that labels cannot be confused.
fn labelled(label: &str, signed: &[u8]) -> Vec<u8> {
    [label.as_bytes(), signed].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000);
    const LATER: Timestamp = Timestamp::from_micros(2_000);

    #[test]
    fn a_state_is_accepted_once_and_in_time() {
        let sign_ins = SignIns::default();
        let begun = sign_ins.begin(LATER).unwrap();
        assert!(sign_ins.finish(&begun.state, LATER).is_none(), "too late");
        let finished = sign_ins.finish(&begun.state, NOW).unwrap();
        assert_eq!((begun.verifier, begun.nonce), (finished.verifier, finished.nonce));
        assert!(sign_ins.finish(&begun.state, NOW).is_none(), "used");
    }

    #[test]
    fn other_states_are_not_accepted() {
        let (sign_ins, others) = (SignIns::default(), SignIns::default());
        let state = sign_ins.begin(LATER).unwrap().state;
        let foreign = others.begin(LATER).unwrap().state;
        let mut later = URL_SAFE.decode(&state).unwrap();
        later[RANDOM_BYTES] ^= 1;
        let later = URL_SAFE.encode(later);
        for forged in ["", "x", "%", &foreign, &later, &state[1..], &format!("{state}AAAA")] {
            assert!(sign_ins.finish(forged, NOW).is_none(), "{forged}");
        }
        assert!(sign_ins.finish(&state, NOW).is_some());
    }

    #[test]
    fn many_sign_ins_do_not_crowd_out_one() {
        let sign_ins = SignIns::default();
        let first = sign_ins.begin(LATER).unwrap().state;
        for _ in 0..2 * MAX_USED {
            let other = sign_ins.begin(LATER).unwrap();
            sign_ins.finish(&other.state, NOW).unwrap();
        }
        assert!(sign_ins.used.lock().unwrap().len() <= MAX_USED);
        assert!(sign_ins.finish(&first, NOW).is_some());
    }
}
