//! Events over HTTP, signed.

use std::{error::Error, net::TcpStream, sync::Arc, time::Duration};

use async_trait::async_trait;
use headgate::Clock;
use headgate_config::Problem;
use headgate_quota::{EventKind, QuotaEvent};
use headgate_tls_client::{CertificateError, TlsFileError, TlsFiles, explain};
use reqwest::{Client, StatusCode, Url, header::CONTENT_TYPE, redirect::Policy};
use ring::{digest, hmac};
use thiserror::Error as ThisError;

use super::{DeliveryError, EventSink};
use crate::{WebhookConfig, WebhookUrl};

/// Kind of these sinks.
const WEBHOOK: &str = "webhook";

/// Posts events to one URL.
pub(super) struct Webhook {
    name: String,
    display_name: String,
    url: Url,
    key: hmac::Key,
    subscribed: Vec<EventKind>,
    client: Client,
    clock: Arc<dyn Clock>,
}

/// A client that cannot be created.
#[derive(Debug, ThisError)]
pub(super) enum WebhookError {
    #[error(transparent)]
    File(#[from] TlsFileError),
    #[error("cannot create a client: {0}")]
    Certificates(#[from] CertificateError),
    #[error("cannot create a client: {0}")]
    Client(#[from] reqwest::Error),
}

/// Subjects whose events are in flight at a time.
const CONCURRENCY: usize = 4;

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Webhook ===

impl WebhookConfig {
    /// Connects to the receiver, over TLS up to the end of the handshake. Sends no request, which a
    /// receiver might take for an event. Blocks for up to its timeout.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be reached.
    pub fn try_connect(&self) -> Result<(), String> {
        let (host, port) = self.url.address();
        if self.url.get().scheme() == "http" {
            return TcpStream::connect((host.as_str(), port))
                .map(drop)
                .map_err(|it| it.to_string());
        }
        let certificates = self.tls_files().load().map_err(|error| error.to_string())?;
        certificates.try_handshake(&host, port, self.timeout()).map_err(|error| {
            explain(&error, "the receiver", "webhooks[]").unwrap_or_else(|| error.to_string())
        })
    }
}

impl Webhook {
    /// # Errors
    ///
    /// When certificate files are invalid, or the system's certificate authorities cannot be read,
    /// which `https` needs.
    pub(super) fn new(config: &WebhookConfig, clock: Arc<dyn Clock>) -> Result<Self, WebhookError> {
        // Fails if the process has a provider already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .timeout(config.timeout())
            .connect_timeout(CONNECT_TIMEOUT.min(config.timeout()))
            // The signature is for the configured URL, not for another one.
            .redirect(Policy::none())
            .user_agent(concat!("headgate/", env!("CARGO_PKG_VERSION")));
        let files = config.tls_files();
        if config.url.get().scheme() == "http" {
            client = client.tls_certs_only([]);
        } else if files != TlsFiles::default() {
            client = client.tls_backend_preconfigured(files.load()?.client_config()?);
        }
        if config.url.is_loopback() {
            client = client.no_proxy();
        }
        Ok(Self {
            name: name(&config.url),
            display_name: config.url.shown(),
            url: config.url.get().clone(),
            key: hmac::Key::new(hmac::HMAC_SHA256, config.secret.expose().as_bytes()),
            subscribed: EventKind::ALL.into_iter().filter(|kind| config.wants(*kind)).collect(),
            client: client.build()?,
            clock,
        })
    }

    /// Signs the time as well, so that a request cannot be replayed later.
    fn signature(&self, timestamp: &str, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(timestamp.as_bytes());
        context.update(b".");
        context.update(body);
        format!("v1={}", hex(context.sign().as_ref()))
    }
}

#[async_trait]
impl EventSink for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        WEBHOOK
    }

    fn display_name(&self) -> &str {
        &self.display_name
    }

    fn concurrency(&self) -> usize {
        CONCURRENCY
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        if !self.subscribed.contains(&event.kind) {
            return Ok(());
        }
        let invalid = |error: serde_json::Error| DeliveryError::Rejected(error.to_string());
        let body = serde_json::to_vec(event).map_err(invalid)?;
        let timestamp = (self.clock.now().as_micros() / 1_000_000).to_string();
        let request = self
            .client
            .post(self.url.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("X-Headgate-Event", event.kind.name())
            .header("X-Headgate-Delivery", &event.event_id)
            .header("X-Headgate-Signature", self.signature(&timestamp, &body))
            .header("X-Headgate-Timestamp", timestamp)
            .body(body);
        // The status is enough: the body is not read.
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        outcome(response.status())
    }
}

fn outcome(status: StatusCode) -> Result<(), DeliveryError> {
    let message = || format!("status {status}");
    if status.is_success() {
        Ok(())
    } else if status == StatusCode::TOO_MANY_REQUESTS {
        Err(DeliveryError::Unavailable(message()))
    } else if status.is_server_error() || status == StatusCode::REQUEST_TIMEOUT {
        Err(DeliveryError::Failed(message()))
    } else {
        Err(DeliveryError::Rejected(message()))
    }
}

/// Reports the root cause without the URL, which may hold a secret.
fn unreachable(error: &reqwest::Error) -> DeliveryError {
    if error.is_timeout() {
        let timeout = "timeout".to_owned();
        // A receiver that accepts connections may hang on this event alone.
        return if error.is_connect() {
            DeliveryError::Unavailable(timeout)
        } else {
            DeliveryError::Failed(timeout)
        };
    }
    if let Some(text) = explain(error, "the receiver", "webhooks[]") {
        return DeliveryError::Unavailable(format!("cannot connect: TLS: {text}"));
    }
    let mut root: &dyn Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    DeliveryError::Unavailable(format!("cannot connect: {root}"))
}

/// Returns the name under which deliveries are recorded: a digest of the URL, which may hold a
/// secret.
fn name(url: &WebhookUrl) -> String {
    let digest = digest::digest(&digest::SHA256, url.get().as_str().as_bytes());
    format!("{WEBHOOK}:{}", hex(&digest.as_ref()[..16]))
}

/// Reports that no client can be created for the URL.
pub(super) fn unusable(index: usize, error: &WebhookError) -> Problem {
    let key = match error {
        WebhookError::File(error) => error.key,
        _ => "url",
    };
    Problem::new(format!("webhooks[{index}].{key}"), error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_a_receiver_are_not_taken_for_an_outage_at_once() {
        for status in [200, 204] {
            assert_eq!(outcome(StatusCode::from_u16(status).unwrap()), Ok(()));
        }
        for status in [408, 500, 503] {
            let failed = outcome(StatusCode::from_u16(status).unwrap());
            assert!(matches!(failed, Err(DeliveryError::Failed(_))), "{failed:?}");
        }
        let rejected = outcome(StatusCode::BAD_REQUEST);
        assert!(matches!(rejected, Err(DeliveryError::Rejected(_))), "{rejected:?}");
        let busy = outcome(StatusCode::TOO_MANY_REQUESTS);
        assert!(matches!(busy, Err(DeliveryError::Unavailable(_))), "{busy:?}");
    }
}
