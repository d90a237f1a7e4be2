//! Requests to an issuer, bounded in size and time.

use std::{fmt, time::Duration};

use headgate_tls_client::{Certificates, TlsFileError, explain};
use reqwest::{Client, Response, StatusCode, Url, redirect::Policy};
use thiserror::Error;

use crate::key::KeySet;

const TIMEOUT: Duration = Duration::from_secs(2);
const MAX_BYTES: usize = 1024 * 1024;

/// An address that publishes a JWK Set.
pub(crate) struct JwksEndpoint {
    url: Url,
    client: Client,
}

/// A failed request to an issuer.
#[derive(Debug, Error)]
pub enum FetchError {
    /// The request failed.
    #[error("{}", causes(.0))]
    Http(#[source] reqwest::Error),
    /// The authorities of the issuer cannot be used.
    #[error(transparent)]
    Authorities(#[from] TlsFileError),
    /// The status is not 200.
    #[error("status {0}")]
    Status(StatusCode),
    /// The body is too large.
    #[error("response larger than {MAX_BYTES} bytes")]
    TooLarge,
    /// The body is not a JWK Set.
    #[error("response is not a JWK Set: {0}")]
    NoKeySet(#[from] serde_json::Error),
    /// The JWK Set has no usable key.
    #[error("response has no RSA, P-256 or Ed25519 key with a kid")]
    NoKeys,
}

// === impl FetchError ===

/// Without the URL, whose query may hold a secret.
impl From<reqwest::Error> for FetchError {
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

// === impl JwksEndpoint ===

impl JwksEndpoint {
    /// # Errors
    ///
    /// When the system's certificate authorities, which `https` needs, cannot be read.
    pub(crate) fn new(url: Url, certificates: &Certificates) -> Result<Self, reqwest::Error> {
        let client = client(&url, certificates)?;
        Ok(Self { url, client })
    }

    pub(crate) async fn fetch(&self) -> Result<KeySet, FetchError> {
        let response = self.client.get(self.url.clone()).send().await?;
        let keys = KeySet::parse(&body(response).await?)?;
        if keys.len() == 0 { Err(FetchError::NoKeys) } else { Ok(keys) }
    }
}

/// Creates an HTTP client for an issuer, with a timeout.
pub(crate) fn client(url: &Url, certificates: &Certificates) -> Result<Client, reqwest::Error> {
    // Fails if the process has a provider already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder()
        .timeout(TIMEOUT)
        .redirect(Policy::none())
        // Requests are minutes apart: a kept connection would be stale by then.
        .pool_max_idle_per_host(0);
    if url.scheme() == "http" {
        client = client.tls_certs_only([]);
    } else if certificates.authorities().is_some()
        && let Ok(config) = certificates.client_config()
    {
        client = client.tls_backend_preconfigured(config);
    }
    if is_loopback(url) {
        client = client.no_proxy();
    }
    client.build()
}

/// Reads the body of a successful response, up to a maximum size.
pub(crate) async fn body(mut response: Response) -> Result<Vec<u8>, FetchError> {
    if response.status() != StatusCode::OK {
        return Err(FetchError::Status(response.status()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(FetchError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Without a query, which may hold a secret.
impl fmt::Display for JwksEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// Explains an error of TLS; returns others with their causes: reqwest itself only says that
/// sending failed.
pub(crate) fn causes(error: &reqwest::Error) -> String {
    if let Some(text) = explain(error, "the issuer", "auth") {
        return format!("TLS: {text}");
    }
    let mut message = String::new();
    let mut next: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = next {
        let separator = if message.is_empty() { "" } else { ": " };
        message = format!("{message}{separator}{error}");
        next = error.source();
    }
    message
}
