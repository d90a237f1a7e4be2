//! Signing in at the issuer of the tokens: the authorization code flow with PKCE (RFC 7636), as a public client.
//!
//! Whoever is on the way to the issuer is known by the `state`, which their browser keeps in a cookie: a code that
//! somebody else was given is worth nothing here. The `nonce` binds the ID token to the way: one that was
//! issued for another sign-in is worth nothing either.

mod id_token;
mod way_back;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::{Clock, Timestamp};
use reqwest::{Url, header::CONTENT_TYPE};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::OnceCell;

use self::way_back::WayBack;
use crate::{
    auth::fetch::{self, FetchError},
    config::{Config, JwksUrl},
};

/// Where the issuer sends people back to.
pub(crate) const CALLBACK: &str = "/console/oidc/callback";

/// How long somebody may take at the issuer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// The most that are on their way at a time; then the oldest makes room.
const MAX_ON_THE_WAY: usize = 1024;

/// How people sign in at the issuer.
pub(crate) struct Oidc {
    client_id: String,
    scope: String,
    issuer: Option<String>,
    way_back: WayBack,
    named: Option<Endpoints>,
    discovered: OnceCell<Endpoints>,
    on_the_way: Mutex<HashMap<String, Way>>,
    clock: Arc<dyn Clock>,
}

/// Somebody who is on the way to the issuer and back.
pub(crate) struct Departure {
    /// Where to.
    pub(crate) location: String,
    /// What they are known by when they come back.
    pub(crate) state: String,
}

/// Why nobody came back.
#[derive(Debug, Error)]
pub(crate) enum OidcError {
    #[error("the issuer cannot be asked: {0}")]
    Client(#[from] reqwest::Error),
    #[error("the issuer's answer cannot be used: {0}")]
    Answer(#[from] FetchError),
    #[error("the issuer's answer is not what was asked for: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the issuer's URL is none")]
    Issuer,
    #[error("unknown or expired OIDC state")]
    Unknown,
    #[error("the ID token has not the nonce of this sign-in")]
    Nonce,
    #[error("the issuer gave no ID token, though the scope has openid")]
    NoIdToken,
    #[error(
        "the browser asked for a host that is not listed: set console.public_url, or add it to console.other_urls"
    )]
    Host,
    #[error("the system gives no random bytes")]
    NoRandomness,
}

#[derive(Clone, Deserialize)]
struct Endpoints {
    authorization_endpoint: JwksUrl,
    token_endpoint: JwksUrl,
}

struct Way {
    verifier: String,
    nonce: String,
    redirect_uri: String,
    ends_at: Timestamp,
}

/// What the issuer gives for a code; the first that proves a role counts.
#[derive(Deserialize)]
pub(crate) struct Tokens {
    pub(crate) access_token: String,
    pub(crate) id_token: Option<String>,
}

// === impl Oidc ===

impl Oidc {
    pub(super) fn new(config: &Config, clock: &Arc<dyn Clock>) -> Option<Self> {
        let oidc = &config.console.oidc;
        let named = oidc.authorization_endpoint.as_ref().zip(oidc.token_endpoint.as_ref());
        Some(Self {
            client_id: oidc.client_id.clone()?,
            scope: oidc.scope.clone(),
            issuer: config.auth.issuer.clone(),
            way_back: WayBack::new(config),
            named: named.map(|(authorization, token)| Endpoints {
                authorization_endpoint: authorization.clone(),
                token_endpoint: token.clone(),
            }),
            discovered: OnceCell::new(),
            on_the_way: Mutex::default(),
            clock: Arc::clone(clock),
        })
    }

    /// Whether browsers find the server over TLS, as far as the operator says.
    pub(crate) fn is_found_over_tls(&self) -> bool {
        self.way_back.is_over_tls()
    }

    /// Sends somebody whose browser asked for `host` to the issuer.
    pub(crate) async fn begin(&self, host: &str) -> Result<Departure, OidcError> {
        let origin = self.way_back.origin(host).ok_or(OidcError::Host)?;
        let redirect_uri = format!("{origin}{CALLBACK}");
        let endpoints = self.endpoints().await?;
        let (state, verifier, nonce) = (secret()?, secret()?, secret()?);
        let challenge = URL_SAFE.encode(digest(&SHA256, verifier.as_bytes()));
        let mut location = endpoints.authorization_endpoint.get().clone();
        location
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("scope", &self.scope)
            .append_pair("state", &state)
            .append_pair("nonce", &nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        let ends_at = self.clock.now() + PATIENCE;
        self.note(state.clone(), Way { verifier, nonce, redirect_uri, ends_at });
        Ok(Departure { location: location.into(), state })
    }

    /// Fetches the tokens of somebody who came back with `code`. Each way is gone once.
    pub(crate) async fn finish(&self, state: &str, code: &str) -> Result<Tokens, OidcError> {
        let way = self.on_the_way.lock().unwrap_or_else(PoisonError::into_inner).remove(state);
        let way = way.filter(|way| self.clock.now() < way.ends_at).ok_or(OidcError::Unknown)?;
        let url = self.endpoints().await?.token_endpoint.get();
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &way.redirect_uri)
            .append_pair("client_id", &self.client_id)
            .append_pair("code_verifier", &way.verifier)
            .finish();
        let request = fetch::client(url)?.post(url.clone()).body(body);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let tokens: Tokens = serde_json::from_slice(&fetch::body(request.send().await?).await?)?;
        match &tokens.id_token {
            Some(token) if id_token::nonce(token).as_deref() == Some(&*way.nonce) => Ok(tokens),
            Some(_) => Err(OidcError::Nonce),
            // Whoever asks for `openid` gets one; an issuer that knows OAuth 2.0 alone has none.
            None if self.scope.split(' ').any(|scope| scope == "openid") => {
                Err(OidcError::NoIdToken)
            }
            None => Ok(tokens),
        }
    }

    fn note(&self, state: String, way: Way) {
        let now = self.clock.now();
        let mut ways = self.on_the_way.lock().unwrap_or_else(PoisonError::into_inner);
        if ways.len() >= MAX_ON_THE_WAY {
            ways.retain(|_, way| now < way.ends_at);
        }
        if ways.len() >= MAX_ON_THE_WAY {
            let oldest = ways.iter().min_by_key(|(_, way)| way.ends_at);
            if let Some(oldest) = oldest.map(|(state, _)| state.clone()) {
                ways.remove(&oldest);
            }
        }
        ways.insert(state, way);
    }

    /// As the operator says, or else as the issuer says of itself.
    async fn endpoints(&self) -> Result<&Endpoints, OidcError> {
        if let Some(named) = &self.named {
            return Ok(named);
        }
        let discover = async || {
            let issuer = self.issuer.as_deref().ok_or(OidcError::Issuer)?.trim_end_matches('/');
            let url = format!("{issuer}/.well-known/openid-configuration");
            let url = Url::parse(&url).map_err(|_| OidcError::Issuer)?;
            let answer = fetch::client(&url)?.get(url).send().await?;
            Ok(serde_json::from_slice(&fetch::body(answer).await?)?)
        };
        self.discovered.get_or_try_init(discover).await
    }
}

fn secret() -> Result<String, OidcError> {
    let mut secret = [0; 32];
    SystemRandom::new().fill(&mut secret).map_err(|_| OidcError::NoRandomness)?;
    Ok(URL_SAFE.encode(secret))
}
