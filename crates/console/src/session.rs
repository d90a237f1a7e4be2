//! Sessions of browsers. They live in this process alone: on another replica, people sign in again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::{Clock, Timestamp};
use headgate_auth::Actor;
use headgate_config::LiveDuration;
use ring::{
    digest::{SHA256, SHA256_OUTPUT_LEN, digest},
    rand::{SecureRandom, SystemRandom},
};

use crate::config::ConsoleConfig;

/// Maximum number of sessions; beyond it, the least recently used one is evicted.
const MAX_SESSIONS: usize = 1024;

/// The same for one actor, who would otherwise sign everyone else out.
const MAX_SESSIONS_OF_ACTOR: usize = 32;

const SECRET_BYTES: usize = 32;

/// Key of a session: a digest, so that a memory dump reveals no session secret.
type Digest = [u8; SHA256_OUTPUT_LEN];

/// All sessions of one server.
pub struct Sessions {
    kept: Mutex<HashMap<Digest, Session>>,
    longest: LiveDuration,
    idle: LiveDuration,
    clock: Arc<dyn Clock>,
}

/// A signed-in browser.
#[derive(Clone, Debug)]
pub struct Session {
    /// Who has signed in.
    pub actor: Actor,
    /// End of the session, even if it is in use.
    pub ends_at: Timestamp,
    used_at: Timestamp,
}

/// The system's random generator failed.
#[derive(Clone, Copy, Debug)]
pub struct NoRandomness;

// === impl Sessions ===

impl Sessions {
    /// Creates an empty set of sessions.
    pub fn new(config: &ConsoleConfig, clock: Arc<dyn Clock>) -> Self {
        let longest = LiveDuration::new(config.session_ttl());
        let idle = LiveDuration::new(config.idle_timeout());
        Self { kept: Mutex::default(), longest, idle, clock }
    }

    /// Opens a session that lasts no longer than `until`; returns its secret.
    pub fn open(
        &self,
        actor: Actor,
        until: Option<Timestamp>,
    ) -> Result<(String, Session), NoRandomness> {
        let mut secret = [0; SECRET_BYTES];
        SystemRandom::new().fill(&mut secret).map_err(|_| NoRandomness)?;
        let secret = URL_SAFE.encode(secret);
        let now = self.clock.now();
        let longest = now + self.longest.get();
        let ends_at = until.map_or(longest, |until| until.min(longest));
        let session = Session { actor, ends_at, used_at: now };
        let mut kept = self.kept();
        if kept.len() >= MAX_SESSIONS {
            kept.retain(|_, session| self.lives(session, now));
        }
        evict_beyond(MAX_SESSIONS_OF_ACTOR, &mut kept, |it| it.actor.name == session.actor.name);
        evict_beyond(MAX_SESSIONS, &mut kept, |_| true);
        kept.insert(hashed(&secret), session.clone());
        Ok((secret, session))
    }

    /// Returns the session with this secret, if it has not ended, and marks it as used.
    pub fn find(&self, secret: &str) -> Option<Session> {
        let (digest, now) = (hashed(secret), self.clock.now());
        let mut kept = self.kept();
        let session = kept.get_mut(&digest)?;
        if !self.lives(session, now) {
            kept.remove(&digest);
            return None;
        }
        session.used_at = now;
        Some(session.clone())
    }

    /// Returns the session with this secret, if it has not ended, without marking it as used: an
    /// event stream in a forgotten tab does not keep it.
    pub fn peek(&self, secret: &str) -> Option<Session> {
        let now = self.clock.now();
        self.kept().get(&hashed(secret)).filter(|session| self.lives(session, now)).cloned()
    }

    /// Ends the session with this secret.
    pub fn close(&self, secret: &str) {
        self.kept().remove(&hashed(secret));
    }

    /// Changes how long new sessions last, and how long all sessions last unused.
    pub fn set_bounds(&self, longest: Duration, idle: Duration) {
        self.longest.set(longest);
        self.idle.set(idle);
    }

    /// Ends the sessions of actors that are not accepted any more.
    pub fn retain(&self, is_accepted: impl Fn(&Actor) -> bool) {
        self.kept().retain(|_, session| is_accepted(&session.actor));
    }

    fn lives(&self, session: &Session, now: Timestamp) -> bool {
        now < session.ends_at && now < session.used_at + self.idle.get()
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes room for one more of the sessions that `is_meant` selects: evicts the least recently used
/// one if there are `max`.
fn evict_beyond(
    max: usize,
    kept: &mut HashMap<Digest, Session>,
    is_meant: impl Fn(&Session) -> bool,
) {
    let counted = || kept.iter().filter(|(_, session)| is_meant(session));
    if counted().count() < max {
        return;
    }
    let oldest = counted().min_by_key(|(_, session)| session.used_at);
    if let Some(oldest) = oldest.map(|(digest, _)| *digest) {
        kept.remove(&oldest);
    }
}

fn hashed(secret: &str) -> Digest {
    let mut out = Digest::default();
    out.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    out
}

#[cfg(test)]
mod tests {
    use headgate::ManualClock;
    use headgate_auth::AuthMethod;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn sessions() -> (Sessions, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(Timestamp::from_micros(1)));
        let config = ConsoleConfig::default();
        (Sessions::new(&config, Arc::clone(&clock) as _), clock)
    }

    fn named(name: &str) -> Actor {
        Actor { name: name.to_owned().into(), role: None, method: AuthMethod::Token }
    }

    #[test]
    fn a_session_ends_when_idle_and_after_its_lifetime() {
        let (sessions, clock) = sessions();
        let (secret, _) = sessions.open(Actor::anonymous(), None).unwrap();
        for _ in 0..15 {
            assert!(sessions.find(&secret).is_some());
            clock.advance(HOUR / 2);
        }
        clock.advance(HOUR / 2);
        assert!(sessions.find(&secret).is_none(), "eight hours are over");

        let (secret, _) = sessions.open(Actor::anonymous(), None).unwrap();
        clock.advance(HOUR / 2);
        assert!(sessions.peek(&secret).is_some());
        clock.advance(HOUR / 2);
        assert!(sessions.peek(&secret).is_none(), "idle for an hour");
        assert!(sessions.find(&secret).is_none(), "idle for an hour");
    }

    #[test]
    fn a_session_does_not_outlive_the_token_that_opened_it() {
        let (sessions, clock) = sessions();
        let until = clock.now() + Duration::from_secs(60);
        let (secret, session) = sessions.open(Actor::anonymous(), Some(until)).unwrap();
        assert_eq!(session.ends_at, until);
        clock.advance(Duration::from_secs(59));
        assert!(sessions.find(&secret).is_some());
        clock.advance(Duration::from_secs(1));
        assert!(sessions.find(&secret).is_none());
    }

    #[test]
    fn an_actor_evicts_only_its_own_sessions() {
        let (sessions, clock) = sessions();
        let (other, _) = sessions.open(named("other"), None).unwrap();
        let mut own = Vec::new();
        for _ in 0..MAX_SESSIONS {
            clock.advance(Duration::from_millis(1));
            own.push(sessions.open(named("busy"), None).unwrap().0);
        }
        assert_eq!(sessions.kept().len(), MAX_SESSIONS_OF_ACTOR + 1);
        assert!(sessions.find(&other).is_some());
        let (old, new) = own.split_at(MAX_SESSIONS - MAX_SESSIONS_OF_ACTOR);
        assert!(old.iter().all(|secret| sessions.find(secret).is_none()));
        assert!(new.iter().all(|secret| sessions.find(secret).is_some()));
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (sessions, clock) = sessions();
        let (first, _) = sessions.open(Actor::anonymous(), None).unwrap();
        clock.advance(Duration::from_secs(1));
        let (second, _) = sessions.open(Actor::anonymous(), None).unwrap();
        clock.advance(Duration::from_secs(1));
        sessions.find(&first).unwrap();
        for i in 0..MAX_SESSIONS - 1 {
            clock.advance(Duration::from_millis(1));
            sessions.open(named(&i.to_string()), None).unwrap();
        }
        assert_eq!(sessions.kept().len(), MAX_SESSIONS);
        assert!(sessions.find(&second).is_none(), "it was not used for longest");
        assert!(sessions.find(&first).is_some());
        sessions.close(&first);
        assert!(sessions.find(&first).is_none());
    }
}
