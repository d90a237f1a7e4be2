//! Services in the database.

use std::collections::BTreeSet;

use headgate_service_config::{
    DocumentKind, DocumentStoreError, Invalid, Kinds, ServiceConfig, ServiceConfigRepository,
    ServiceState, kinds,
};
use serde_json::Value;

use crate::rest::error::ApiError;

/// Services that registered a kind of document, have a document, or reported what they run on.
pub(super) struct ServiceCatalog {
    kinds: Kinds,
    documents: Vec<ServiceConfig>,
    pub(super) states: Vec<ServiceState>,
}

/// One service, with its kind of document and its document.
pub(super) struct StoredService {
    kind: Option<DocumentKind>,
    pub(super) document: Option<ServiceConfig>,
}

// === impl ServiceCatalog ===

impl ServiceCatalog {
    pub(super) async fn load(
        repository: &dyn ServiceConfigRepository,
    ) -> Result<Self, DocumentStoreError> {
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
    fn find(&self, service: &str) -> Result<(), ApiError> {
        let names = self.names();
        if names.contains(service) {
            return Ok(());
        }
        let known = names.into_iter().map(str::to_owned).collect();
        Err(ApiError::NoSuchService(Invalid::Service { known }.to_string()))
    }
}

// === impl StoredService ===

impl StoredService {
    /// Loads one service; an invalid document of another does not affect it.
    pub(super) async fn load(
        repository: &dyn ServiceConfigRepository,
        name: &str,
    ) -> Result<Self, ApiError> {
        let service =
            Self { kind: repository.kind(name).await?, document: repository.get(name).await? };
        if service.kind.is_none() && service.document.is_none() {
            // It may run on defaults. If not, the error lists the known services.
            ServiceCatalog::load(repository).await?.find(name)?;
        }
        Ok(service)
    }

    /// Returns true if the service registered its kind of document.
    pub(super) fn is_registered(&self) -> bool {
        self.kind.is_some()
    }

    /// Validates a document by its registered kind. Without one, the service validates it, and
    /// keeps its last valid document if this one is invalid.
    pub(super) fn validate(&self, config: &Value) -> Result<(), Invalid> {
        match &self.kind {
            Some(kind) => kind.validate(config),
            None => kinds::validate_unregistered(config),
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use headgate::Timestamp;
    use headgate_ratelimit::Author;
    use headgate_service_config::{
        AuditFilter, ConfigChange, ConfigUpdate, repository::PayloadHandler,
    };
    use serde_json::json;

    use super::*;

    /// Storage with a document of the relay, and an invalid row of another service.
    struct CorruptStorage;

    fn corrupt<T>() -> Result<T, DocumentStoreError> {
        Err(DocumentStoreError::Corrupt("not a document".to_owned()))
    }

    #[async_trait]
    impl ServiceConfigRepository for CorruptStorage {
        async fn list(&self) -> Result<Vec<ServiceConfig>, DocumentStoreError> {
            corrupt()
        }

        async fn get(&self, service: &str) -> Result<Option<ServiceConfig>, DocumentStoreError> {
            Ok((service == "relay").then(|| ServiceConfig {
                service: service.to_owned(),
                version: 7,
                config: json!({}),
                updated_at: Timestamp::default(),
                updated_by: "ada".to_owned(),
            }))
        }

        async fn put(
            &self,
            _: &ConfigUpdate,
            _: &Author,
        ) -> Result<ServiceConfig, DocumentStoreError> {
            corrupt()
        }

        async fn changes(&self, _: &AuditFilter) -> Result<Vec<ConfigChange>, DocumentStoreError> {
            corrupt()
        }

        async fn register(&self, _: &Kinds, _: Timestamp) -> Result<(), DocumentStoreError> {
            corrupt()
        }

        async fn kinds(&self) -> Result<Kinds, DocumentStoreError> {
            corrupt()
        }

        async fn kind(&self, _: &str) -> Result<Option<DocumentKind>, DocumentStoreError> {
            Ok(None)
        }

        async fn report(&self, _: &[ServiceState], _: Timestamp) -> Result<(), DocumentStoreError> {
            corrupt()
        }

        async fn states(&self) -> Result<Vec<ServiceState>, DocumentStoreError> {
            corrupt()
        }

        async fn listen(&self, _: &PayloadHandler<'_>) -> DocumentStoreError {
            DocumentStoreError::Corrupt("not a document".to_owned())
        }
    }

    #[tokio::test]
    async fn a_service_is_loaded_without_the_others() {
        let relay = StoredService::load(&CorruptStorage, "relay").await.unwrap();
        assert_eq!(relay.document.map(|document| document.version), Some(7));
        let unknown = StoredService::load(&CorruptStorage, "nobody").await;
        assert!(matches!(unknown, Err(ApiError::Internal(_))));
    }
}
