use std::sync::Arc;

use headgate_config::ConfigError;
use tokio::sync::Notify;

use crate::{
    EnvoyCatalog, EnvoyConfig, EnvoyMetrics, reloader::FileReloader, source::FileSource,
    xds::XdsClient,
};

/// Keeps the domains up to date, from files or from a management server.
pub struct Configurator(Kind);

enum Kind {
    Files(Box<FileReloader>),
    Xds(Box<XdsClient>),
}

impl Configurator {
    /// Returns the domains and the task that keeps them up to date; `None` if Envoy is not enabled.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with the files. A management server may be unreachable: its
    /// first configuration can come later.
    pub fn start(
        config: &EnvoyConfig,
        metrics: &EnvoyMetrics,
    ) -> Result<Option<(Arc<EnvoyCatalog>, Self)>, ConfigError> {
        if !config.enabled {
            return Ok(None);
        }
        if let Some(url) = &config.xds.url {
            let (catalog, client) =
                XdsClient::new(url.clone(), config.xds.clone(), metrics.clone());
            return Ok(Some((catalog, Self(Kind::Xds(Box::new(client))))));
        }
        let Some(source) = FileSource::of(config) else {
            return Ok(None);
        };
        let (catalog, reloader) =
            FileReloader::start(source, config.reload_interval(), metrics.clone())?;
        Ok(Some((catalog, Self(Kind::Files(Box::new(reloader))))))
    }

    /// Triggers a reload: reads the files at once, or ends the pause before the next connection
    /// attempt.
    pub const fn reload(&self) -> &Arc<Notify> {
        match &self.0 {
            Kind::Files(reloader) => reloader.reload(),
            Kind::Xds(client) => client.reload(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        match self.0 {
            Kind::Files(reloader) => reloader.run().await,
            Kind::Xds(client) => client.run().await,
        }
    }
}
