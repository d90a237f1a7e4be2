use std::{path::PathBuf, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections, quoted};
use headgate_tls_client::TlsFiles;
use serde::Deserialize;

/// The Kafka cluster that events are published to: the section `kafka`. Without brokers, events
/// stay in the database, readable over REST.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct KafkaConfig {
    /// `kafka.brokers`: bootstrap brokers, as `host:port`.
    pub brokers: Vec<Broker>,
    /// `kafka.security_protocol`: security of connections.
    pub security_protocol: SecurityProtocol,
    /// `kafka.topic_exceeded`: topic of exceeded quotas.
    pub topic_exceeded: Topic,
    /// `kafka.topic_threshold`: topic of reached alert thresholds.
    pub topic_threshold: Topic,
    /// `kafka.sasl_mechanism`: SASL mechanism.
    pub sasl_mechanism: SaslMechanism,
    /// `kafka.username`: SASL user name.
    pub username: Option<String>,
    /// `kafka.password`: SASL password.
    pub password: Option<Secret>,
    /// `kafka.ca_file`: certificate authorities of the brokers, in PEM.
    pub ca_file: Option<PathBuf>,
    /// `kafka.cert_file`: client certificate, in PEM, followed by its issuers.
    pub cert_file: Option<PathBuf>,
    /// `kafka.key_file`: private key of the client certificate, in PEM.
    pub key_file: Option<PathBuf>,
    /// `kafka.send_timeout_seconds`: timeout of one event.
    pub send_timeout_seconds: Bounded<1, 600>,
}

/// A broker's address.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Broker(String);

/// A topic's name.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct Topic(String);

/// Security of connections to brokers.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Neither encrypted nor authenticated.
    #[default]
    #[serde(rename = "PLAINTEXT")]
    Plaintext,
    /// TLS.
    #[serde(rename = "SSL")]
    Ssl,
    /// TLS and a password.
    #[serde(rename = "SASL_SSL")]
    SaslSsl,
}

/// SASL mechanism.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum SaslMechanism {
    /// SCRAM with SHA-512.
    #[default]
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
    /// SCRAM with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// Plain text inside TLS.
    #[serde(rename = "PLAIN")]
    Plain,
}

// === impl KafkaConfig ===

impl KafkaConfig {
    /// Returns true if brokers are configured.
    pub fn is_used(&self) -> bool {
        !self.brokers.is_empty()
    }

    /// Returns the timeout of one event.
    pub const fn send_timeout(&self) -> Duration {
        Duration::from_secs(self.send_timeout_seconds.get())
    }

    /// Reports contradictions between keys, and settings that this build does not support.
    pub fn contradictions(&self) -> Vec<Problem> {
        self.contradictions_in(cfg!(feature = "kafka"))
    }

    fn contradictions_in(&self, built_with_kafka: bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.is_used() && !built_with_kafka {
            let message = "this program was built without Kafka: build it with \
                           `cargo build --release --features kafka`, or remove the brokers; events \
                           also go to webhooks, and are at /api/v1/events";
            problems.push(Problem::new("kafka.brokers", message));
        }
        let credentials = [
            ("kafka.username", self.username.is_some()),
            ("kafka.password", self.password.is_some()),
        ];
        let needed = self.security_protocol == SecurityProtocol::SaslSsl;
        for (key, _) in credentials.into_iter().filter(|(_, given)| *given != needed) {
            let message = if needed {
                "required by security_protocol SASL_SSL"
            } else {
                "used by security_protocol SASL_SSL only"
            };
            problems.push(Problem::new(key, message));
        }
        let without_tls = self.security_protocol == SecurityProtocol::Plaintext;
        let remedy = without_tls.then_some("set kafka.security_protocol to SSL or SASL_SSL");
        let files = self.tls_files().contradictions("kafka", remedy).into_iter();
        problems.extend(files.map(|(key, message)| Problem::new(format!("kafka.{key}"), message)));
        problems
    }

    pub(crate) fn tls_files(&self) -> TlsFiles {
        TlsFiles {
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
        }
    }
}

impl Default for KafkaConfig {
    fn default() -> Self {
        Self {
            brokers: Vec::new(),
            security_protocol: SecurityProtocol::default(),
            topic_exceeded: Topic("k1s0.system.quota.exceeded.v1".to_owned()),
            topic_threshold: Topic("k1s0.system.quota.threshold.reached.v1".to_owned()),
            sasl_mechanism: SaslMechanism::default(),
            username: None,
            password: None,
            ca_file: None,
            cert_file: None,
            key_file: None,
            send_timeout_seconds: Bounded::of::<5>(),
        }
    }
}

// === impl Broker ===

impl Broker {
    /// Returns the address, as `host:port`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_address(text: &str) -> bool {
        let Some((host, port)) = text.rsplit_once(':') else {
            return false;
        };
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let is_host = inner.map_or_else(
            || (1..=255).contains(&host.len()) && host.bytes().all(fits),
            |address| address.parse::<std::net::Ipv6Addr>().is_ok(),
        );
        is_host && port.parse::<u16>().is_ok_and(|port| port > 0) && !port.starts_with('+')
    }
}

impl TryFrom<String> for Broker {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if Self::is_address(&text) {
            return Ok(Self(text));
        }
        Err(format!("expected host:port such as kafka-0.example:9092, got {}", quoted(&text)))
    }
}

// === impl Topic ===

impl Topic {
    /// Kafka's limit.
    const MAX_BYTES: usize = 249;

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Topic {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_name = (1..=Self::MAX_BYTES).contains(&text.len())
            && text.bytes().all(fits)
            && !matches!(text.as_str(), "." | "..");
        if is_name {
            return Ok(Self(text));
        }
        let most = Self::MAX_BYTES;
        let got = quoted(&text);
        Err(format!("expected a topic of 1 to {most} letters, digits, '.', '_' and '-', got {got}"))
    }
}

// === impl SecurityProtocol ===

impl SecurityProtocol {
    const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslSsl => "SASL_SSL",
        }
    }
}

// === impl SaslMechanism ===

impl SaslMechanism {
    const fn name(self) -> &'static str {
        match self {
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::Plain => "PLAIN",
        }
    }
}

// === impl Print ===

print_sections! {
    KafkaConfig {
        brokers, security_protocol, topic_exceeded, topic_threshold, sasl_mechanism, username,
        password, ca_file, cert_file, key_file, send_timeout_seconds,
    }
}

impl Print for Broker {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}

impl Print for Topic {
    fn print(&self) -> Printed {
        Printed::scalar(self.as_str())
    }
}

impl Print for SecurityProtocol {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

impl Print for SaslMechanism {
    fn print(&self) -> Printed {
        Printed::scalar(self.name())
    }
}

#[cfg(test)]
mod tests;
