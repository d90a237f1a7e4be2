use std::{fs, path::PathBuf, time::Duration};

use headgate_kafka::{
    KafkaConfig, KafkaConfigError, Mechanism, PublishError, Publisher, Security, TlsFiles,
};
use headgate_testkit::{CertificateAuthority, Kafka, SecureListeners, require};
use tokio::time::timeout;

use crate::support::{PATIENCE, create_topic, message, payload, read, secure_config};

const TOPIC: &str = "secured";

/// Timeout of a message that is not delivered. On a busy machine, the broker may take longer to
/// reject the connection.
const TIMEOUT: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_sasl_are_verified_in_both_directions() {
    let kafka = require!(Kafka::builder().secure().start());
    let listeners = kafka.secure();
    create_topic(&kafka.brokers(), TOPIC, 3).await;

    let ssl = Security::Ssl { files: trusting(listeners.ca_file.clone()) };
    let sasl_with = |mechanism| sasl(&listeners, mechanism, listeners.password);
    let (first, second, third, fourth) = tokio::join!(
        publish(&listeners.ssl, ssl, "ssl"),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::ScramSha512), "SCRAM-SHA-512"),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::ScramSha256), "SCRAM-SHA-256"),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::Plain), "PLAIN"),
    );
    assert_eq!([first, second, third, fourth], [const { Ok(()) }; 4]);

    let found = read(&kafka.brokers(), TOPIC, 3, |found| found.len() == 4).await;
    let mut found: Vec<_> = found.iter().map(payload).collect();
    found.sort_unstable();
    assert_eq!(found, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "ssl"]);

    let liar = sasl(&listeners, Mechanism::ScramSha512, "wrong-password");
    let stranger = Security::Ssl { files: trusting(another_authority(&kafka)) };
    let unnamed = Security::Ssl { files: TlsFiles::default() };
    let is_denial = |error: &PublishError| {
        assert!(!error.to_string().contains("wrong-password"), "{error}");
        matches!(error, PublishError::Denied { .. })
    };
    let is_distrust = |error: &PublishError| reason(error).contains("certificate verify failed");
    tokio::join!(
        until_refused(&listeners.sasl_ssl, liar, is_denial),
        until_refused(&listeners.ssl, stranger, is_distrust),
        until_refused(&listeners.ssl, unnamed, is_distrust),
    );
}

#[test]
fn a_file_without_certificates_is_rejected_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "not a certificate").unwrap();
    let security = Security::Ssl { files: trusting(file.path().to_owned()) };
    let error = Publisher::new(&secure_config("127.0.0.1:1", security)).unwrap_err();
    assert!(matches!(error, KafkaConfigError::File(_)), "{error}");
    assert!(error.to_string().contains("-----BEGIN CERTIFICATE-----"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_is_sent_if_required() {
    let kafka = require!(Kafka::builder().client_certificates().start());
    let listeners = kafka.secure();
    create_topic(&kafka.brokers(), TOPIC, 1).await;
    let (cert, key) = listeners.client.clone();
    let files = |cert, key| TlsFiles {
        cert_file: Some(cert),
        key_file: Some(key),
        ..trusting(listeners.ca_file.clone())
    };
    let named = Security::Ssl { files: files(cert, key) };
    let unnamed = Security::Ssl { files: trusting(listeners.ca_file.clone()) };
    let folder = tempfile::tempdir().unwrap();
    let stranger = CertificateAuthority::new("stranger").issue(&["client.test"]);
    let (cert, key) = stranger.write(folder.path(), "client");
    let stranger = Security::Ssl { files: files(cert, key) };
    let is_refusal =
        |error: &PublishError| reason(error).to_ascii_lowercase().contains("certificate");
    let (named, (), ()) = tokio::join!(
        publish(&listeners.ssl, named, "named"),
        until_refused(&listeners.ssl, unnamed, is_refusal),
        until_refused(&listeners.ssl, stranger, is_refusal),
    );
    assert_eq!(named, Ok(()));
}

async fn publish(broker: &str, security: Security, text: &str) -> Result<(), PublishError> {
    let publisher = Publisher::new(&secure_config(broker, security)).unwrap();
    publisher.publish(message(TOPIC, text, text)).await
}

/// Publishes until the error is as expected. No message may be delivered.
async fn until_refused(
    broker: &str,
    security: Security,
    is_expected: impl Fn(&PublishError) -> bool,
) {
    let config = KafkaConfig { send_timeout: TIMEOUT, ..secure_config(broker, security) };
    let publisher = Publisher::new(&config).unwrap();
    let mut errors = Vec::new();
    let refused = async {
        while !errors.last().is_some_and(&is_expected) {
            let delivery = publisher.publish(message(TOPIC, "refused", "refused")).await;
            errors.push(delivery.expect_err("a message that is not delivered"));
        }
    };
    assert!(timeout(PATIENCE, refused).await.is_ok(), "{errors:?}");
}

/// Why the brokers are unavailable.
fn reason(error: &PublishError) -> &str {
    let PublishError::Unavailable { reason } = error else { panic!("{error}") };
    reason
}

fn sasl(listeners: &SecureListeners, mechanism: Mechanism, password: &str) -> Security {
    Security::SaslSsl {
        mechanism,
        username: listeners.username.into(),
        password: password.into(),
        files: trusting(listeners.ca_file.clone()),
    }
}

fn trusting(ca_file: PathBuf) -> TlsFiles {
    TlsFiles { ca_file: Some(ca_file), ..TlsFiles::default() }
}

/// An authority that did not sign the certificate of the broker.
fn another_authority(kafka: &Kafka) -> PathBuf {
    let folder = kafka.folder().join("another");
    fs::create_dir(&folder).unwrap();
    CertificateAuthority::new("another").write(&folder)
}
