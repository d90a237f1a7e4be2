//! Where an issuer publishes its keys, and how they are fetched: within bounds of size and time.

use std::{fmt, time::Duration};

use reqwest::{Client, Response, StatusCode, Url, redirect::Policy};
use thiserror::Error;

use super::key::KeySet;

const TIMEOUT: Duration = Duration::from_secs(2);
const MAX_BYTES: usize = 1024 * 1024;

/// An address that answers with a JWK Set.
pub(super) struct Source {
    url: Url,
    client: Client,
}

/// Why there are no keys.
#[derive(Debug, Error)]
pub(crate) enum FetchError {
    #[error("{}", causes(.0))]
    Http(#[from] reqwest::Error),
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("its answer is larger than {MAX_BYTES} bytes")]
    TooLarge,
    #[error("its answer is no JWK Set: {0}")]
    NoKeySet(#[from] serde_json::Error),
    #[error("its answer has no RSA, P-256 or Ed25519 key that has a kid")]
    NoKeys,
}

// === impl Source ===

impl Source {
    /// # Errors
    ///
    /// When the system's certificate authorities, which `https` needs, cannot be read.
    pub(super) fn new(url: Url) -> Result<Self, reqwest::Error> {
        let client = client(&url)?;
        Ok(Self { url, client })
    }

    pub(super) async fn fetch(&self) -> Result<KeySet, FetchError> {
        let answer = self.client.get(self.url.clone()).send().await?;
        let keys = KeySet::read(&body(answer).await?)?;
        if keys.len() == 0 { Err(FetchError::NoKeys) } else { Ok(keys) }
    }
}

/// Asks an issuer, within bounds of time.
pub(crate) fn client(url: &Url) -> Result<Client, reqwest::Error> {
    // Somebody else in the process may have done so before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        // It is asked once in minutes: a connection would be stale by then.
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        client = client.tls_certs_only([]);
    }
    if is_loopback(url) {
        client = client.no_proxy();
    }
    client.build()
}

/// All of an answer that is one, within bounds of size.
pub(crate) async fn body(mut answer: Response) -> Result<Vec<u8>, FetchError> {
    if answer.status() != StatusCode::OK {
        return Err(FetchError::Status(answer.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(FetchError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Without a query, which may hold a secret.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// The error and what it comes from: reqwest itself only says that sending failed.
fn causes(error: &reqwest::Error) -> String {
    let mut told = String::new();
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        let separator = if told.is_empty() { "" } else { ": " };
        told = format!("{told}{separator}{error}");
        next = error.source();
    }
    told
}
