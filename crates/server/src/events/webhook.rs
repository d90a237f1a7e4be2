//! Events over HTTP, signed.

use std::{error::Error, sync::Arc, time::Duration};

use async_trait::async_trait;
use headgate::Clock;
use headgate_config::Problem;
use headgate_quota::{EventKind, QuotaEvent};
use reqwest::{Client, StatusCode, Url, header::CONTENT_TYPE, redirect::Policy};
use ring::{digest, hmac};

use super::sink::{DeliveryError, Sink};
use crate::config::{WebhookConfig, WebhookUrl};

/// The kind of these sinks.
pub(super) const WEBHOOK: &str = "webhook";

/// Posts events to one address.
pub(super) struct Webhook {
    name: String,
    shown: String,
    url: Url,
    key: hmac::Key,
    wanted: Vec<EventKind>,
    client: Client,
    clock: Arc<dyn Clock>,
}

/// How many subjects a receiver is told of at a time.
const LINES: usize = 4;

/// How long a receiver may take to be there at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Webhook ===

impl Webhook {
    /// # Errors
    ///
    /// When the system's certificate authorities, which `https` needs, cannot be read.
    pub(super) fn new(
        config: &WebhookConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, reqwest::Error> {
        // Somebody else in the process may have done so before.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .timeout(config.timeout())
            .connect_timeout(CONNECT_TIMEOUT.min(config.timeout()))
            // The signature is for the one that was named, not for one it points to.
            .redirect(Policy::none())
            .user_agent(concat!("headgate/", env!("CARGO_PKG_VERSION")));
        if config.url.get().scheme() == "http" {
            client = client.tls_certs_only([]);
        }
        if config.url.is_loopback() {
            client = client.no_proxy();
        }
        Ok(Self {
            name: name(&config.url),
            shown: config.url.shown(),
            url: config.url.get().clone(),
            key: hmac::Key::new(hmac::HMAC_SHA256, config.secret.expose().as_bytes()),
            wanted: EventKind::ALL.into_iter().filter(|kind| config.wants(*kind)).collect(),
            client: client.build()?,
            clock,
        })
    }

    /// Covers the time, so that what was sent once cannot be sent again later as new.
    fn signature(&self, timestamp: &str, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(timestamp.as_bytes());
        context.update(b".");
        context.update(body);
        format!("v1={}", hex(context.sign().as_ref()))
    }
}

#[async_trait]
impl Sink for Webhook {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> &'static str {
        WEBHOOK
    }

    fn shown(&self) -> &str {
        &self.shown
    }

    fn lines(&self) -> usize {
        LINES
    }

    async fn deliver(&self, event: &QuotaEvent) -> Result<(), DeliveryError> {
        if !self.wanted.contains(&event.kind) {
            return Ok(());
        }
        let refused = |error: serde_json::Error| DeliveryError::Refused(error.to_string());
        let body = serde_json::to_vec(event).map_err(refused)?;
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
        // The status says all: of the answer's body nothing is read.
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        judge(answer.status())
    }
}

fn judge(status: StatusCode) -> Result<(), DeliveryError> {
    let told = || format!("it answered {status}");
    if status.is_success() {
        Ok(())
    } else if status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    {
        Err(DeliveryError::Unavailable(told()))
    } else {
        Err(DeliveryError::Refused(told()))
    }
}

/// What is at the bottom of it, without the address: it may hold a secret.
fn unreachable(error: &reqwest::Error) -> DeliveryError {
    if error.is_timeout() {
        return DeliveryError::Unavailable("it did not answer in time".to_owned());
    }
    let mut root: &dyn Error = error;
    while let Some(source) = root.source() {
        root = source;
    }
    DeliveryError::Unavailable(format!("it cannot be reached: {root}"))
}

/// By what name deliveries are noted: that of the address, which may hold a secret.
pub(super) fn name(url: &WebhookUrl) -> String {
    let digest = digest::digest(&digest::SHA256, url.get().as_str().as_bytes());
    format!("{WEBHOOK}:{}", hex(&digest.as_ref()[..16]))
}

/// Why events cannot even be sent.
pub(super) fn unusable(place: usize, error: &reqwest::Error) -> Problem {
    Problem::new(format!("webhooks[{place}].url"), format!("cannot be used: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}
