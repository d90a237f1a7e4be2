//! An issuer of JSON Web Tokens.

mod key;
mod publisher;
mod sign_in;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Map, Value, json};

pub use self::key::{Algorithm, SigningKey};
use self::{publisher::Publisher, sign_in::AuthorizationRequest};
use crate::free_port;

/// An issuer that signs tokens and publishes its JWK Set at [`url`](Self::url).
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

/// Response of the issuer to requests for its keys.
#[derive(Clone, Debug, Default)]
pub enum Answer {
    /// Its keys.
    #[default]
    Keys,
    /// This status and body.
    Status(u16, String),
    /// No response.
    Silence,
}

#[derive(Default)]
struct State {
    keys: Vec<Arc<SigningKey>>,
    answer: Answer,
    fetches: usize,
    /// Role of users who sign in.
    role: Option<String>,
    /// Requests by authorization code, until the code is used.
    codes: HashMap<String, AuthorizationRequest>,
    id_token: IdToken,
}

/// The ID token of users who sign in.
#[derive(Clone, Debug, Default)]
pub enum IdToken {
    /// With the nonce of the request.
    #[default]
    Requested,
    /// With another nonce.
    Nonce(String),
    /// None.
    Missing,
}

// === impl Issuer ===

impl Issuer {
    /// Starts an issuer on a free loopback port, with one ES256 key named `key-1`.
    ///
    /// # Panics
    ///
    /// If it cannot listen.
    pub fn start() -> Self {
        let mut issuer = Self { port: 0, state: Arc::default(), publisher: None };
        issuer.publish(SigningKey::generate("key-1", Algorithm::Es256));
        // Another process may take the port in between.
        issuer.publisher = (0..20).find_map(|_| {
            issuer.port = free_port();
            Publisher::start(issuer.port, &issuer.state)
        });
        assert!(issuer.publisher.is_some(), "a port for an issuer");
        issuer
    }

    /// URL of the JWK Set.
    pub fn url(&self) -> String {
        format!("{}/certs", self.name())
    }

    /// The claim `iss` of its tokens.
    pub fn name(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// A token with these claims, signed with the newest key.
    ///
    /// Missing claims `iss`, `sub` (`user-1`) and `exp` (in 15 minutes) are added; null claims are
    /// removed.
    ///
    /// # Panics
    ///
    /// If all keys were withdrawn, or if the claims are not an object.
    pub fn token(&self, claims: Value) -> String {
        let key = self.lock().keys.last().map(Arc::clone).expect("a key");
        key.sign(&self.claims(claims))
    }

    /// A token for `{role}@example.com` with this role.
    pub fn token_for(&self, role: &str) -> String {
        let email = format!("{role}@example.com");
        self.token(json!({"email": email, "realm_access": {"roles": [role]}}))
    }

    /// These claims, completed as by [`token`](Self::token).
    ///
    /// # Panics
    ///
    /// If the claims are not an object.
    pub fn claims(&self, claims: Value) -> Value {
        complete(&self.name(), claims)
    }

    /// Publishes a key, and uses it to sign from now on.
    pub fn publish(&self, key: SigningKey) -> Arc<SigningKey> {
        let key = Arc::new(key);
        self.lock().keys.push(Arc::clone(&key));
        key
    }

    /// Withdraws the keys named `kid`.
    pub fn withdraw(&self, kid: &str) {
        self.lock().keys.retain(|key| key.kid() != kid);
    }

    /// Changes the response to requests for keys.
    pub fn answer_with(&self, answer: Answer) {
        self.lock().answer = answer;
    }

    /// Sets the role of users who sign in from now on. `/authorize` redirects at once, and `/token`
    /// returns a token for the code to the client with the code verifier (RFC 7636).
    pub fn sign_in_as(&self, role: &str) {
        self.lock().role = Some(role.to_owned());
    }

    /// Changes the ID token of users who sign in from now on.
    pub fn give_id_token(&self, id_token: IdToken) {
        self.lock().id_token = id_token;
    }

    /// Number of requests for its keys.
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
    /// If another process has taken the port.
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
