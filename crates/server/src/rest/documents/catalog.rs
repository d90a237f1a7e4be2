//! Services in the database.

use std::collections::BTreeSet;

use headgate_service_config::{
    ConfigError, Invalid, Kinds, ServiceConfig, ServiceConfigRepository, ServiceState, kinds,
};
use serde_json::Value;

use crate::rest::error::ApiError;

/// Services that registered a kind of document, have a document, or reported what they run on.
pub(super) struct Catalog {
    kinds: Kinds,
    documents: Vec<ServiceConfig>,
    pub(super) states: Vec<ServiceState>,
}

// === impl Catalog ===

impl Catalog {
    pub(super) async fn load(
        repository: &dyn ServiceConfigRepository,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            kinds: repository.kinds().await?,
            documents: repository.list().await?,
            states: repository.states().await?,
        })
    }

    /// Names of all services, in order.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        let registered = self.kinds.iter().map(|(service, _)| service);
        let stored = self.documents.iter().map(|document| document.service.as_str());
        let running = self.states.iter().map(|state| state.service.as_str());
        registered.chain(stored).chain(running).collect()
    }

    /// The document of `service`, if it has one.
    pub(super) fn document(&self, service: &str) -> Option<&ServiceConfig> {
        self.documents.iter().find(|document| document.service == service)
    }

    /// Returns true if the service registered its kind of document.
    pub(super) fn is_registered(&self, service: &str) -> bool {
        self.kinds.get(service).is_some()
    }

    /// Returns an error for an unknown service.
    pub(super) fn find(&self, service: &str) -> Result<(), ApiError> {
        let names = self.names();
        if names.contains(service) {
            return Ok(());
        }
        let known = names.into_iter().map(str::to_owned).collect();
        Err(ApiError::NoSuchService(Invalid::Service { known }.to_string()))
    }

    /// Validates a document by its registered kind. Without one, the service validates it, and
    /// keeps its last valid document if this one is invalid.
    pub(super) fn validate(&self, service: &str, config: &Value) -> Result<(), Invalid> {
        if self.is_registered(service) {
            self.kinds.validate(service, config)
        } else {
            kinds::validate_unregistered(config)
        }
    }
}
