//! Admin sessions: a bounded number, stored as hashes.

use std::{
    collections::HashMap,
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

/// Admin sessions.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<[u8; 32], u64>>);

/// Maximum number of sessions; beyond that, a new one evicts the one that expires first.
const MAX_SESSIONS: usize = 64;

// === impl Sessions ===

impl Sessions {
    /// Lifetime of a session, in seconds.
    pub(crate) const LIFETIME: u64 = 86_400;

    /// Opens a session; returns its id.
    pub(crate) fn begin(&self, now: u64) -> io::Result<String> {
        let mut bytes = [0; 32];
        let filled = SystemRandom::new().fill(&mut bytes);
        filled.map_err(|_| io::Error::other("the system has no randomness"))?;
        let session = URL_SAFE_NO_PAD.encode(bytes);
        let mut sessions = self.sessions();
        if sessions.len() >= MAX_SESSIONS
            && let Some(first) = sessions.iter().min_by_key(|(_, end)| **end).map(|(key, _)| *key)
        {
            sessions.remove(&first);
        }
        sessions.insert(hash(&session), now + Self::LIFETIME);
        Ok(session)
    }

    /// Returns true if `session` is open.
    pub(crate) fn holds(&self, session: &str, now: u64) -> bool {
        self.sessions().get(&hash(session)).is_some_and(|end| now < *end)
    }

    /// Ends a session.
    pub(crate) fn end(&self, session: &str) {
        self.sessions().remove(&hash(session));
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<[u8; 32], u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(session: &str) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, session.as_bytes()).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lasts_a_day_or_until_it_ends_or_many_others_begin() {
        let sessions = Sessions::default();
        let first = sessions.begin(0).unwrap();
        assert!(sessions.holds(&first, 86_399) && !sessions.holds(&first, 86_400));
        assert!(!sessions.holds("", 0) && !sessions.holds(&"0".repeat(64), 0));
        let second = sessions.begin(1).unwrap();
        sessions.end(&second);
        assert!(!sessions.holds(&second, 1) && sessions.holds(&first, 1));
        for now in 2..=MAX_SESSIONS as u64 + 1 {
            sessions.begin(now).unwrap();
        }
        assert!(!sessions.holds(&first, 100), "it was the first to end");
    }
}
