//! Where the token comes from that says who asks.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::Args;
use reqwest::header::HeaderValue;
use thiserror::Error;

use super::{HEADING, Server};

/// Where a server on this machine keeps the token it made for its operator.
const ADMIN_TOKEN: &str = "data/admin-token";

/// In whose name to ask.
#[derive(Debug, Args)]
pub(super) struct TokenOptions {
    /// The token that says who asks; also `HEADGATE_TOKEN`.
    ///
    /// Without one, a server on this machine is asked with the token in ./data/admin-token, if that can be read.
    #[arg(long, global = true, help_heading = HEADING, value_name = "TOKEN", conflicts_with = "token_file")]
    token: Option<Typed>,
    /// The file that holds the token; also `HEADGATE_TOKEN_FILE`.
    #[arg(long, global = true, help_heading = HEADING, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// What was typed as a token. Whether it is one is found out later: clap shows what does not parse.
#[derive(Clone)]
struct Typed(String);

/// Says who asks. It is never shown.
pub(super) struct Token(HeaderValue);

/// Why there is no token. Says where it was to come from, never what it is.
#[derive(Debug, Error)]
pub(crate) enum TokenError {
    #[error("the token in {place} {cause}")]
    Given { place: &'static str, cause: NotAToken },
    #[error("cannot read the token in {}: {cause}", path.display())]
    Unreadable { path: PathBuf, cause: io::Error },
    #[error("the token in {} {cause}", path.display())]
    File { path: PathBuf, cause: NotAToken },
}

/// A text that is no token.
#[derive(Clone, Copy, Debug, Error)]
#[error("is no token: it is empty, or has characters that no token has")]
pub(crate) struct NotAToken;

// === impl TokenOptions ===

impl TokenOptions {
    /// The token to ask `server` with. What was typed comes before what is in the environment.
    pub(super) fn find(&self, server: &Server) -> Result<Option<Token>, TokenError> {
        if let Some(Typed(token)) = &self.token {
            return given("--token", token).map(Some);
        }
        if let Some(file) = &self.token_file {
            return read(file).map(Some);
        }
        if let Some(token) = variable("HEADGATE_TOKEN") {
            return given("HEADGATE_TOKEN", &token).map(Some);
        }
        if let Some(file) = variable("HEADGATE_TOKEN_FILE") {
            return read(Path::new(&file)).map(Some);
        }
        // Nobody asked for this one, so it may be missing; and it is for nobody else.
        Ok(if server.is_loopback() { read(Path::new(ADMIN_TOKEN)).ok() } else { None })
    }
}

fn variable(name: &str) -> Option<String> {
    let value = env::var_os(name)?.to_string_lossy().into_owned();
    Some(value).filter(|value| !value.is_empty())
}

fn given(place: &'static str, text: &str) -> Result<Token, TokenError> {
    text.parse().map_err(|cause| TokenError::Given { place, cause })
}

fn read(path: &Path) -> Result<Token, TokenError> {
    let text = fs::read_to_string(path)
        .map_err(|cause| TokenError::Unreadable { path: path.to_owned(), cause })?;
    text.parse().map_err(|cause| TokenError::File { path: path.to_owned(), cause })
}

// === impl Token ===

impl Token {
    /// The header that carries it.
    pub(super) fn bearer(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl FromStr for Token {
    type Err = NotAToken;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(NotAToken);
        }
        let mut header =
            HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| NotAToken)?;
        header.set_sensitive(true);
        Ok(Self(header))
    }
}

// === impl Typed ===

impl From<String> for Typed {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
