//! Where DynamoDB is, and how patient to be with it.

use std::{fmt, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    config::{
        BehaviorVersion, Credentials, ProvideCredentials, Region, SharedCredentialsProvider,
        StalledStreamProtectionConfig, retry::RetryConfig, timeout::TimeoutConfig,
    },
};
use aws_smithy_http_client::{
    Builder,
    tls::{Provider, rustls_provider::CryptoMode},
};
use thiserror::Error;

/// Where DynamoDB is, and how patient to be with it.
#[derive(Clone)]
pub struct DynamoDbConfig {
    region: String,
    endpoint: Option<String>,
    credentials: SharedCredentialsProvider,
    pub(crate) table: String,
    pub(crate) timeout: Duration,
}

/// Why this is no place in DynamoDB.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ConfigError {
    /// Requests are signed for a region.
    #[error("not a region: {0:?}; expected a name such as ap-northeast-1")]
    Region(String),
    /// DynamoDB's rule for names.
    #[error("not a table name: {0:?}; expected 3 to 255 letters, digits, '_', '-' and '.'")]
    Table(String),
    /// Not something to connect to.
    #[error("an endpoint begins with http:// or https:// and names a host")]
    Endpoint,
}

/// Credentials that are known: an access key's id and its secret.
pub fn keys(id: impl Into<String>, secret: impl Into<String>) -> Credentials {
    Credentials::new(id, secret, None, None, "configuration")
}

// === impl DynamoDbConfig ===

impl DynamoDbConfig {
    /// The table of this name in this region, with [`keys`] or any other source of credentials: those
    /// of crate `aws-config` ask the environment, the shared files and the machine's role.
    pub fn new(
        region: impl Into<String>,
        table: impl Into<String>,
        credentials: impl ProvideCredentials + 'static,
    ) -> Result<Self, ConfigError> {
        let (region, table) = (region.into(), table.into());
        let fits = |name: &str, others: &[u8]| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
        };
        if region.is_empty() || region.len() > 64 || !fits(&region, b"-") {
            return Err(ConfigError::Region(shortened(&region)));
        }
        if !(3..=255).contains(&table.len()) || !fits(&table, b"_-.") {
            return Err(ConfigError::Table(shortened(&table)));
        }
        let credentials = SharedCredentialsProvider::new(credentials);
        Ok(Self { region, endpoint: None, credentials, table, timeout: Duration::from_secs(1) })
    }

    /// Another place than Amazon's for the region: `http://` or `https://`, host and port.
    pub fn endpoint(self, url: impl Into<String>) -> Result<Self, ConfigError> {
        let url = url.into();
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host = |host: &str| {
            !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '@')
        };
        if !host.is_some_and(is_host) {
            return Err(ConfigError::Endpoint);
        }
        Ok(Self { endpoint: Some(url), ..self })
    }

    /// How long DynamoDB may take for a decision, with all its requests and repetitions; 1 s unless
    /// said. Calls of one process that change one subject wait for each other for as long again at
    /// most, before their requests are sent.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A client of this place, for whatever else is kept there. It neither repeats requests nor gives up on them:
    /// that is the caller's to decide.
    pub fn client(&self) -> Client {
        let is_plain = self.endpoint.as_ref().is_some_and(|url| url.starts_with("http://"));
        let http = if is_plain {
            Builder::new().build_http()
        } else {
            Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()
        };
        let mut config = aws_sdk_dynamodb::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.credentials.clone())
            .http_client(http)
            .retry_config(RetryConfig::disabled())
            .timeout_config(TimeoutConfig::disabled())
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
        config.set_endpoint_url(self.endpoint.clone());
        Client::from_conf(config.build())
    }
}

impl fmt::Debug for DynamoDbConfig {
    /// Says nothing of credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbConfig")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("table", &self.table)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// As much of a wrong name as an error should repeat.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(region: &str, table: &str) -> Result<DynamoDbConfig, ConfigError> {
        DynamoDbConfig::new(region, table, keys("id", "hunter2"))
    }

    #[test]
    fn what_is_no_region_or_table_is_refused() {
        for region in ["", "ap northeast", "https://x"] {
            assert!(matches!(config(region, "limits"), Err(ConfigError::Region(_))), "{region}");
        }
        for table in ["", "ab", "a/b/c", "limits table", &"x".repeat(256)] {
            assert!(matches!(config("us-east-1", table), Err(ConfigError::Table(_))), "{table}");
        }
        assert!(config("ap-northeast-1", "aruaruarena_test-rate.limits").is_ok());
    }

    #[test]
    fn what_is_no_endpoint_is_refused_without_repeating_it() {
        for url in ["", "localhost:8000", "ftp://host", "http://", "http://u:hunter2@host"] {
            let error = config("us-east-1", "limits").unwrap().endpoint(url).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(config("us-east-1", "limits").unwrap().endpoint("http://127.0.0.1:8000").is_ok());
    }

    #[test]
    fn secrets_are_not_shown() {
        assert!(!format!("{:?}", config("us-east-1", "limits")).contains("hunter2"));
    }
}
