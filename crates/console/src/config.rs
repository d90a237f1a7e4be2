use std::time::Duration;

use headgate_auth::{AuthConfig, HttpUrl, OidcConfig};
use headgate_config::{Bounded, Problem, print_sections};
use serde::Deserialize;

/// The web console.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct ConsoleConfig {
    /// `console.enabled`: whether it is served.
    pub enabled: bool,
    /// `console.session_ttl_seconds`: longest session, in use or not.
    pub session_ttl_seconds: Bounded<1, 604_800>,
    /// `console.idle_timeout_seconds`: longest time without an open page.
    pub idle_timeout_seconds: Bounded<1, 604_800>,
    /// `console.public_url`: URL that browsers reach the server by.
    pub public_url: Option<HttpUrl>,
    /// `console.other_urls`: further such URLs.
    pub other_urls: Vec<HttpUrl>,
    /// `console.oidc`: sign-in at the issuer of the tokens.
    pub oidc: OidcConfig,
}

/// The redirect URL is never taken from the request of a browser.
const NO_PUBLIC_URL: &str = "required by console.oidc.client_id: the issuer redirects browsers to this \
                             URL, such as https://gate.example.com";

impl ConsoleConfig {
    /// Returns the longest duration of a session.
    pub const fn session_ttl(&self) -> Duration {
        Duration::from_secs(self.session_ttl_seconds.get())
    }

    /// Returns the longest time without an open page.
    pub const fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.idle_timeout_seconds.get())
    }
}

impl ConsoleConfig {
    /// Reports what each key accepts by itself but the section does not.
    pub fn contradictions(&self, auth: &AuthConfig, on_loopback: bool) -> Option<Problem> {
        let OidcConfig { client_id, authorization_endpoint, token_endpoint, .. } = &self.oidc;
        let named = authorization_endpoint.is_some() && token_endpoint.is_some();
        let issuer = auth.issuer.clone().and_then(|issuer| HttpUrl::try_from(issuer).ok());
        let message = match client_id.as_deref()? {
            "" => "expected a non-empty text",
            _ if auth.jwks_url.is_none() => {
                "requires auth.jwks_url: users sign in at the issuer of the tokens"
            }
            _ if !named && issuer.is_none() => {
                "requires auth.issuer, the URL of the issuer, or both \
                 console.oidc.authorization_endpoint and console.oidc.token_endpoint"
            }
            _ if self.public_url.is_none() && !on_loopback => {
                return Some(Problem::new("console.public_url", NO_PUBLIC_URL));
            }
            _ => return None,
        };
        Some(Problem::new("console.oidc.client_id", message))
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
}
