//! Table, credentials and timeout.

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
    tls::{Provider, TlsContext, TrustStore, rustls_provider::CryptoMode},
};
use headgate_tls_client::{CertificateError, Certificates};
use thiserror::Error;

/// Table, credentials and timeout of a DynamoDB store.
#[derive(Clone)]
pub struct DynamoDbConfig {
    region: String,
    endpoint: Option<String>,
    credentials: SharedCredentialsProvider,
    certificates: Certificates,
    pub(crate) table: String,
    pub(crate) timeout: Duration,
}

/// Invalid configuration of a DynamoDB store.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum DynamoDbConfigError {
    /// Invalid region.
    #[error("invalid region {0:?}: expected a name such as ap-northeast-1")]
    Region(String),
    /// Invalid table name.
    #[error("invalid table name {0:?}: expected 3 to 255 letters, digits, '_', '-' and '.'")]
    Table(String),
    /// Invalid endpoint.
    #[error("invalid endpoint: expected http:// or https://, a host and a port")]
    Endpoint,
    /// Invalid certificates.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// Static credentials: the id and the secret of an access key.
pub fn static_credentials(id: impl Into<String>, secret: impl Into<String>) -> Credentials {
    Credentials::new(id, secret, None, None, "configuration")
}

// === impl DynamoDbConfig ===

impl DynamoDbConfig {
    /// A table in a region, with [`static_credentials`] or another provider: those of the crate
    /// `aws-config` read the environment, the shared files and the role of the machine.
    pub fn new(
        region: impl Into<String>,
        table: impl Into<String>,
        credentials: impl ProvideCredentials + 'static,
    ) -> Result<Self, DynamoDbConfigError> {
        let (region, table) = (region.into(), table.into());
        let fits = |name: &str, others: &[u8]| {
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
        };
        if region.is_empty() || region.len() > 64 || !fits(&region, b"-") {
            return Err(DynamoDbConfigError::Region(shortened(&region)));
        }
        if !(3..=255).contains(&table.len()) || !fits(&table, b"_-.") {
            return Err(DynamoDbConfigError::Table(shortened(&table)));
        }
        let credentials = SharedCredentialsProvider::new(credentials);
        Ok(Self {
            region,
            endpoint: None,
            credentials,
            certificates: Certificates::default(),
            table,
            timeout: Duration::from_secs(1),
        })
    }

    /// Overrides the endpoint of the region: `http://` or `https://`, host and port.
    pub fn endpoint(self, url: impl Into<String>) -> Result<Self, DynamoDbConfigError> {
        let url = url.into();
        let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let is_host = |host: &str| {
            !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || c == '@')
        };
        if !host.is_some_and(is_host) {
            return Err(DynamoDbConfigError::Endpoint);
        }
        Ok(Self { endpoint: Some(url), ..self })
    }

    /// Certificate authorities to trust, in PEM. Default: those of the system. Used for `https://`,
    /// for example with an endpoint behind a proxy of one's own.
    pub fn root_certificate(self, pem: impl Into<Vec<u8>>) -> Result<Self, DynamoDbConfigError> {
        Ok(Self { certificates: self.certificates.trusting(pem)?, ..self })
    }

    /// Timeout of a decision, including all requests and retries. Default: 1 s. Calls of one
    /// process that change the same key wait for each other before that, for up to the same time.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// A client for other tables of the program. It has no retries and no timeouts.
    pub fn client(&self) -> Client {
        let is_plain = self.endpoint.as_ref().is_some_and(|url| url.starts_with("http://"));
        let http = if is_plain {
            Builder::new().build_http()
        } else {
            let provider = Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
            provider.tls_context(self.tls_context()).build_https()
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

impl DynamoDbConfig {
    fn tls_context(&self) -> TlsContext {
        let trusted = match self.certificates.authorities() {
            Some(authorities) => TrustStore::empty().with_pem_certificate(authorities),
            None => TrustStore::default(),
        };
        // It fails only for other providers of TLS.
        TlsContext::builder().with_trust_store(trusted).build().unwrap_or_default()
    }
}

impl fmt::Debug for DynamoDbConfig {
    /// Omits credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamoDbConfig")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .field("table", &self.table)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The part of an invalid name that an error quotes.
fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(region: &str, table: &str) -> Result<DynamoDbConfig, DynamoDbConfigError> {
        DynamoDbConfig::new(region, table, static_credentials("id", "hunter2"))
    }

    #[test]
    fn invalid_regions_and_tables_are_rejected() {
        for region in ["", "ap northeast", "https://x"] {
            assert!(
                matches!(config(region, "limits"), Err(DynamoDbConfigError::Region(_))),
                "{region}"
            );
        }
        for table in ["", "ab", "a/b/c", "limits table", &"x".repeat(256)] {
            assert!(
                matches!(config("us-east-1", table), Err(DynamoDbConfigError::Table(_))),
                "{table}"
            );
        }
        assert!(config("ap-northeast-1", "aruaruarena_test-rate.limits").is_ok());
    }

    #[test]
    fn an_error_about_an_invalid_endpoint_does_not_quote_it() {
        for url in ["", "localhost:8000", "ftp://host", "http://", "http://u:hunter2@host"] {
            let error = config("us-east-1", "limits").unwrap().endpoint(url).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(config("us-east-1", "limits").unwrap().endpoint("http://127.0.0.1:8000").is_ok());
    }

    #[test]
    fn debug_output_has_no_secrets() {
        assert!(!format!("{:?}", config("us-east-1", "limits")).contains("hunter2"));
    }
}
