//! Brokers, security and timeout.

use std::{fmt, str::FromStr, time::Duration};

use headgate_tls_client::{TlsFileError, TlsFiles};
use thiserror::Error;

/// Valid timeouts of [`Publisher::publish`](crate::Publisher::publish).
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(600);

/// Brokers, security and timeout of a publisher.
#[derive(Clone, Debug)]
pub struct KafkaConfig {
    /// Bootstrap brokers, as `host:port`.
    pub brokers: Vec<String>,
    /// Security of the connections.
    pub security: Security,
    /// Timeout of a message, from 100 ms to 10 minutes.
    pub send_timeout: Duration,
}

/// Security of the connections to brokers.
#[derive(Clone)]
pub enum Security {
    /// Neither encryption nor authentication.
    Plaintext,
    /// TLS.
    Ssl {
        /// Authorities to trust, and the client certificate.
        files: TlsFiles,
    },
    /// TLS and SASL authentication.
    SaslSsl {
        /// SASL mechanism.
        mechanism: Mechanism,
        /// Username.
        username: String,
        /// Password.
        password: String,
        /// Authorities to trust, and the client certificate.
        files: TlsFiles,
    },
}

/// SASL mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The password itself, inside TLS.
    Plain,
    /// Challenge and response, with SHA-256.
    ScramSha256,
    /// Challenge and response, with SHA-512.
    ScramSha512,
}

/// Invalid configuration. Never contains the password.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum KafkaConfigError {
    /// No brokers.
    #[error("brokers: expected at least one host:port")]
    NoBrokers,
    /// Invalid address of a broker.
    #[error("brokers: {0:?} is not host:port")]
    Broker(String),
    /// Timeout out of range.
    #[error("send timeout: {0:?} is not between 100 ms and 10 minutes")]
    Timeout(Duration),
    /// Invalid username or password.
    #[error("sasl: {0} must not be empty or contain a NUL")]
    Credential(&'static str),
    /// A certificate file cannot be used.
    #[error(transparent)]
    File(#[from] TlsFileError),
    /// librdkafka rejects the configuration.
    #[error("kafka client: {0}")]
    Client(String),
}

/// Unknown SASL mechanism.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("sasl mechanism: {0:?} is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512")]
pub struct UnknownMechanism(pub String);

// === impl KafkaConfig ===

impl KafkaConfig {
    /// A configuration with a timeout of 5 s.
    pub fn new(brokers: Vec<String>, security: Security) -> Self {
        Self { brokers, security, send_timeout: Duration::from_secs(5) }
    }

    /// Validates the configuration.
    pub fn validate(&self) -> Result<(), KafkaConfigError> {
        if self.brokers.is_empty() {
            return Err(KafkaConfigError::NoBrokers);
        }
        if let Some(broker) = self.brokers.iter().find(|broker| !is_address(broker)) {
            return Err(KafkaConfigError::Broker(broker.clone()));
        }
        if !TIMEOUTS.contains(&self.send_timeout) {
            return Err(KafkaConfigError::Timeout(self.send_timeout));
        }
        self.security.validate()
    }
}

// === impl Security ===

impl Security {
    /// Certificate files.
    pub(crate) fn files(&self) -> Option<&TlsFiles> {
        match self {
            Self::Plaintext => None,
            Self::Ssl { files } | Self::SaslSsl { files, .. } => Some(files),
        }
    }

    fn validate(&self) -> Result<(), KafkaConfigError> {
        if let Self::SaslSsl { username, password, .. } = self {
            let is_invalid = |text: &str| text.is_empty() || text.contains('\0');
            if is_invalid(username) {
                return Err(KafkaConfigError::Credential("username"));
            }
            if is_invalid(password) {
                return Err(KafkaConfigError::Credential("password"));
            }
        }
        // The errors of librdkafka do not name the file.
        self.files().map_or(Ok(()), |files| Ok(files.check()?))
    }
}

impl fmt::Debug for Security {
    /// Omits username and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plaintext => f.write_str("Plaintext"),
            Self::Ssl { files } => f.debug_struct("Ssl").field("files", files).finish(),
            Self::SaslSsl { mechanism, files, .. } => f
                .debug_struct("SaslSsl")
                .field("mechanism", mechanism)
                .field("files", files)
                .finish_non_exhaustive(),
        }
    }
}

// === impl Mechanism ===

impl Mechanism {
    /// Name in the configuration of Kafka.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(name: &str) -> Result<Self, UnknownMechanism> {
        [Self::Plain, Self::ScramSha256, Self::ScramSha512]
            .into_iter()
            .find(|mechanism| mechanism.name() == name)
            .ok_or_else(|| UnknownMechanism(name.to_owned()))
    }
}

/// Returns true if `text` is `host:port`, with brackets around an IPv6 address. librdkafka would
/// also accept lists and schemes, and ignore the rest.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match inner {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        }
    };
    is_host
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && port.parse().is_ok_and(|port: u16| port > 0)
}

#[cfg(test)]
mod tests;
