//! The connection to the management server, and its loss.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures_util::stream;
use headgate_config::quoted;
use headgate_resilience::Backoff;
use thiserror::Error;
use tokio::{
    sync::{
        Notify,
        mpsc::{self, error::TrySendError},
    },
    time,
};
use tonic::Status;
use tracing::{info, warn};

use super::{
    channel::{self, ChannelError},
    proto::envoy::{
        config::core::v3::Node,
        service::discovery::v3::{
            DiscoveryRequest, aggregated_discovery_service_client::AggregatedDiscoveryServiceClient,
        },
    },
    resource::TYPE_URL,
    subscription::Subscription,
};
use crate::{EnvoyCatalog, EnvoyMetrics, XdsConfig, XdsUrl};

/// Follows a management server.
pub(crate) struct XdsClient {
    url: XdsUrl,
    config: XdsConfig,
    catalog: Arc<EnvoyCatalog>,
    metrics: EnvoyMetrics,
    /// Ends the pause before the next connection attempt.
    reload: Arc<Notify>,
    subscription: Subscription,
}

/// The end of a stream.
#[derive(Debug, Error)]
enum StreamError {
    #[error(transparent)]
    Channel(#[from] ChannelError),
    #[error("{}: {}", .0.code(), .0.message())]
    Status(Status),
    #[error("the management server ended the stream: see its log")]
    Ended,
    #[error("the server sent resources of type {0}, which were not requested")]
    WrongType(String),
    #[error("the server does not read our requests")]
    Stalled,
}

/// Maximum number of requests that wait for the server to read them.
const MAX_QUEUED: usize = 8;

impl XdsClient {
    /// Creates a client that has not connected yet, and the catalog that it fills.
    pub(crate) fn new(
        url: XdsUrl,
        config: XdsConfig,
        metrics: EnvoyMetrics,
    ) -> (Arc<EnvoyCatalog>, Self) {
        let catalog = Arc::new(EnvoyCatalog::starting());
        catalog.set_unreachable(Some(format!("waiting for the first configuration from {url}")));
        metrics.xds_connected(false);
        let subscription = Subscription::new(url.clone(), Arc::clone(&catalog), metrics.clone());
        let client = Self {
            url,
            config,
            catalog: Arc::clone(&catalog),
            metrics,
            reload: Arc::default(),
            subscription,
        };
        (catalog, client)
    }

    /// Ends the pause before the next connection attempt.
    pub(crate) const fn reload(&self) -> &Arc<Notify> {
        &self.reload
    }

    /// Runs until it is dropped.
    pub(crate) async fn run(mut self) {
        let catalog = Arc::clone(&self.catalog);
        let wait = self.config.initial_wait();
        let initial_wait = async {
            time::sleep(wait).await;
            if catalog.is_starting() {
                warn!(
                    ?wait,
                    "no Envoy configuration yet; ready without one, requests of Envoy fail"
                );
                catalog.finish_starting();
            }
        };
        tokio::join!(initial_wait, self.reconnect_forever());
    }

    async fn reconnect_forever(&mut self) {
        let mut backoff = Backoff::default();
        loop {
            let Err(error) = self.follow(&mut backoff).await;
            let pause = backoff.next_pause();
            self.record_loss(&error, pause);
            tokio::select! {
                () = time::sleep(pause) => {}
                () = self.reload.notified() => {}
            }
        }
    }

    /// Follows one stream until it ends.
    async fn follow(&mut self, backoff: &mut Backoff) -> Result<Infallible, StreamError> {
        let channel = channel::connect(&self.url, &self.config).await?;
        self.record_connection();
        let (requests, mut queue) = mpsc::channel(MAX_QUEUED);
        let send = |request| {
            requests.try_send(request).map_err(|error| match error {
                TrySendError::Full(_) => StreamError::Stalled,
                TrySendError::Closed(_) => StreamError::Ended,
            })
        };
        // A new stream starts without a version: the server sends its configuration in any case.
        send(DiscoveryRequest {
            node: Some(self.node()),
            type_url: TYPE_URL.to_owned(),
            ..DiscoveryRequest::default()
        })?;
        let mut client = AggregatedDiscoveryServiceClient::new(channel)
            .max_decoding_message_size(self.config.max_message_bytes.get() as usize);
        let requests = stream::poll_fn(move |context| queue.poll_recv(context));
        let responses = client.stream_aggregated_resources(requests).await;
        let mut responses = responses.map_err(StreamError::Status)?.into_inner();
        while let Some(response) = responses.message().await.map_err(StreamError::Status)? {
            if response.type_url != TYPE_URL {
                return Err(StreamError::WrongType(quoted(&response.type_url)));
            }
            backoff.reset();
            send(self.subscription.answer(response).await)?;
        }
        Err(StreamError::Ended)
    }

    fn node(&self) -> Node {
        Node {
            id: self.config.node_id.as_str().to_owned(),
            user_agent_name: "headgate".to_owned(),
            user_agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Node::default()
        }
    }

    fn record_connection(&self) {
        let (url, node) = (&self.url, self.config.node_id.as_str());
        info!(%url, node, "connected to the management server");
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

    fn record_loss(&self, error: &StreamError, pause: Duration) {
        self.metrics.xds_failed();
        let url = &self.url;
        let state = if self.catalog.is_empty() {
            format!("waiting for the first configuration from {url}: {error}")
        } else {
            format!(
                "the management server {url} is unreachable, the last configuration stays in \
                 force: {error}"
            )
        };
        warn!(%url, %error, ?pause, "lost the management server; reconnecting");
        self.catalog.set_unreachable(Some(state));
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use prometheus::Registry;

    use super::*;

    fn unused_url() -> XdsUrl {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap()).try_into().unwrap()
    }

    /// The pauses of ten attempts take more than a minute together.
    #[tokio::test]
    async fn a_reload_reconnects_to_an_unreachable_server_at_once() {
        let registry = Registry::new();
        let metrics = EnvoyMetrics::new(&registry).unwrap();
        let (_, client) = XdsClient::new(unused_url(), XdsConfig::default(), metrics);
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
}
