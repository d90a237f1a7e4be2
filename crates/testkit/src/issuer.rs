//! An issuer of tokens: signs them, and publishes its keys over HTTP.

mod key;
mod publisher;
mod sign_in;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

pub use self::key::{Algorithm, SigningKey};
use self::{publisher::Publisher, sign_in::Asked};
use crate::free_port;

/// An issuer with keys of its own, whose JWK Set is at [`url`](Self::url).
///
/// ```
/// let issuer = headgate_testkit::Issuer::start();
/// let token = issuer.token_for("sys_operator");
/// assert_eq!(token.split('.').count(), 3);
/// ```
pub struct Issuer {
    port: u16,
    state: Arc<Mutex<State>>,
    publisher: Option<Publisher>,
}

/// What the issuer answers with when it is asked for its keys.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    /// Its keys.
    #[default]
    Keys,
    /// This status and body.
    Status(u16, String),
    /// Nothing, for ever.
    Silence,
}

#[derive(Default)]
struct State {
    keys: Vec<Arc<SigningKey>>,
    answer: Answer,
    fetches: usize,
    /// The role of whoever signs in.
    role: Option<String>,
    /// What was asked for under each code that is not used yet.
    codes: HashMap<String, Asked>,
    id_token: IdToken,
}

/// The ID token that the issuer gives to whoever signs in.
#[derive(Clone, Debug, Default)]
pub enum IdToken {
    /// One with the nonce that it was asked for.
    #[default]
    Asked,
    /// One with another nonce.
    Nonce(String),
    /// None.
    Missing,
}

// === impl Issuer ===

impl Issuer {
    /// Starts an issuer on a free loopback port, with one ES256 key called `key-1`.
    ///
    /// # Panics
    ///
    /// When it cannot listen.
    pub fn start() -> Self {
        let mut issuer = Self { port: 0, state: Arc::default(), publisher: None };
        issuer.publish(SigningKey::generate("key-1", Algorithm::Es256));
        // Another process may take a port between the look and the bind.
        issuer.publisher = (0..20).find_map(|_| {
            issuer.port = free_port();
            Publisher::start(issuer.port, &issuer.state)
        });
        assert!(issuer.publisher.is_some(), "a port for an issuer");
        issuer
    }

    /// Where its keys are.
    pub fn url(&self) -> String {
        format!("{}/certs", self.name())
    }

    /// What its tokens have as `iss`.
    pub fn name(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A token with these claims, signed with the newest key.
    ///
    /// `iss`, `sub` (`user-1`) and `exp` (in 15 minutes) are added unless they are there; one that is
    /// null is left out.
    ///
    /// # Panics
    ///
    /// When every key was withdrawn, or the claims are no object.
    pub fn token(&self, claims: Value) -> String {
        let key = self.lock().keys.last().map(Arc::clone).expect("a key");
        key.sign(&self.claims(claims))
    }

    /// A token whose bearer has this role and is called `{role}@example.com`.
    pub fn token_for(&self, role: &str) -> String {
        let email = format!("{role}@example.com");
        self.token(json!({"email": email, "realm_access": {"roles": [role]}}))
    }

    /// These claims with what [`token`](Self::token) adds.
    ///
    /// # Panics
    ///
    /// When the claims are no object.
    pub fn claims(&self, claims: Value) -> Value {
        complete(&self.name(), claims)
    }

    /// Publishes a key, and signs with it from now on.
    pub fn publish(&self, key: SigningKey) -> Arc<SigningKey> {
        let key = Arc::new(key);
        self.lock().keys.push(Arc::clone(&key));
        key
    }

    /// Publishes no longer the keys that are called `kid`.
    pub fn withdraw(&self, kid: &str) {
        self.lock().keys.retain(|key| key.kid() != kid);
    }

    /// Answers differently from now on.
    pub fn answer_with(&self, answer: Answer) {
        self.lock().answer = answer;
    }

    /// Whoever signs in from now on has this role, without being asked: `/authorize` sends them back at once, and `/token`
    /// gives a token for the code to the client that can prove that it asked (RFC 7636).
    pub fn sign_in_as(&self, role: &str) {
        self.lock().role = Some(role.to_owned());
    }

    /// Gives another ID token to whoever signs in from now on.
    pub fn give_id_token(&self, id_token: IdToken) {
        self.lock().id_token = id_token;
    }

    /// How often it was asked for its keys.
    pub fn fetches(&self) -> usize {
        self.lock().fetches
    }

    /// Stops listening: connections are refused.
    pub fn stop(&mut self) {
        self.publisher = None;
    }

    /// Listens again, at the same URL.
    ///
    /// # Panics
    ///
    /// When somebody else took its port meanwhile.
    pub fn resume(&mut self) {
        self.publisher = Publisher::start(self.port, &self.state);
        assert!(self.publisher.is_some(), "the issuer's own port");
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

// === impl State ===

impl State {
    fn jwks(&self) -> String {
        let keys: Vec<Value> = self.keys.iter().map(|key| key.jwk()).collect();
        json!({ "keys": keys }).to_string()
    }
}

fn complete(issuer: &str, claims: Value) -> Value {
    let Value::Object(claims) = claims else { panic!("claims are an object") };
    let mut all = Map::new();
    all.insert("iss".into(), issuer.into());
    all.insert("sub".into(), "user-1".into());
    all.insert("exp".into(), (unix_seconds() + 900).into());
    all.extend(claims);
    all.retain(|_, value| !value.is_null());
    all.into()
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the server under test may keep real time")]
fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("a clock past 1970").as_secs()
}
