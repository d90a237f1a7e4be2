use std::{path::PathBuf, time::Duration};

use headgate_config::{Bounded, Print, Printed, Problem, Secret, print_sections, quoted};
use serde::Deserialize;

/// Where events are published. Without brokers they stay in the database, readable over REST.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a section")]
pub struct KafkaConfig {
    /// `kafka.brokers`: some of the brokers, as `host:port`.
    pub brokers: Vec<Broker>,
    /// `kafka.security_protocol`: how to connect to them.
    pub security_protocol: SecurityProtocol,
    /// `kafka.topic_exceeded`: where it is told that a quota is exceeded.
    pub topic_exceeded: Topic,
    /// `kafka.topic_threshold`: where it is told that an alert threshold is reached.
    pub topic_threshold: Topic,
    /// `kafka.sasl_mechanism`: how the password is shown.
    pub sasl_mechanism: SaslMechanism,
    /// `kafka.username`: who we are.
    pub username: Option<String>,
    /// `kafka.password`: what only we know.
    pub password: Option<Secret>,
    /// `kafka.ca_file`: the authorities that signed the brokers' certificates, in PEM.
    pub ca_file: Option<PathBuf>,
    /// `kafka.send_timeout_seconds`: how long one event may take.
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

/// How brokers are connected to.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// In the clear, without a name.
    #[default]
    #[serde(rename = "PLAINTEXT")]
    Plaintext,
    /// With TLS.
    #[serde(rename = "SSL")]
    Ssl,
    /// With TLS and a password.
    #[serde(rename = "SASL_SSL")]
    SaslSsl,
}

/// How a password is shown to a broker.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum SaslMechanism {
    /// By proof, with SHA-512.
    #[default]
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
    /// By proof, with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// As it is, inside TLS.
    #[serde(rename = "PLAIN")]
    Plain,
}

// === impl KafkaConfig ===

impl KafkaConfig {
    /// Whether there is somebody to publish to.
    pub fn is_used(&self) -> bool {
        !self.brokers.is_empty()
    }

    /// How long one event may take.
    pub const fn send_timeout(&self) -> Duration {
        Duration::from_secs(self.send_timeout_seconds.get())
    }

    /// What each key accepts by itself but the section, or this program, cannot.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
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
                "security_protocol SASL_SSL needs it"
            } else {
                "only security_protocol SASL_SSL shows it to brokers"
            };
            problems.push(Problem::new(key, message));
        }
        if self.ca_file.is_some() && self.security_protocol == SecurityProtocol::Plaintext {
            let message = "nothing is signed with security_protocol PLAINTEXT: use SSL or SASL_SSL";
            problems.push(Problem::new("kafka.ca_file", message));
        }
        problems
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
            send_timeout_seconds: Bounded::of::<5>(),
        }
    }
}

// === impl Broker ===

impl Broker {
    /// The address, as `host:port`.
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
    /// Kafka's own bound.
    const MAX_BYTES: usize = 249;

    /// The name.
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
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plaintext => "PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslSsl => "SASL_SSL",
        }
    }
}

// === impl SaslMechanism ===

impl SaslMechanism {
    pub(super) const fn name(self) -> &'static str {
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
        password, ca_file, send_timeout_seconds,
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
