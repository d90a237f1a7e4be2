use std::sync::Arc;

use headgate_config::ConfigError;
use tokio::sync::Notify;

use super::{
    catalog::{EnvoyCatalog, Reloader},
    source::Source,
    xds::XdsClient,
};
use crate::{config::EnvoyConfig, metrics::EnvoyNumbers};

/// Keeps the domains in force those that the operator's source says.
pub(crate) enum Configurator {
    Files(Box<Reloader>),
    Xds(Box<XdsClient>),
}

impl Configurator {
    /// The domains, and what keeps them up to date; nothing unless it is switched on.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the files. A management server is waited for.
    pub(crate) fn start(
        config: &EnvoyConfig,
        numbers: &EnvoyNumbers,
    ) -> Result<Option<(Arc<EnvoyCatalog>, Self)>, ConfigError> {
        if !config.enabled {
            return Ok(None);
        }
        if let Some(url) = &config.xds.url {
            let (catalog, client) =
                XdsClient::new(url.clone(), config.xds.clone(), numbers.clone());
            return Ok(Some((catalog, Self::Xds(Box::new(client)))));
        }
        let Some(source) = Source::of(config) else {
            return Ok(None);
        };
        let (catalog, reloader) =
            Reloader::start(source, config.reload_interval(), numbers.clone())?;
        Ok(Some((catalog, Self::Files(Box::new(reloader)))))
    }

    /// Makes it load the configuration at once.
    pub(crate) const fn reload(&self) -> &Arc<Notify> {
        match self {
            Self::Files(reloader) => reloader.reload(),
            Self::Xds(client) => client.reload(),
        }
    }

    /// Goes on for as long as it is polled.
    pub(crate) async fn run(self) {
        match self {
            Self::Files(reloader) => reloader.run().await,
            Self::Xds(client) => client.run().await,
        }
    }
}
