use std::time::Duration;

use headgate_config::{Bounded, Problem, print_sections};
use serde::Deserialize;

use super::{AuthConfig, JwksUrl, ServerConfig};

/// The pages for people.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ConsoleConfig {
    /// `console.enabled`: whether there are any.
    pub enabled: bool,
    /// `console.session_ttl_seconds`: after how long somebody signs in again, whatever they do.
    pub session_ttl_seconds: Bounded<1, 604_800>,
    /// `console.idle_timeout_seconds`: after how long without a page being open.
    pub idle_timeout_seconds: Bounded<1, 604_800>,
    /// `console.public_url`: where browsers find the server.
    pub public_url: Option<JwksUrl>,
    /// `console.other_urls`: where else they find it.
    pub other_urls: Vec<JwksUrl>,
    /// `console.oidc`: how people sign in at the issuer of the tokens.
    pub oidc: OidcConfig,
}

/// How people sign in at the issuer of the tokens.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct OidcConfig {
    /// `console.oidc.client_id`: by what name the issuer knows the console, a public client; without it, there are tokens alone.
    pub client_id: Option<String>,
    /// `console.oidc.authorization_endpoint`: where people are sent, if the issuer does not say so itself.
    pub authorization_endpoint: Option<JwksUrl>,
    /// `console.oidc.token_endpoint`: where tokens are fetched, if the issuer does not say so itself.
    pub token_endpoint: Option<JwksUrl>,
    /// `console.oidc.scope`: what the issuer is asked for.
    pub scope: String,
}

/// Where people come back to is never taken from what a browser asks for.
const NO_WAY_BACK: &str = "people who sign in at the issuer come back to this URL: set it, such as \
                           https://gate.example.com, since console.oidc.client_id is set";

impl ConsoleConfig {
    pub(crate) const fn session_ttl(&self) -> Duration {
        Duration::from_secs(self.session_ttl_seconds.get())
    }

    pub(crate) const fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_seconds.get())
    }
}

impl ConsoleConfig {
    /// What each key accepts by itself but the section cannot.
    pub(super) fn contradictions(
        &self,
        auth: &AuthConfig,
        server: &ServerConfig,
    ) -> Option<Problem> {
        let OidcConfig { client_id, authorization_endpoint, token_endpoint, .. } = &self.oidc;
        let named = authorization_endpoint.is_some() && token_endpoint.is_some();
        let issuer = auth.issuer.as_deref().and_then(|issuer| reqwest::Url::parse(issuer).ok());
        let message = match client_id.as_deref()? {
            "" => "expected a text that is not empty",
            _ if auth.jwks_url.is_none() => {
                "people sign in at the issuer of the tokens, but there is no auth.jwks_url"
            }
            _ if !named && issuer.is_none() => {
                "where people sign in is not known: set auth.issuer to the issuer's URL, or both \
                 console.oidc.authorization_endpoint and console.oidc.token_endpoint"
            }
            _ if self.public_url.is_none() && !server.address().ip().is_loopback() => {
                return Some(Problem::new("console.public_url", NO_WAY_BACK));
            }
            _ => return None,
        };
        Some(Problem::new("console.oidc.client_id", message))
    }
}

impl Default for OidcConfig {
    fn default() -> Self {
        Self {
            client_id: None,
            authorization_endpoint: None,
            token_endpoint: None,
            scope: "openid".to_owned(),
        }
    }
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            session_ttl_seconds: Bounded::of::<28_800>(),
            idle_timeout_seconds: Bounded::of::<3_600>(),
            public_url: None,
            other_urls: Vec::new(),
            oidc: OidcConfig::default(),
        }
    }
}

// === impl Print ===

print_sections! {
    ConsoleConfig {
        enabled, session_ttl_seconds, idle_timeout_seconds, public_url, other_urls, oidc,
    }
    OidcConfig { client_id, authorization_endpoint, token_endpoint, scope }
}
