use std::{fmt, fs, io, str::FromStr};

use super::{ConfigError, variables::Variables};

/// What only those who may make identifiers know. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(super) const VARIABLE: &str = "POSTS_HMAC_SECRET";
    pub(super) const FILE_VARIABLE: &str = "POSTS_HMAC_SECRET_FILE";

    /// Shorter ones can be guessed.
    const MIN_BYTES: usize = 16;

    /// The secret.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(super) fn load(variables: &Variables) -> Result<Option<Self>, ConfigError> {
        let (written, file) = (variables.get(Self::VARIABLE), variables.get(Self::FILE_VARIABLE));
        let (variable, secret) = match (written, file) {
            (None, None) => return Ok(None),
            (Some(secret), None) => (Self::VARIABLE, secret.to_owned()),
            (None, Some(path)) => {
                let read = fs::read_to_string(path);
                let cannot =
                    |error: io::Error| ConfigError::new(Self::FILE_VARIABLE, error.to_string());
                (Self::FILE_VARIABLE, read.map_err(cannot)?)
            }
            (Some(_), Some(_)) => {
                let problem = format!("{} is set too: set one of them", Self::VARIABLE);
                return Err(ConfigError::new(Self::FILE_VARIABLE, problem));
            }
        };
        secret.parse().map(Some).map_err(|problem: &str| ConfigError::new(variable, problem))
    }
}

impl FromStr for Secret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        if text.len() < Self::MIN_BYTES {
            return Err("expected at least 16 bytes, such as `openssl rand -hex 32` makes");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
