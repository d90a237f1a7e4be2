use std::{collections::HashSet, fmt};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections};
use reqwest::Url;
use serde::Deserialize;

pub use crate::auth::Role;

/// Who may use the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct AuthConfig {
    /// `auth.mode`: must be written out to serve other machines without authentication.
    pub mode: Option<AuthMode>,
    /// `auth.jwks_url`: where an issuer publishes the keys that it signs tokens with.
    pub jwks_url: Option<JwksUrl>,
    /// `auth.issuer`: what a token's `iss` must say.
    pub issuer: Option<String>,
    /// `auth.audience`: what a token's `aud` must name.
    pub audience: Option<String>,
    /// `auth.jwks_cache_seconds`: how long keys are used before they are fetched again.
    pub jwks_cache_seconds: Bounded<1, 86_400>,
    /// `auth.leeway_seconds`: how far the issuer's clock may be from this server's.
    pub leeway_seconds: Bounded<0, 300>,
    /// `auth.tokens`: tokens that need no issuer.
    pub tokens: Vec<TokenConfig>,
}

/// How callers are authenticated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all.
    Off,
}

/// A token that needs no issuer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct TokenConfig {
    /// Whose it is, as the audit log names them.
    pub name: String,
    /// What it grants.
    pub role: Role,
    /// The token itself, or, as `token_file`, a file that holds it.
    pub token: Secret,
}

/// An address that answers with a JWK Set.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct JwksUrl(Url);

/// Fewer could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// More would not be looked at.
const MAX_TOKEN_BYTES: usize = 4096;

const MAX_NAME_CHARS: usize = 64;

// === impl AuthConfig ===

impl AuthConfig {
    /// Whether callers on other machines can prove who they are.
    pub const fn authenticates(&self) -> bool {
        self.jwks_url.is_some() || !self.tokens.is_empty()
    }

    /// What each key accepts by itself but the section cannot.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.mode == Some(AuthMode::Off) && self.authenticates() {
            let message = "off lets everybody do everything, and yet there is a jwks_url or a token: \
                           remove one or the other";
            problems.push(Problem::new("auth.mode", message));
        }
        for (key, claim) in [("auth.issuer", &self.issuer), ("auth.audience", &self.audience)] {
            problems.extend(claim.as_ref().and_then(|claim| self.claim_problem(key, claim)));
        }
        let mut seen = HashSet::new();
        for (place, token) in self.tokens.iter().enumerate() {
            let told = token.problem(&mut seen);
            problems.extend(told.map(|(key, message)| {
                Problem::new(format!("auth.tokens[{place}].{key}"), message)
            }));
        }
        problems
    }

    fn claim_problem(&self, key: &str, claim: &str) -> Option<Problem> {
        let message = match (&self.jwks_url, claim) {
            (_, "") => "expected a text that is not empty",
            (None, _) => "says what an issuer's tokens must claim, but there is no auth.jwks_url",
            (Some(_), _) => return None,
        };
        Some(Problem::new(key, message))
    }
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            mode: None,
            jwks_url: None,
            issuer: None,
            audience: None,
            jwks_cache_seconds: Bounded::of::<600>(),
            leeway_seconds: Bounded::of::<30>(),
            tokens: Vec::new(),
        }
    }
}

// === impl TokenConfig ===

impl TokenConfig {
    /// The key that is wrong, and in what way; `seen` has the names and tokens before this one.
    fn problem<'a>(&'a self, seen: &mut HashSet<&'a str>) -> Option<(&'static str, String)> {
        let token = self.token.expose();
        let name_fits = (1..=MAX_NAME_CHARS).contains(&self.name.chars().count())
            && !self.name.contains(char::is_control);
        let token_fits = (MIN_TOKEN_BYTES..=MAX_TOKEN_BYTES).contains(&token.len())
            && token.bytes().all(|byte| byte.is_ascii_graphic());
        let wrong = if !name_fits {
            ("name", format!("expected 1 to {MAX_NAME_CHARS} visible characters"))
        } else if !token_fits {
            let range = format!("{MIN_TOKEN_BYTES} to {MAX_TOKEN_BYTES}");
            ("token", format!("expected {range} visible ASCII characters, without spaces"))
        } else if !seen.insert(&self.name) {
            ("name", "another token has the same name".to_owned())
        } else if !seen.insert(token) {
            ("token", "another name has the same token".to_owned())
        } else {
            return None;
        };
        Some(wrong)
    }
}

// === impl JwksUrl ===

impl JwksUrl {
    pub(crate) const fn get(&self) -> &Url {
        &self.0
    }

    /// Why keys cannot even be asked for.
    pub(crate) fn unusable(&self, error: &reqwest::Error) -> Problem {
        Problem::new("auth.jwks_url", format!("cannot ask {self:?}: {error}"))
    }
}

impl TryFrom<String> for JwksUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = Url::parse(&text).ok();
        // A password would end up in messages.
        let fits = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.username().is_empty()
                && url.password().is_none()
        };
        url.filter(fits).map(Self).ok_or_else(|| {
            "expected an http:// or https:// URL without user or password, such as \
             https://issuer.example/realms/main/protocol/openid-connect/certs"
                .to_owned()
        })
    }
}

impl fmt::Debug for JwksUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

// === impl Print ===

print_sections! {
    AuthConfig { mode, jwks_url, issuer, audience, jwks_cache_seconds, leeway_seconds, tokens }
    TokenConfig { name, role, token }
}

impl Print for AuthMode {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::Off => "off",
        })
    }
}

impl Print for JwksUrl {
    fn print(&self) -> Printed {
        Printed::scalar(self.get().as_str())
    }
}

impl Print for Role {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

#[cfg(test)]
mod tests;
