//! The connection to a management server.

use std::{error::Error as StdError, fs, io, path::PathBuf, time::Duration};

use thiserror::Error;
use tokio::time::timeout;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use crate::{XdsConfig, XdsUrl};

/// A failed connection.
#[derive(Debug, Error)]
pub(super) enum ChannelError {
    #[error("cannot read {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{}", chain(.0))]
    Transport(#[from] tonic::transport::Error),
    #[error("no connection within {0:?}")]
    Timeout(Duration),
}

/// A machine that is gone is detected within a minute.
const TCP_KEEPALIVE: Duration = Duration::from_secs(30);
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const TCP_KEEPALIVE_RETRIES: u32 = 3;

/// A server that hangs is detected later: servers written in Go close connections that are pinged
/// more often than every five minutes.
const PING_INTERVAL: Duration = Duration::from_secs(6 * 60);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects. Certificates are read again each time: they may have been renewed.
pub(super) async fn connect(url: &XdsUrl, config: &XdsConfig) -> Result<Channel, ChannelError> {
    let connect_timeout = config.connect_timeout();
    let mut endpoint = Endpoint::from_shared(url.to_string())?
        .connect_timeout(connect_timeout)
        .tcp_keepalive(Some(TCP_KEEPALIVE))
        .tcp_keepalive_interval(Some(TCP_KEEPALIVE_INTERVAL))
        .tcp_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES))
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT);
    if url.is_https() {
        endpoint = endpoint.tls_config(tls(config)?)?;
    }
    match timeout(connect_timeout, endpoint.connect()).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(ChannelError::Timeout(connect_timeout)),
    }
}

impl XdsConfig {
    /// Connects to the management server once, if there is one.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be reached.
    pub async fn try_connect(&self) -> Result<(), String> {
        match &self.url {
            Some(url) => connect(url, self).await.map(drop).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

fn tls(config: &XdsConfig) -> Result<ClientTlsConfig, ChannelError> {
    let read = |path: &PathBuf| {
        fs::read(path).map_err(|cause| ChannelError::File { path: path.clone(), cause })
    };
    let mut tls = match &config.ca_file {
        Some(path) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(path)?)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    if let (Some(cert), Some(key)) = (&config.cert_file, &config.key_file) {
        tls = tls.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    if let Some(name) = &config.server_name {
        tls = tls.domain_name(name);
    }
    Ok(tls)
}

/// Formats an error with its causes: the outermost one alone is too general.
fn chain(error: &tonic::transport::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
