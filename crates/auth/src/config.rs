//! The sections `auth` and `console.oidc` of the configuration.

use std::{collections::HashSet, fmt, path::PathBuf};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections};
use headgate_tls_client::{Certificates, TlsFileError, TlsFiles};
use reqwest::Url;
use serde::Deserialize;

use crate::{FetchError, Role, fetch::JwksEndpoint};

/// Authentication of callers: the section `auth`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct AuthConfig {
    /// `auth.mode`: `off` disables authentication; other machines are served only if it is set
    /// explicitly.
    pub mode: Option<AuthMode>,
    /// `auth.jwks_url`: address of the JWK Set of the issuer.
    pub jwks_url: Option<HttpUrl>,
    /// `auth.issuer`: required `iss` of JWTs.
    pub issuer: Option<String>,
    /// `auth.audience`: required `aud` of JWTs.
    pub audience: Option<String>,
    /// `auth.ca_file`: authorities of the issuer's certificate, in PEM; default: the system's.
    pub ca_file: Option<PathBuf>,
    /// `auth.jwks_cache_seconds`: age at which the keys are fetched again.
    pub jwks_cache_seconds: Bounded<1, 86_400>,
    /// `auth.leeway_seconds`: tolerated clock skew of the issuer.
    pub leeway_seconds: Bounded<0, 300>,
    /// `auth.tokens`: static tokens.
    pub tokens: Vec<TokenConfig>,
    /// `auth.client_certificates`: names of client certificates, and their roles.
    pub client_certificates: Vec<ClientCertificateConfig>,
}

/// Sign-in of users at the issuer: the section `console.oidc`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct OidcConfig {
    /// `console.oidc.client_id`: id of this public client at the issuer; without it, users sign in
    /// with tokens.
    pub client_id: Option<String>,
    /// `console.oidc.authorization_endpoint`: overrides the one that the issuer publishes.
    pub authorization_endpoint: Option<HttpUrl>,
    /// `console.oidc.token_endpoint`: overrides the one that the issuer publishes.
    pub token_endpoint: Option<HttpUrl>,
    /// `console.oidc.scope`: requested scopes.
    pub scope: String,
}

/// Value of `auth.mode`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// No authentication.
    Off,
}

/// A static token.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct TokenConfig {
    /// Name of its owner in the audit log.
    pub name: String,
    /// Role of its owner.
    pub role: Role,
    /// The token; `token_file` names a file that holds it.
    pub token: Secret,
}

/// A name of client certificates.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a section")]
pub struct ClientCertificateConfig {
    /// A DNS name, URI or e-mail address among the subject alternative names; `*` stands for any
    /// characters of a label, path segment or user.
    pub name: String,
    /// Role of the client.
    pub role: Role,
}

/// An `http` or `https` URL without user and password.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct HttpUrl(Url);

/// Shorter tokens could be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// Longest token.
const MAX_TOKEN_BYTES: usize = 4096;

const MAX_NAME_CHARS: usize = 64;

/// Longest name of a client certificate.
const MAX_CERTIFICATE_NAME_BYTES: usize = 255;

// === impl AuthConfig ===

impl AuthConfig {
    /// Returns `true` if an issuer, a static token or a client certificate is configured.
    pub const fn authenticates(&self) -> bool {
        self.jwks_url.is_some() || !self.tokens.is_empty() || !self.client_certificates.is_empty()
    }

    /// Fetches the issuer's keys once. Returns their number, or `None` without an issuer.
    ///
    /// # Errors
    ///
    /// When the keys cannot be fetched. The message has no query of the URL, which may hold a
    /// secret.
    pub async fn count_keys(&self) -> Result<Option<usize>, FetchError> {
        let Some(url) = &self.jwks_url else { return Ok(None) };
        let endpoint = JwksEndpoint::new(url.get().clone(), &self.certificates()?)?;
        let keys = endpoint.fetch().await?;
        Ok(Some(keys.len()))
    }

    /// Reports values that are valid by themselves but not in combination.
    pub fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.mode == Some(AuthMode::Off) && self.authenticates() {
            let message = "off disables authentication, but there is a jwks_url, a token or a \
                           client certificate: remove one or the other";
            problems.push(Problem::new("auth.mode", message));
        }
        for (key, claim) in [("auth.issuer", &self.issuer), ("auth.audience", &self.audience)] {
            problems.extend(claim.as_ref().and_then(|claim| self.claim_problem(key, claim)));
        }
        problems.extend(self.ca_problem());
        let mut seen = HashSet::new();
        for (place, token) in self.tokens.iter().enumerate() {
            let problem = token.problem(&mut seen);
            problems.extend(problem.map(|(key, message)| {
                Problem::new(format!("auth.tokens[{place}].{key}"), message)
            }));
        }
        for (place, certificate) in self.client_certificates.iter().enumerate() {
            problems.extend(certificate.problem(&self.client_certificates[..place]).map(
                |message| Problem::new(format!("auth.client_certificates[{place}].name"), message),
            ));
        }
        problems
    }

    /// Returns the authorities of the issuer's certificate.
    pub(crate) fn certificates(&self) -> Result<Certificates, TlsFileError> {
        TlsFiles { ca_file: self.ca_file.clone(), ..TlsFiles::default() }.load()
    }

    fn ca_problem(&self) -> Option<Problem> {
        let of_issuer = self.issuer.as_deref().is_some_and(|url| url.starts_with("https://"));
        let of_keys = self.jwks_url.as_ref().is_some_and(|url| url.0.scheme() == "https");
        let message = match self.certificates() {
            Err(error) => error.to_string(),
            Ok(_) if self.ca_file.is_none() || of_keys || of_issuer => return None,
            Ok(_) => "only used with TLS: set auth.jwks_url to an https:// URL".to_owned(),
        };
        Some(Problem::new("auth.ca_file", message))
    }

    fn claim_problem(&self, key: &str, claim: &str) -> Option<Problem> {
        let message = match (&self.jwks_url, claim) {
            (_, "") => "expected a non-empty text",
            (None, _) => "requires auth.jwks_url, which is not set",
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
            ca_file: None,
            jwks_cache_seconds: Bounded::of::<600>(),
            leeway_seconds: Bounded::of::<30>(),
            tokens: Vec::new(),
            client_certificates: Vec::new(),
        }
    }
}

// === impl OidcConfig ===

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

// === impl TokenConfig ===

impl TokenConfig {
    /// Returns the invalid key with a message; `seen` has the names and tokens before this one.
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
            ("name", "duplicate name: another token has it".to_owned())
        } else if !seen.insert(token) {
            ("token", "duplicate token: another name has it".to_owned())
        } else {
            return None;
        };
        Some(wrong)
    }
}

// === impl ClientCertificateConfig ===

impl ClientCertificateConfig {
    /// Returns what is wrong with the name; `others` are the entries before this one.
    fn problem(&self, others: &[Self]) -> Option<&'static str> {
        let is_text = self.name.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_text || !(1..=MAX_CERTIFICATE_NAME_BYTES).contains(&self.name.len()) {
            return Some(
                "expected a DNS name, a URI such as spiffe://cluster.local/ns/prod/sa/api or an \
                 e-mail address: 1 to 255 visible ASCII characters",
            );
        }
        if self.name.bytes().all(|byte| byte == b'*') {
            return Some("a lone * would match any certificate of one kind: name a domain");
        }
        let is_duplicate = others.iter().any(|other| other.name == self.name);
        is_duplicate.then_some("duplicate name: another entry has it")
    }
}

// === impl HttpUrl ===

impl HttpUrl {
    /// Returns the URL.
    pub const fn get(&self) -> &Url {
        &self.0
    }

    /// Returns the URL with its query masked, which may hold a secret.
    fn shown(&self) -> String {
        let mut url = self.0.clone();
        if url.query().is_some() {
            url.set_query(Some("***"));
        }
        url.into()
    }

    /// Reports that no client can be created for this URL.
    pub(crate) fn unusable(&self, error: &reqwest::Error) -> Problem {
        Problem::new("auth.jwks_url", format!("cannot connect to {self:?}: {error}"))
    }
}

impl TryFrom<String> for HttpUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let url = Url::parse(&text).ok();
        // A password would appear in messages.
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

impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown())
    }
}

// === impl Print ===

print_sections! {
    AuthConfig {
        mode, jwks_url, issuer, audience, ca_file, jwks_cache_seconds, leeway_seconds, tokens,
        client_certificates,
    }
    ClientCertificateConfig { name, role }
    TokenConfig { name, role, token }
    OidcConfig { client_id, authorization_endpoint, token_endpoint, scope }
}

impl Print for AuthMode {
    fn print(&self) -> Printed {
        Printed::scalar(match self {
            Self::Off => "off",
        })
    }
}

impl Print for HttpUrl {
    fn print(&self) -> Printed {
        Printed::masked(self.shown(), self.0.as_str())
    }
}

#[cfg(test)]
mod tests;
