use std::sync::Arc;

use headgate_config::{ConfigError, Problem};
use tokio::sync::Notify;

use crate::{
    EnvoyCatalog, EnvoyConfig, EnvoyMetrics,
    compiled::Domains,
    reloader::{DomainFiles, FileReloader, PreparedFiles},
    source::FileSource,
    xds::XdsClient,
};

/// Keeps the domains up to date, from files or from a management server.
pub struct Configurator(Kind);

/// Reloads the source of the domains while [`Configurator`] runs.
#[derive(Clone)]
pub struct SourceControl(Control);

#[derive(Clone)]
enum Control {
    Files(DomainFiles),
    Xds(Arc<Notify>),
    Rules,
}

/// A reload that is ready to be applied.
#[must_use = "it applies when it is committed"]
pub struct PreparedSource(Prepared);

enum Prepared {
    Files(PreparedFiles),
    Xds(Arc<Notify>),
    Rules,
}

enum Kind {
    Files(Box<FileReloader>),
    Xds(Box<XdsClient>),
    /// There are no domains: rules decide alone.
    Rules,
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
            let catalog = Arc::new(EnvoyCatalog::default());
            catalog.replace(Domains::new(), metrics);
            return Ok(Some((catalog, Self(Kind::Rules))));
        };
        let (catalog, reloader) =
            FileReloader::start(source, config.reload_interval(), metrics.clone())?;
        Ok(Some((catalog, Self(Kind::Files(Box::new(reloader))))))
    }

    /// Returns the control of the source.
    pub fn control(&self) -> SourceControl {
        SourceControl(match &self.0 {
            Kind::Files(reloader) => Control::Files(reloader.files().clone()),
            Kind::Xds(client) => Control::Xds(Arc::clone(client.reload())),
            Kind::Rules => Control::Rules,
        })
    }

    /// Runs until it is dropped.
    pub async fn run(self) {
        match self.0 {
            Kind::Files(reloader) => reloader.run().await,
            Kind::Xds(client) => client.run().await,
            Kind::Rules => std::future::pending().await,
        }
    }
}

// === impl SourceControl ===

impl SourceControl {
    /// Reads the files that `config` names, or prepares to end the pause before the next connection
    /// attempt. Nothing changes until it is committed. Blocks while it reads.
    ///
    /// # Errors
    ///
    /// Returns everything that is wrong with the files.
    pub fn prepare(&self, config: &EnvoyConfig) -> Result<PreparedSource, ConfigError> {
        Ok(PreparedSource(match &self.0 {
            Control::Files(files) => Prepared::Files(files.prepare(config)?),
            Control::Xds(reload) => Prepared::Xds(Arc::clone(reload)),
            Control::Rules if FileSource::of(config).is_none() && config.rules => Prepared::Rules,
            Control::Rules => {
                let message =
                    "domains from files need a restart: none were configured at the start";
                return Err(ConfigError::problems(vec![Problem::new("envoy", message)]));
            }
        }))
    }
}

// === impl PreparedSource ===

impl PreparedSource {
    /// Applies the reload.
    pub fn commit(self) {
        match self.0 {
            Prepared::Files(files) => files.commit(),
            Prepared::Xds(reload) => reload.notify_one(),
            Prepared::Rules => {}
        }
    }
}
