use std::{fs, path::PathBuf, time::Duration};

use headgate_kafka::{KafkaConfig, KafkaConfigError, Mechanism, PublishError, Publisher, Security};
use headgate_testkit::{Kafka, SecureListeners, require};

use crate::support::{PATIENCE, message, payload, read, secure_config};

const TOPIC: &str = "secured";

/// Long enough for the brokers to reject the connection.
const TIMEOUT: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_sasl_are_verified_in_both_directions() {
    let kafka = require!(Kafka::builder().secure().start());
    let listeners = kafka.secure();

    let ssl = Security::Ssl { ca_file: Some(listeners.ca_file.clone()) };
    let sasl_with = |mechanism| sasl(&listeners, mechanism, listeners.password);
    let (first, second, third, fourth) = tokio::join!(
        publish(&listeners.ssl, ssl, "ssl", PATIENCE),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::ScramSha512), "SCRAM-SHA-512", PATIENCE),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::ScramSha256), "SCRAM-SHA-256", PATIENCE),
        publish(&listeners.sasl_ssl, sasl_with(Mechanism::Plain), "PLAIN", PATIENCE),
    );
    assert_eq!([first, second, third, fourth], [const { Ok(()) }; 4]);

    let found = read(&kafka.brokers(), TOPIC, 3, |found| found.len() == 4).await;
    let mut found: Vec<_> = found.iter().map(payload).collect();
    found.sort_unstable();
    assert_eq!(found, ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "ssl"]);

    let liar = sasl(&listeners, Mechanism::ScramSha512, "wrong-password");
    let stranger = Security::Ssl { ca_file: Some(another_authority(&kafka)) };
    let unnamed = Security::Ssl { ca_file: None };
    let (liar, stranger, unnamed) = tokio::join!(
        publish(&listeners.sasl_ssl, liar, "liar", TIMEOUT),
        publish(&listeners.ssl, stranger, "stranger", TIMEOUT),
        publish(&listeners.ssl, unnamed, "unnamed", TIMEOUT),
    );
    let denied = liar.unwrap_err();
    assert!(matches!(denied, PublishError::Denied { .. }), "{denied}");
    assert!(!denied.to_string().contains("wrong-password"), "{denied}");
    for error in [stranger.unwrap_err(), unnamed.unwrap_err()] {
        let PublishError::Unavailable { reason } = &error else { panic!("{error}") };
        assert!(reason.contains("certificate verify failed"), "{error}");
    }
}

#[test]
fn a_file_without_certificates_is_rejected_at_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "not a certificate").unwrap();
    let security = Security::Ssl { ca_file: Some(file.path().to_owned()) };
    let error = Publisher::new(&secure_config("127.0.0.1:1", security)).unwrap_err();
    assert!(matches!(error, KafkaConfigError::Client(_)), "{error}");
}

async fn publish(
    broker: &str,
    security: Security,
    text: &str,
    send_timeout: Duration,
) -> Result<(), PublishError> {
    let config = KafkaConfig { send_timeout, ..secure_config(broker, security) };
    let publisher = Publisher::new(&config).unwrap();
    publisher.publish(message(TOPIC, text, text)).await
}

fn sasl(listeners: &SecureListeners, mechanism: Mechanism, password: &str) -> Security {
    Security::SaslSsl {
        mechanism,
        username: listeners.username.into(),
        password: password.into(),
        ca_file: Some(listeners.ca_file.clone()),
    }
}

/// An authority that did not sign the certificate of the broker.
fn another_authority(kafka: &Kafka) -> PathBuf {
    let file = kafka.folder().join("another.crt");
    let made = std::process::Command::new("openssl")
        .args(["req", "-x509", "-days", "2", "-subj", "/CN=another", "-nodes"])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-keyout", "/dev/null", "-out"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file
}
