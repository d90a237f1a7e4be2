//! The connection to a management server.

use std::{error::Error as StdError, time::Duration};

use headgate_tls_client::{TlsFileError, explain};
use thiserror::Error;
use tokio::time::timeout;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::{XdsConfig, XdsUrl};

/// A failed connection.
#[derive(Debug, Error)]
pub(super) enum ChannelError {
    #[error(transparent)]
    File(#[from] TlsFileError),
    #[error("{}", describe(.0))]
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
    let tls = config.tls_files().load()?.tonic_config();
    Ok(match &config.server_name {
        Some(name) => tls.domain_name(name),
        None => tls,
    })
}

/// Explains errors of TLS, and formats others with their causes: the outermost one alone is too
/// general.
fn describe(error: &tonic::transport::Error) -> String {
    if let Some(text) = explain(error, "the management server", "envoy.xds") {
        return format!("TLS: {text}");
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
