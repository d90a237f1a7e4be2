//! The subscription.

use std::{sync::Arc, time::Duration};

use futures_util::stream;
use headgate_config::quoted;
use headgate_resilience::Backoff;
use prost_types::Any;
use thiserror::Error;
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    task, time,
};
use tonic::{Code, Status};
use tracing::{info, warn};

use super::{
    channel::{self, ChannelError},
    proto::{
        envoy::{
            config::core::v3::Node,
            service::discovery::v3::{
                DiscoveryRequest, DiscoveryResponse,
                aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
            },
        },
        google::rpc,
    },
    resource::{self, TYPE_URL},
};
use crate::{
    config::{XdsConfig, XdsUrl},
    envoy::{catalog::EnvoyCatalog, source::Domains},
    metrics::EnvoyNumbers,
};

/// Follows a management server, for as long as it is polled.
pub(crate) struct XdsClient {
    url: XdsUrl,
    config: XdsConfig,
    catalog: Arc<EnvoyCatalog>,
    numbers: EnvoyNumbers,
    /// Ends the pause before the next connection attempt.
    reload: Arc<Notify>,
    /// The configuration in force.
    accepted: Option<Version>,
    /// The last one, if it is not.
    refused: Option<Version>,
}

/// A configuration that the server sent.
#[derive(PartialEq)]
struct Version {
    name: String,
    /// Sorted: servers send the same resources in any order.
    resources: Arc<Vec<Any>>,
}

/// Why a stream ended.
#[derive(Debug, Error)]
enum StreamError {
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("{}: {}", .0.code(), .0.message())]
    Status(Status),
    #[error("the management server ended the stream: its log says why")]
    Ended,
    #[error("the server sent resources of the type {0}, which were not asked for")]
    WrongType(String),
    #[error("the server does not read what it is answered")]
    Unread,
}

/// Answers that wait for the server to read them.
const MAX_UNREAD: usize = 8;

/// Delay of the answer to a configuration that was refused before: some servers resend it at once, forever.
const REPEATED_REFUSAL_PAUSE: Duration = Duration::from_secs(2);

/// The most that the server is told of a refusal.
const MAX_REASON_BYTES: usize = 4096;

// === impl XdsClient ===

impl XdsClient {
    /// A client that has not connected yet, and the catalog that it fills.
    pub(crate) fn new(
        url: XdsUrl,
        config: XdsConfig,
        numbers: EnvoyNumbers,
    ) -> (Arc<EnvoyCatalog>, Self) {
        let catalog = Arc::new(EnvoyCatalog::starting());
        let waits = format!("waiting for the first configuration from {url}");
        catalog.set_unreachable(Some(waits));
        numbers.xds_connected(false);
        let (reload, accepted, refused) = (Arc::default(), None, None);
        let client =
            Self { url, config, catalog: Arc::clone(&catalog), numbers, reload, accepted, refused };
        (catalog, client)
    }

    /// Ends the pause before the next connection attempt.
    pub(crate) const fn reload(&self) -> &Arc<Notify> {
        &self.reload
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(mut self) {
        let catalog = Arc::clone(&self.catalog);
        let wait = self.config.initial_wait();
        let patience = async {
            time::sleep(wait).await;
            if catalog.is_starting() {
                warn!(
                    "No Envoy configuration within {wait:?}: ready without one, descriptors are not decided"
                );
                catalog.started();
            }
        };
        tokio::join!(patience, self.follow_for_ever());
    }

    async fn follow_for_ever(&mut self) {
        let mut backoff = Backoff::default();
        loop {
            let Err(error) = self.follow(&mut backoff).await;
            let pause = backoff.next_pause();
            self.note_loss(&error, pause);
            tokio::select! {
                () = time::sleep(pause) => {}
                () = self.reload.notified() => {}
            }
        }
    }

    /// One stream, until it ends.
    async fn follow(
        &mut self,
        backoff: &mut Backoff,
    ) -> Result<std::convert::Infallible, StreamError> {
        let channel = channel::connect(&self.url, &self.config).await?;
        self.note_connection();
        let (answers, mut unread) = mpsc::channel(MAX_UNREAD);
        let send = |request| {
            answers.try_send(request).map_err(|error| match error {
                TrySendError::Full(_) => StreamError::Unread,
                TrySendError::Closed(_) => StreamError::Ended,
            })
        };
        // A new stream begins without a version: the server sends what it has, whatever it was before.
        send(DiscoveryRequest {
            node: Some(self.node()),
            type_url: TYPE_URL.to_owned(),
            ..DiscoveryRequest::default()
        })?;
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.config.max_message_bytes.get() as usize);
        let requests = stream::poll_fn(move |context| unread.poll_recv(context));
        let responses = client.stream_aggregated_resources(requests).await;
        let mut responses = responses.map_err(StreamError::Status)?.into_inner();
        while let Some(response) = responses.message().await.map_err(StreamError::Status)? {
            if response.type_url != TYPE_URL {
                return Err(StreamError::WrongType(quoted(&response.type_url)));
            }
            backoff.reset();
            send(self.answer(response).await)?;
        }
        Err(StreamError::Ended)
    }

    /// Puts a response in force, or refuses it.
    async fn answer(&mut self, response: DiscoveryResponse) -> DiscoveryRequest {
        let DiscoveryResponse { version_info, resources, nonce, .. } = response;
        let version = Version::new(version_info, resources);
        let repeated = self.refused.as_ref() == Some(&version);
        let taken = self.take(version).await;
        self.note_response();
        if repeated && taken.is_err() {
            time::sleep(REPEATED_REFUSAL_PAUSE).await;
        }
        let error_detail = match taken {
            Ok(()) => None,
            Err(reason) => Some(rpc::Status {
                code: Code::InvalidArgument.into(),
                message: shortened(reason),
                details: Vec::new(),
            }),
        };
        let accepted = self.accepted.as_ref();
        DiscoveryRequest {
            version_info: accepted.map(|version| version.name.clone()).unwrap_or_default(),
            type_url: TYPE_URL.to_owned(),
            response_nonce: nonce,
            error_detail,
            ..DiscoveryRequest::default()
        }
    }

    async fn take(&mut self, version: Version) -> Result<(), String> {
        let known = |other: &Version| other.resources == version.resources;
        if self.refused.is_none() && self.accepted.as_ref().is_some_and(known) {
            self.accepted = Some(version);
            return Ok(());
        }
        match compile(&version).await {
            Ok(domains) => {
                info!(version = version.name, "Accepted the Envoy configuration of {}", self.url);
                self.catalog.replace(domains, &self.numbers);
                self.refused = None;
                self.accepted = Some(version);
                Ok(())
            }
            Err(reason) => {
                let told = format!("version {} of {}: {reason}", quoted(&version.name), self.url);
                self.catalog.refuse(&told, &self.numbers);
                self.refused = Some(version);
                Err(reason)
            }
        }
    }

    fn node(&self) -> Node {
        Node {
            id: self.config.node_id.as_str().to_owned(),
            user_agent_name: "headgate".to_owned(),
            user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Node::default()
        }
    }

    fn note_connection(&self) {
        let (url, node) = (&self.url, self.config.node_id.as_str());
        info!(node, "Connected to the management server {url}");
        let reason = format!(
            "connected, no configuration for node {} yet: check envoy.xds.node_id",
            quoted(node)
        );
        let state = if self.catalog.is_empty() {
            format!("waiting for the first configuration from {url}: {reason}")
        } else {
            format!("the last configuration from {url} stays in force: {reason}")
        };
        self.catalog.set_unreachable(Some(state));
    }

    /// A connection proves little: a proxy in between accepts it, too. A response proves that the server works.
    fn note_response(&self) {
        self.numbers.xds_connected(true);
        self.catalog.set_unreachable(None);
    }

    fn note_loss(&self, error: &StreamError, pause: Duration) {
        self.numbers.xds_failed();
        let url = &self.url;
        let state = if self.catalog.is_empty() {
            format!("waiting for the first configuration from {url}: {error}")
        } else {
            format!("the management server {url} is away, the last configuration stays: {error}")
        };
        warn!(%error, ?pause, "Lost the management server {url}: trying again");
        self.catalog.set_unreachable(Some(state));
    }
}

// === impl Version ===

impl Version {
    fn new(name: String, mut resources: Vec<Any>) -> Self {
        resources.sort_unstable_by(|a, b| (&a.type_url, &a.value).cmp(&(&b.type_url, &b.value)));
        Self { name, resources: Arc::new(resources) }
    }
}

/// Compiles on a blocking thread: megabytes of descriptors would hold up requests.
async fn compile(version: &Version) -> Result<Domains, String> {
    let resources = Arc::clone(&version.resources);
    let compiled = task::spawn_blocking(move || resource::domains(&resources)).await;
    compiled.unwrap_or_else(|error| Err(format!("failed to compile the resources: {error}")))
}

fn shortened(mut text: String) -> String {
    let end = (0..=MAX_REASON_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use prometheus::Registry;

    use super::*;

    fn url_of_nobody() -> XdsUrl {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap()).try_into().unwrap()
    }

    /// Pauses of ten attempts take more than a minute together.
    #[tokio::test]
    async fn a_server_that_is_away_is_connected_to_at_once_when_that_is_asked() {
        let registry = Registry::new();
        let numbers = EnvoyNumbers::new(&registry).unwrap();
        let (_, client) = XdsClient::new(url_of_nobody(), XdsConfig::default(), numbers);
        let reload = Arc::clone(client.reload());
        let failures = || {
            let families = registry.gather();
            let failures =
                families.iter().find(|it| it.name() == "headgate_envoy_xds_failures_total");
            failures.unwrap().get_metric()[0].get_counter().get_value() as u64
        };
        let running = tokio::spawn(client.run());
        let ten_attempts = async {
            for attempt in 1..=10 {
                while failures() < attempt {
                    time::sleep(Duration::from_millis(1)).await;
                }
                reload.notify_one();
            }
        };
        time::timeout(Duration::from_secs(45), ten_attempts).await.expect("no pauses");
        running.abort();
    }

    /// go-control-plane keeps resources in a map, whose order changes with each response.
    #[test]
    fn the_order_of_resources_makes_no_difference() {
        let any = |type_url: &str, value: u8| Any { type_url: type_url.into(), value: vec![value] };
        let version = |resources: &[Any]| Version::new("1".to_owned(), resources.to_vec());
        let (a, b, c) = (any("t", 1), any("t", 2), any("u", 1));
        let sent = version(&[a.clone(), b.clone(), c.clone()]);
        assert!(sent == version(&[c.clone(), b, a.clone()]));
        assert!(sent != version(&[a.clone(), a, c]));
        assert!(sent != Version::new("2".to_owned(), sent.resources.to_vec()));
    }

    #[test]
    fn a_reason_is_cut_between_letters() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = "\u{e9}".repeat(MAX_REASON_BYTES);
        let cut = shortened(format!("x{long}"));
        assert_eq!(cut.len(), MAX_REASON_BYTES - 1);
    }
}
