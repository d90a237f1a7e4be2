use serde::Deserialize;

/// Who may use the server.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct AuthConfig {
    /// `auth.mode`: must be written out to serve other machines without authentication.
    pub mode: Option<AuthMode>,
}

/// How callers are authenticated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all.
    Off,
}
