//! The token that authenticates requests.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use reqwest::header::HeaderValue;
use thiserror::Error;

use super::{HEADING, Server};

/// File in which a local server keeps the admin token that it generated.
const ADMIN_TOKEN: &str = "data/admin-token";

/// Options that name the token.
#[derive(Debug, Args)]
pub(super) struct TokenOptions {
    /// Token that authenticates requests; also `HEADGATE_TOKEN`.
    ///
    /// By default, requests to a server on this machine use the token in ./data/admin-token, if
    /// that file is readable.
    #[arg(long, global = true, help_heading = HEADING, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<TokenArg>,
    /// File that contains the token; also `HEADGATE_TOKEN_FILE`.
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// A token on the command line. It is validated later, because clap prints values that do not
/// parse.
#[derive(Clone)]
struct TokenArg(String);

/// A valid token. It is never printed.
pub(super) struct Token(HeaderValue);

/// An invalid or unreadable token. Messages name its source, never its value.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    #[error("{cause} in {place}")]
    Value { place: &'static str, cause: InvalidToken },
    #[error("cannot read the token file {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("{cause} in {}", path.display())]
    File { path: PathBuf, cause: InvalidToken },
}

/// Invalid token.
#[derive(Clone, Copy, Debug, Error)]
#[error("invalid token (empty, or with characters that are not allowed)")]
pub(crate) struct InvalidToken;

// === impl TokenOptions ===

impl TokenOptions {
    /// Returns the token for `server`. Options take precedence over the environment.
    pub(super) fn find(&self, server: &Server) -> Result<Option<Token>, TokenError> {
        if let Some(TokenArg(token)) = &self.token {
            return parse("--token", token).map(Some);
        }
        if let Some(file) = &self.token_file {
            return read(file).map(Some);
        }
        if let Some(token) = variable("HEADGATE_TOKEN") {
            return parse("HEADGATE_TOKEN", &token).map(Some);
        }
        if let Some(file) = variable("HEADGATE_TOKEN_FILE") {
            return read(Path::new(&file)).map(Some);
        }
        // The default file may be missing, and must not be sent to another machine.
        Ok(if server.is_loopback() { read(Path::new(ADMIN_TOKEN)).ok() } else { None })
    }
}

fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}

fn parse(place: &'static str, text: &str) -> Result<Token, TokenError> {
    text.parse().map_err(|cause| TokenError::Value { place, cause })
}

fn read(path: &Path) -> Result<Token, TokenError> {
    let text = fs::read_to_string(path)
        .map_err(|cause| TokenError::Unreadable { path: path.to_owned(), cause })?;
    text.parse().map_err(|cause| TokenError::File { path: path.to_owned(), cause })
}

// === impl Token ===

impl Token {
    /// The value of the `Authorization` header.
    pub(super) fn bearer(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl FromStr for Token {
    type Err = InvalidToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidToken);
        }
        let mut header =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| InvalidToken)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }
}

// === impl TokenArg ===

impl From<String> for TokenArg {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for TokenArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
