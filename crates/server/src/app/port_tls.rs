//! TLS of the two ports.

use std::sync::Arc;

use headgate::Clock;
use headgate_serve::Tls;
use headgate_tls::TlsConfig;

use super::BuildError;
use crate::config::ServerConfig;

/// TLS of the two ports. They share it, unless the gRPC port has a section of its own.
#[derive(Clone, Default)]
pub(super) struct PortTls {
    pub(super) rest: Option<Arc<Tls>>,
    pub(super) grpc: Option<Arc<Tls>>,
}

impl PortTls {
    pub(super) fn open(config: &ServerConfig, clock: &Arc<dyn Clock>) -> Result<Self, BuildError> {
        let rest = open("server.tls", &config.tls, clock)?;
        let grpc = match &config.grpc_tls {
            Some(own) => open("server.grpc_tls", own, clock)?,
            None => rest.clone(),
        };
        Ok(Self { rest, grpc })
    }

    /// Returns each of them once, with its section of the configuration.
    pub(super) fn sections<'c>(
        &self,
        config: &'c ServerConfig,
    ) -> Vec<(&'static str, &'c TlsConfig, Arc<Tls>)> {
        let rest = self.rest.iter().map(|tls| ("server.tls", &config.tls, Arc::clone(tls)));
        let own = config.grpc_tls.as_ref().zip(self.grpc.as_ref());
        let grpc = own.map(|(own, tls)| ("server.grpc_tls", own, Arc::clone(tls)));
        rest.chain(grpc).collect()
    }

    /// Returns each of them once.
    pub(super) fn distinct(&self) -> Vec<Arc<Tls>> {
        let mut all: Vec<_> = self.rest.iter().chain(&self.grpc).cloned().collect();
        all.dedup_by(|a, b| Arc::ptr_eq(a, b));
        all
    }
}

fn open(
    section: &str,
    config: &TlsConfig,
    clock: &Arc<dyn Clock>,
) -> Result<Option<Arc<Tls>>, BuildError> {
    if !config.is_enabled() {
        return Ok(None);
    }
    let opened = Tls::open(config, Arc::clone(clock));
    let unusable = |problem: headgate_config::Problem| BuildError::Config(problem.within(section));
    opened.map(|tls| Some(Arc::new(tls))).map_err(unusable)
}
