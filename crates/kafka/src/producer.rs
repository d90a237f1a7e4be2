//! librdkafka's producer, and what it reports.

use std::{sync::Arc, thread, time::Duration};

use rdkafka::{
    ClientConfig, ClientContext, Message as _,
    config::RDKafkaLogLevel,
    error::{KafkaError, RDKafkaErrorCode},
    message::{Header, OwnedHeaders},
    producer::{BaseRecord, DeliveryResult, Producer as _, ProducerContext, ThreadedProducer},
};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::debug;

use crate::{ConfigError, KafkaConfig, Message, Security, journal::Journal};

/// How many bytes may wait for the brokers, in KiB.
const QUEUE_KIB: u32 = 64 * 1024;

/// Tells whether a message was delivered.
pub(crate) type Delivered = oneshot::Receiver<Result<(), KafkaError>>;

/// A client of the brokers. It connects when it is needed, and again when it has to.
pub(crate) struct Producer(Option<ThreadedProducer<Context>>);

/// One message on its way. It keeps its place in the queue also when nobody waits for it any more.
pub(crate) struct Parcel {
    reply: oneshot::Sender<Result<(), KafkaError>>,
    _place: OwnedSemaphorePermit,
}

struct Context {
    journal: Arc<Journal>,
}

// === impl Producer ===

impl Producer {
    pub(crate) fn new(config: &KafkaConfig, journal: Arc<Journal>) -> Result<Self, ConfigError> {
        let producer = settings(config).create_with_context(Context { journal });
        producer.map(|producer| Self(Some(producer))).map_err(|error| match error {
            // The whole of it would show the value, which may be a password.
            KafkaError::ClientConfig(_, _, key, _) => {
                ConfigError::Client(format!("it does not take our {key}"))
            }
            error => ConfigError::Client(error.to_string()),
        })
    }

    /// Puts a message into the queue.
    pub(crate) fn send(
        &self,
        message: &Message<'_>,
        partition: u32,
        place: OwnedSemaphorePermit,
    ) -> Result<Delivered, KafkaError> {
        let (reply, delivered) = oneshot::channel();
        let headers = message.headers.iter().fold(
            OwnedHeaders::new_with_capacity(message.headers.len()),
            |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }),
        );
        let parcel = Box::new(Parcel { reply, _place: place });
        let record = BaseRecord::with_opaque_to(message.topic, parcel)
            .key(message.key)
            .payload(message.payload)
            .partition(partition as i32)
            .headers(headers);
        self.client().send(record).map_err(|(error, _)| error)?;
        Ok(delivered)
    }

    /// Asks the brokers how many partitions a topic has: blocks until they answer or the time is up.
    pub(crate) fn count_partitions(&self, topic: &str, wait: Duration) -> Result<u32, KafkaError> {
        let metadata = self.client().client().fetch_metadata(Some(topic), wait)?;
        let found = metadata.topics().iter().find(|found| found.name() == topic);
        match found.map(|topic| (topic.error(), topic)) {
            None => Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopic)),
            Some((Some(error), _)) => Err(KafkaError::MetadataFetch(error.into())),
            Some((None, topic)) => Ok(topic.partitions().len() as u32),
        }
    }

    /// Whether it will never send anything again.
    pub(crate) fn is_dead(&self) -> bool {
        self.client().client().fatal_error().is_some()
    }

    /// Ends it, and waits until it has ended: blocks.
    pub(crate) fn end(mut self) {
        drop(self.0.take());
    }

    fn client(&self) -> &ThreadedProducer<Context> {
        self.0.as_ref().expect("it is only taken when dropped")
    }
}

impl Drop for Producer {
    /// Ends elsewhere: librdkafka waits for its threads.
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // Without a thread to end on it ends here, which is late and not wrong.
            let _ = thread::Builder::new().name("kafka-end".into()).spawn(move || drop(client));
        }
    }
}

// === impl Context ===

impl ClientContext for Context {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        // What matters comes as an error, too.
        debug!(?level, facility, "Kafka client: {line}");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let code = error.rdkafka_error_code().unwrap_or(RDKafkaErrorCode::Unknown);
        self.journal.note(code, reason);
    }
}

impl ProducerContext for Context {
    type DeliveryOpaque = Box<Parcel>;

    fn delivery(&self, result: &DeliveryResult<'_>, parcel: Box<Parcel>) {
        let result = match result {
            Ok(message) => {
                debug!(topic = message.topic(), offset = message.offset(), "Kafka has a message");
                self.journal.all_is_well();
                Ok(())
            }
            Err((error, _)) => Err(error.clone()),
        };
        // Whoever waited may have given up.
        let _ = parcel.reply.send(result);
    }
}

fn settings(config: &KafkaConfig) -> ClientConfig {
    let millis = |time: Duration| time.as_millis().to_string();
    let mut settings = ClientConfig::new();
    settings
        .set_log_level(RDKafkaLogLevel::Info)
        .set("client.id", "headgate")
        .set("bootstrap.servers", config.brokers.join(","))
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // librdkafka looks for what is late once a second: it shall be done when the caller's time is up.
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
    if let Some(ca_file) = config.security.ca_file() {
        settings.set("ssl.ca.location", ca_file.display().to_string());
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

const SECOND: Duration = Duration::from_secs(1);
