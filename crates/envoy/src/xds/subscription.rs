//! The responses of the management server: accepted (ACK) or refused (NACK).

use std::{sync::Arc, time::Duration};

use headgate_config::quoted;
use prost_types::Any;
use tokio::{task, time};
use tonic::Code;
use tracing::info;

use super::{
    proto::{
        envoy::service::discovery::v3::{DiscoveryRequest, DiscoveryResponse},
        google::rpc,
    },
    resource::{self, TYPE_URL},
};
use crate::{EnvoyCatalog, EnvoyMetrics, XdsUrl, compiled::Domains};

/// The configurations that the server has sent, across connections.
pub(super) struct Subscription {
    url: XdsUrl,
    catalog: Arc<EnvoyCatalog>,
    metrics: EnvoyMetrics,
    /// The configuration in force.
    accepted: Option<ConfigVersion>,
    /// The newest configuration, if it was refused.
    refused: Option<ConfigVersion>,
}

/// A configuration that the server sent.
#[derive(PartialEq)]
struct ConfigVersion {
    name: String,
    /// Sorted: servers send the same resources in any order.
    resources: Arc<Vec<Any>>,
}

/// Delay of the answer to an invalid configuration after another one: some servers resend theirs at
/// once, forever, and with new contents each time.
const REPEATED_REFUSAL_PAUSE: Duration = Duration::from_secs(2);

/// Maximum length of the reason that is sent to the server.
const MAX_REASON_BYTES: usize = 4096;

// === impl Subscription ===

impl Subscription {
    pub(super) const fn new(
        url: XdsUrl,
        catalog: Arc<EnvoyCatalog>,
        metrics: EnvoyMetrics,
    ) -> Self {
        Self { url, catalog, metrics, accepted: None, refused: None }
    }

    /// Puts a response in force or refuses it, and returns the answer to the server.
    pub(super) async fn answer(&mut self, response: DiscoveryResponse) -> DiscoveryRequest {
        let DiscoveryResponse { version_info, resources, nonce, .. } = response;
        let version = ConfigVersion::new(version_info, resources);
        let is_repeated = self.refused.is_some();
        let result = self.apply(version).await;
        self.record_response();
        if is_repeated && result.is_err() {
            time::sleep(REPEATED_REFUSAL_PAUSE).await;
        }
        let error_detail = result.err().map(|reason| rpc::Status {
            code: Code::InvalidArgument.into(),
            message: truncated(reason),
            details: Vec::new(),
        });
        let accepted = self.accepted.as_ref();
        DiscoveryRequest {
            version_info: accepted.map(|version| version.name.clone()).unwrap_or_default(),
            type_url: TYPE_URL.to_owned(),
            response_nonce: nonce,
            error_detail,
            ..DiscoveryRequest::default()
        }
    }

    async fn apply(&mut self, version: ConfigVersion) -> Result<(), String> {
        let is_same = |other: &ConfigVersion| other.resources == version.resources;
        if self.refused.is_none() && self.accepted.as_ref().is_some_and(is_same) {
            self.accepted = Some(version);
            return Ok(());
        }
        match compile(&version).await {
            Ok(domains) => {
                info!(version = version.name, url = %self.url, "accepted Envoy configuration");
                self.catalog.replace(domains, &self.metrics);
                self.refused = None;
                self.accepted = Some(version);
                Ok(())
            }
            Err(reason) => {
                let error = format!("version {} of {}: {reason}", quoted(&version.name), self.url);
                self.catalog.refuse(&error, &self.metrics);
                self.refused = Some(version);
                Err(reason)
            }
        }
    }

    /// Only a response proves that the server works: a proxy in between accepts connections, too.
    fn record_response(&self) {
        self.metrics.xds_connected(true);
        self.catalog.set_unreachable(None);
    }
}

/// Compiles on a blocking thread: megabytes of descriptors would delay requests.
async fn compile(version: &ConfigVersion) -> Result<Domains, String> {
    let resources = Arc::clone(&version.resources);
    let compiled = task::spawn_blocking(move || resource::domains(&resources)).await;
    compiled.unwrap_or_else(|error| Err(format!("failed to compile the resources: {error}")))
}

fn truncated(mut text: String) -> String {
    let end = (0..=MAX_REASON_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

// === impl ConfigVersion ===

impl ConfigVersion {
    fn new(name: String, mut resources: Vec<Any>) -> Self {
        resources.sort_unstable_by(|a, b| (&a.type_url, &a.value).cmp(&(&b.type_url, &b.value)));
        Self { name, resources: Arc::new(resources) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// go-control-plane keeps resources in a map, whose order changes with each response.
    #[test]
    fn the_order_of_resources_makes_no_difference() {
        let any = |type_url: &str, value: u8| Any { type_url: type_url.into(), value: vec![value] };
        let version = |resources: &[Any]| ConfigVersion::new("1".to_owned(), resources.to_vec());
        let (a, b, c) = (any("t", 1), any("t", 2), any("u", 1));
        let sent = version(&[a.clone(), b.clone(), c.clone()]);
        assert!(sent == version(&[c.clone(), b, a.clone()]));
        assert!(sent != version(&[a.clone(), a, c]));
        assert!(sent != ConfigVersion::new("2".to_owned(), sent.resources.to_vec()));
    }

    /// A server that resends at once must not keep a core busy, whatever it sends.
    #[tokio::test]
    async fn every_refusal_after_another_is_answered_late() {
        let url: XdsUrl = "http://127.0.0.1:1".to_owned().try_into().unwrap();
        let metrics = EnvoyMetrics::new(&prometheus::Registry::new()).unwrap();
        let catalog = Arc::new(EnvoyCatalog::starting());
        let mut subscription = Subscription::new(url, catalog, metrics);
        let sent = |value: &[u8]| DiscoveryResponse {
            resources: vec![Any { type_url: TYPE_URL.to_owned(), value: value.to_vec() }],
            ..DiscoveryResponse::default()
        };
        assert!(subscription.answer(sent(b"a")).await.error_detail.is_some());
        let started = time::Instant::now();
        assert!(subscription.answer(sent(b"b")).await.error_detail.is_some());
        assert!(started.elapsed() >= REPEATED_REFUSAL_PAUSE);
    }

    #[test]
    fn a_long_reason_is_truncated_between_characters() {
        assert_eq!(truncated("short".to_owned()), "short");
        let long = "\u{e9}".repeat(MAX_REASON_BYTES);
        assert_eq!(truncated(format!("x{long}")).len(), MAX_REASON_BYTES - 1);
    }
}
