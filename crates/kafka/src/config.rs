//! Where the brokers are, how they know us, and how patient to be with them.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use thiserror::Error;

/// How long [`Publisher::publish`](crate::Publisher::publish) may take.
const TIMEOUTS: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(600);

/// Where the brokers are, how they know us, and how patient to be with them.
#[derive(Clone, Debug)]
pub struct KafkaConfig {
    /// Some of the brokers, as `host:port`: they tell of the others.
    pub brokers: Vec<String>,
    /// How to connect to them.
    pub security: Security,
    /// How long one message may take, from 100 ms to 10 minutes.
    pub send_timeout: Duration,
}

/// How to connect to the brokers.
#[derive(Clone)]
pub enum Security {
    /// In the clear, without a name.
    Plaintext,
    /// With TLS.
    Ssl {
        /// The authorities to trust, in PEM; the system's if none is named.
        ca_file: Option<PathBuf>,
    },
    /// With TLS and a password.
    SaslSsl {
        /// How the password is shown.
        mechanism: Mechanism,
        /// Who we are.
        username: String,
        /// What only we know.
        password: String,
        /// The authorities to trust, in PEM; the system's if none is named.
        ca_file: Option<PathBuf>,
    },
}

/// How a password is shown to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// As it is, inside TLS.
    Plain,
    /// By proof, with SHA-256.
    ScramSha256,
    /// By proof, with SHA-512.
    ScramSha512,
}

/// Why a configuration cannot be used. It never holds the password.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// There is no place to begin.
    #[error("brokers: name at least one, as host:port")]
    NoBrokers,
    /// A broker's address does not read as one.
    #[error("brokers: {0:?} is not host:port")]
    Broker(String),
    /// The time for one message is too short or too long.
    #[error("send timeout: {0:?} is not between 100 ms and 10 minutes")]
    Timeout(Duration),
    /// Half of the credentials is missing, or cannot be sent.
    #[error("sasl: {0} must not be empty nor have a NUL in it")]
    Credential(&'static str),
    /// The file of authorities cannot be read.
    #[error("ca file: cannot read {}: {reason}", path.display())]
    CaFile {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// librdkafka does not take it.
    #[error("kafka client: {0}")]
    Client(String),
}

/// A mechanism that there is not.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("sasl mechanism: {0:?} is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512")]
pub struct UnknownMechanism(pub String);

// === impl KafkaConfig ===

impl KafkaConfig {
    /// These brokers, and 5 s for a message.
    pub fn new(brokers: Vec<String>, security: Security) -> Self {
        Self { brokers, security, send_timeout: Duration::from_secs(5) }
    }

    /// Whether all of it makes sense, before any of it is used.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.brokers.is_empty() {
            return Err(ConfigError::NoBrokers);
        }
        if let Some(broker) = self.brokers.iter().find(|broker| !is_address(broker)) {
            return Err(ConfigError::Broker(broker.clone()));
        }
        if !TIMEOUTS.contains(&self.send_timeout) {
            return Err(ConfigError::Timeout(self.send_timeout));
        }
        self.security.validate()
    }
}

// === impl Security ===

impl Security {
    /// The authorities to trust, if they are named.
    pub(crate) fn ca_file(&self) -> Option<&PathBuf> {
        match self {
            Self::Plaintext => None,
            Self::Ssl { ca_file } | Self::SaslSsl { ca_file, .. } => ca_file.as_ref(),
        }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        if let Self::SaslSsl { username, password, .. } = self {
            let cannot_be_sent = |text: &str| text.is_empty() || text.contains('\0');
            if cannot_be_sent(username) {
                return Err(ConfigError::Credential("username"));
            }
            if cannot_be_sent(password) {
                return Err(ConfigError::Credential("password"));
            }
        }
        let Some(path) = self.ca_file() else {
            return Ok(());
        };
        // librdkafka would tell the name of the call that failed, and not of the file.
        std::fs::read(path)
            .map(drop)
            .map_err(|error| ConfigError::CaFile { path: path.clone(), reason: error.to_string() })
    }
}

impl fmt::Debug for Security {
    /// Says neither who we are nor what we know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plaintext => f.write_str("Plaintext"),
            Self::Ssl { ca_file } => f.debug_struct("Ssl").field("ca_file", ca_file).finish(),
            Self::SaslSsl { mechanism, ca_file, .. } => f
                .debug_struct("SaslSsl")
                .field("mechanism", mechanism)
                .field("ca_file", ca_file)
                .finish_non_exhaustive(),
        }
    }
}

// === impl Mechanism ===

impl Mechanism {
    /// Its name in Kafka's configuration.
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

/// `host:port`, with brackets around an IPv6 address. librdkafka would also take lists and schemes, and ignore what it
/// does not understand.
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
