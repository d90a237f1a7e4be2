//! Sign-in at the issuer of the tokens: the authorization code flow with PKCE (RFC 7636), as a
//! public client.
//!
//! A sign-in is identified by its `state`, which the browser keeps in a cookie: a code that was
//! issued to another browser is rejected. The `nonce` binds the ID token to the sign-in: one that
//! was issued for another sign-in is rejected, too.

mod id_token;
mod redirect_origins;
mod sign_ins;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as URL_SAFE};
use headgate::{Clock, OutageLog};
use headgate_tls_client::Certificates;
use reqwest::{Client, Url, header::CONTENT_TYPE};
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use thiserror::Error;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

pub use self::redirect_origins::RedirectOrigins;
use self::sign_ins::SignIns;
use crate::{AuthConfig, FetchError, HttpUrl, OidcConfig, fetch};

/// Time that a user may spend at the issuer.
pub const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum number of concurrent requests to the issuer: anyone may begin a sign-in.
const MAX_REQUESTS: usize = 8;

/// Signs users in at the issuer.
pub struct Oidc {
    client_id: String,
    scope: String,
    issuer: Option<String>,
    certificates: Certificates,
    origins: RedirectOrigins,
    callback: &'static str,
    configured: Option<Endpoints>,
    discovered: OnceCell<Endpoints>,
    discovery_client: IssuerClient,
    token_client: IssuerClient,
    requests: Semaphore,
    failures: OutageLog,
    sign_ins: SignIns,
    clock: Arc<dyn Clock>,
}

/// A client for one URL of the issuer, created with the first request: authorities are read once.
#[derive(Default)]
struct IssuerClient(OnceLock<Client>);

/// Redirect that starts a sign-in.
pub struct AuthorizationRequest {
    /// URL of the issuer, with all parameters.
    pub location: String,
    /// Identifies the sign-in; the browser must bring it back.
    pub state: String,
}

/// A sign-in that failed.
#[derive(Debug, Error)]
pub enum OidcError {
    /// The issuer cannot be reached.
    #[error("cannot reach the issuer: {}", fetch::causes(.0))]
    Client(#[source] reqwest::Error),
    /// The issuer's response is not usable.
    #[error("unusable response of the issuer: {0}")]
    Answer(#[from] FetchError),
    /// The issuer's response is not the expected JSON.
    #[error("unexpected response of the issuer: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// `auth.issuer` is not a URL.
    #[error("issuer URL is invalid or not set: set auth.issuer")]
    Issuer,
    /// Too many requests to the issuer are in flight.
    #[error("too many sign-ins at once: try again")]
    Busy,
    /// No sign-in has this state.
    #[error("unknown or expired OIDC state")]
    Unknown,
    /// The ID token belongs to another sign-in.
    #[error("nonce of the ID token does not match this sign-in")]
    Nonce,
    /// The issuer returned no ID token.
    #[error("the issuer returned no ID token for the scope openid")]
    NoIdToken,
    /// The browser asked for an unknown host.
    #[error(
        "unknown host: set console.public_url to the URL that browsers use, or list it in \
         console.other_urls"
    )]
    Host,
    /// The operating system has no random numbers.
    #[error("the operating system has no random numbers")]
    NoRandomness,
}

#[derive(Clone, Deserialize)]
struct Endpoints {
    authorization_endpoint: HttpUrl,
    token_endpoint: HttpUrl,
}

/// Tokens that the issuer returns for a code. Roles can be in either of them.
#[derive(Deserialize)]
pub struct OidcTokens {
    /// Access token.
    pub access_token: String,
    /// ID token; its nonce was checked.
    pub id_token: Option<String>,
}

// === impl Oidc ===

impl Oidc {
    /// Creates the client that `config` describes, if it has a `client_id`. The issuer sends
    /// browsers back to the path `callback` of one of `origins`.
    pub fn new(
        config: &OidcConfig,
        auth: &AuthConfig,
        origins: RedirectOrigins,
        callback: &'static str,
        clock: &Arc<dyn Clock>,
    ) -> Option<Self> {
        let configured = config.authorization_endpoint.as_ref().zip(config.token_endpoint.as_ref());
        Some(Self {
            client_id: config.client_id.clone()?,
            scope: config.scope.clone(),
            issuer: auth.issuer.clone(),
            // The file was validated with the configuration.
            certificates: auth.certificates().unwrap_or_default(),
            origins,
            callback,
            configured: configured.map(|(authorization, token)| Endpoints {
                authorization_endpoint: authorization.clone(),
                token_endpoint: token.clone(),
            }),
            discovered: OnceCell::new(),
            discovery_client: IssuerClient::default(),
            token_client: IssuerClient::default(),
            requests: Semaphore::new(MAX_REQUESTS),
            failures: OutageLog::new(),
            sign_ins: SignIns::default(),
            clock: Arc::clone(clock),
        })
    }

    /// Returns `true` if browsers reach the server over TLS, according to the configuration.
    pub fn is_over_tls(&self) -> bool {
        self.origins.is_over_tls()
    }

    /// Starts the sign-in of a browser that asked for `host`.
    ///
    /// # Errors
    ///
    /// When the host is unknown, the issuer's endpoints cannot be discovered, or too many other
    /// sign-ins do so.
    pub async fn begin(&self, host: &str) -> Result<AuthorizationRequest, OidcError> {
        let redirect_uri = self.redirect_uri(host)?;
        let endpoints = self.endpoints().await?;
        let begun = self.sign_ins.begin(self.clock.now() + SIGN_IN_TIMEOUT);
        let sign_in = begun.map_err(|_| OidcError::NoRandomness)?;
        let challenge = URL_SAFE.encode(digest(&SHA256, sign_in.verifier.as_bytes()));
        let mut location = endpoints.authorization_endpoint.get().clone();
        location
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("scope", &self.scope)
            .append_pair("state", &sign_in.state)
            .append_pair("nonce", &sign_in.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(AuthorizationRequest { location: location.into(), state: sign_in.state })
    }

    /// Exchanges `code` for tokens. Each `state` is accepted once. The issuer has sent the browser
    /// back to `host`.
    ///
    /// # Errors
    ///
    /// When the state is unknown, the issuer does not return the tokens of this sign-in, or too many
    /// others wait for theirs. In the last case, the state can be used again.
    pub async fn finish(
        &self,
        host: &str,
        state: &str,
        code: &str,
    ) -> Result<OidcTokens, OidcError> {
        let redirect_uri = self.redirect_uri(host)?;
        let _permit = self.permit()?;
        let finished = self.sign_ins.finish(state, self.clock.now());
        let sign_in = finished.ok_or(OidcError::Unknown)?;
        let url = self.endpoints().await?.token_endpoint.get();
        let body = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", &redirect_uri)
            .append_pair("client_id", &self.client_id)
            .append_pair("code_verifier", &sign_in.verifier)
            .finish();
        let client = self.token_client.get(url, &self.certificates)?;
        let request = client.post(url.clone()).body(body);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let body = fetch::body(request.send().await?).await?;
        let tokens: OidcTokens = serde_json::from_slice(&body)?;
        match &tokens.id_token {
            Some(token) if id_token::nonce(token).as_deref() == Some(&*sign_in.nonce) => Ok(tokens),
            Some(_) => Err(OidcError::Nonce),
            // With the scope `openid` there must be one; plain OAuth 2.0 has none.
            None if self.scope.split(' ').any(|scope| scope == "openid") => {
                Err(OidcError::NoIdToken)
            }
            None => Ok(tokens),
        }
    }

    /// Counts a sign-in that failed; if a log line is due, returns the number that it reports.
    pub fn count_failure(&self) -> Option<u64> {
        self.failures.count(self.clock.now())
    }

    fn permit(&self) -> Result<SemaphorePermit<'_>, OidcError> {
        self.requests.try_acquire().map_err(|_| OidcError::Busy)
    }

    /// Returns the URL of this server that the issuer sends a browser of `host` back to.
    fn redirect_uri(&self, host: &str) -> Result<String, OidcError> {
        let origin = self.origins.origin(host).ok_or(OidcError::Host)?;
        Ok(format!("{origin}{}", self.callback))
    }

    /// Returns the configured endpoints, or else those that the issuer publishes.
    async fn endpoints(&self) -> Result<&Endpoints, OidcError> {
        if let Some(known) = self.configured.as_ref().or_else(|| self.discovered.get()) {
            return Ok(known);
        }
        // Held while another one discovers them, too: those that wait are bounded.
        let _permit = self.permit()?;
        let discover = async || {
            let issuer = self.issuer.as_deref().ok_or(OidcError::Issuer)?.trim_end_matches('/');
            let url = format!("{issuer}/.well-known/openid-configuration");
            let url = Url::parse(&url).map_err(|_| OidcError::Issuer)?;
            let client = self.discovery_client.get(&url, &self.certificates)?;
            let answer = client.get(url).send().await?;
            Ok(serde_json::from_slice(&fetch::body(answer).await?)?)
        };
        self.discovered.get_or_try_init(discover).await
    }
}

// === impl IssuerClient ===

impl IssuerClient {
    /// Returns the client for `url`, which is always the same.
    fn get(&self, url: &Url, certificates: &Certificates) -> Result<&Client, reqwest::Error> {
        if let Some(client) = self.0.get() {
            return Ok(client);
        }
        let new = fetch::client(url, certificates)?;
        Ok(self.0.get_or_init(|| new))
    }
}

/// Without the URL, whose query may hold a secret.
impl From<reqwest::Error> for OidcError {
    fn from(error: reqwest::Error) -> Self {
        Self::Client(error.without_url())
    }
}

#[cfg(test)]
mod tests;
