//! The producer of librdkafka, and its callbacks.

use std::{path::PathBuf, sync::Arc, thread, time::Duration};

use headgate_tls_client::TlsFiles;
use rdkafka::{
    ClientConfig, ClientContext, Message as _,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer},
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::debug;

use crate::{KafkaConfig, KafkaConfigError, Message, Security, broker_log::BrokerLog};

/// Maximum size of the send queue, in KiB.
const QUEUE_KIB: u32 = 64 * 1024;

/// Receives the result of a delivery.
pub(crate) type Delivered = oneshot::Receiver<Result<(), KafkaError>>;

/// A client of the brokers, which connects on demand.
pub(crate) struct Producer(Option<ThreadedProducer<Context>>);

/// A message in flight. It keeps its slot even if the caller no longer waits.
pub(crate) struct PendingDelivery {
    reply: oneshot::Sender<Result<(), KafkaError>>,
    _place: OwnedSemaphorePermit,
}

struct Context {
    broker_log: Arc<BrokerLog>,
}

// === impl Producer ===

impl Producer {
    pub(crate) fn new(
        config: &KafkaConfig,
        broker_log: Arc<BrokerLog>,
    ) -> Result<Self, KafkaConfigError> {
        let producer = settings(config).create_with_context(Context { broker_log });
        producer.map(|producer| Self(Some(producer))).map_err(|error| match error {
            // The full error contains the value, which may be a password.
            KafkaError::ClientConfig(_, _, key, _) => {
                KafkaConfigError::Client(format!("invalid value of {key}"))
            }
            error => KafkaConfigError::Client(error.to_string()),
        })
    }

    /// Queues a message.
    pub(crate) fn send(
        &self,
        message: &Message<'_>,
        partition: u32,
        slot: OwnedSemaphorePermit,
    ) -> Result<Delivered, KafkaError> {
        let (reply, delivered) = oneshot::channel();
        let headers = message.headers.iter().fold(
            OwnedHeaders::new_with_capacity(message.headers.len()),
            |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }),
        );
        let pending = Box::new(PendingDelivery { reply, _place: slot });
        let record = BaseRecord::with_opaque_to(message.topic, pending)
            .key(message.key)
            .payload(message.payload)
            .partition(partition as i32)
            .headers(headers);
        self.client().send(record).map_err(|(error, _)| error)?;
        Ok(delivered)
    }

    /// Number of partitions of a topic. Blocks until the brokers respond or the time is up.
    pub(crate) fn count_partitions(&self, topic: &str, wait: Duration) -> Result<u32, KafkaError> {
        let metadata = self.client().client().fetch_metadata(Some(topic), wait)?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        match found.map(|topic| (topic.error(), topic)) {
            None => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopic)),
            Some((Some(error), _)) => Err(KafkaError::MetadataFetch(error.into())),
            Some((None, topic)) => Ok(topic.partitions().len() as u32),
        }
    }

    /// Returns true if the producer has failed permanently.
    pub(crate) fn has_failed(&self) -> bool {
        self.client().client().fatal_error().is_some()
    }

    /// Shuts down. Blocks until that is done.
    pub(crate) fn shut_down(mut self) {
        drop(self.0.take());
    }

    fn client(&self) -> &ThreadedProducer<Context> {
        self.0.as_ref().expect("present until it is dropped")
    }
}

impl Drop for Producer {
    /// Shuts down on another thread: librdkafka waits for its own.
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // If no thread can be started, it shuts down here.
            let _ = thread::Builder::new().name("kafka-end".into()).spawn(move || drop(client));
        }
    }
}

// === impl Context ===

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        // Errors are also reported to `error`.
        debug!(?level, facility, "Kafka client: {line}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        self.broker_log.error(code, reason);
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<PendingDelivery>;

    fn delivery(&self, result: &DeliveryResult<'_>, pending: Box<PendingDelivery>) {
        let result = match result {
            Ok(message) => {
                debug!(
                    topic = message.topic(),
                    offset = message.offset(),
                    "Kafka acknowledged a message"
                );
                self.broker_log.acknowledged();
                Ok(())
            }
            Err((error, _)) => Err(error.clone()),
        };
        // The caller may have given up.
        let _ = pending.reply.send(result);
    }
}

pub(crate) fn settings(config: &KafkaConfig) -> ClientConfig {
    let millis = |time: Duration| time.as_millis().to_string();
    let mut settings = ClientConfig::new();
    settings
        .set_log_level(RDKafkaLogLevel::Info)
        .set("client.id", "headgate")
        .set("bootstrap.servers", config.brokers.join(","))
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // librdkafka checks timeouts once a second: end before the timeout of the caller.
        .set("message.timeout.ms", millis(config.send_timeout * 3 / 4))
        .set(
            "socket.connection.setup.timeout.ms",
            millis(config.send_timeout.clamp(SECOND, 10 * SECOND)),
        )
        .set("reconnect.backoff.ms", "100")
        .set("reconnect.backoff.max.ms", "1000")
        .set("socket.keepalive.enable", "true")
        .set("log.connection.close", "false")
        .set("queue.buffering.max.kbytes", QUEUE_KIB.to_string());
    for (setting, file) in config.security.files().into_iter().flat_map(locations) {
        settings.set(setting, file.display().to_string());
    }
    match &config.security {
        Security::Plaintext => settings.set("security.protocol", "plaintext"),
        Security::Ssl { .. } => settings.set("security.protocol", "ssl"),
        Security::SaslSsl { mechanism, username, password, .. } => settings
            .set("security.protocol", "sasl_ssl")
            .set("sasl.mechanism", mechanism.name())
            .set("sasl.username", username)
            .set("sasl.password", password),
    };
    settings
}

/// The certificate files under the names that librdkafka gives them.
fn locations(files: &TlsFiles) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let locations = [
        ("ssl.ca.location", &files.ca_file),
        ("ssl.certificate.location", &files.cert_file),
        ("ssl.key.location", &files.key_file),
    ];
    locations.into_iter().filter_map(|(setting, file)| file.as_ref().map(|file| (setting, file)))
}

const SECOND: Duration = Duration::from_secs(1);
