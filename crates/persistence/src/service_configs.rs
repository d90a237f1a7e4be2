//! Service documents.

mod changes;
mod kinds;
mod record;
mod states;
mod write;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_ratelimit::Author;
use headgate_service_config::{
    AuditFilter, ConfigChange, ConfigUpdate, DocumentKind, DocumentStoreError, Kinds,
    ServiceConfig, ServiceConfigRepository, ServiceState, payload, repository::PayloadHandler,
};

pub(crate) use self::changes::Change;
use crate::{
    Database,
    database::Pool,
    listener::{self, Subscriber},
    statement::Statement,
};

/// Stores service documents on a [`Database`].
#[derive(Clone, Debug)]
pub struct ServiceConfigDatabase(Database);

const LIST: &str = "
    SELECT service, version, CAST(config_json AS TEXT) AS config_json, updated_at, updated_by
    FROM service_configs ORDER BY service";

const ONE: &str = "
    SELECT service, version, CAST(config_json AS TEXT) AS config_json, updated_at, updated_by
    FROM service_configs WHERE service = $1";

const CHANGES: &str = "
    SELECT audit_id, actor_admin_user_id, action, target, CAST(diff_json AS TEXT) AS diff_json,
        request_id, created_at
    FROM audit_logs
    WHERE ($1 IS NULL OR action = $1) AND ($2 IS NULL OR target = $2)
        AND ($3 IS NULL OR created_at >= $3)
    ORDER BY audit_id DESC LIMIT $4";

impl Database {
    /// Returns the storage of service documents.
    pub fn service_configs(&self) -> ServiceConfigDatabase {
        ServiceConfigDatabase(self.clone())
    }
}

#[async_trait]
impl ServiceConfigRepository for ServiceConfigDatabase {
    async fn list(&self) -> Result<Vec<ServiceConfig>, DocumentStoreError> {
        let mut session = self.0.reading().await?;
        let rows = session.rows(Statement::new(LIST)).await?;
        session.commit().await?;
        rows.iter().map(record::config).collect()
    }

    async fn get(&self, service: &str) -> Result<Option<ServiceConfig>, DocumentStoreError> {
        let mut session = self.0.reading().await?;
        let row = session.row(Statement::new(ONE).bind(service)).await?;
        session.commit().await?;
        row.as_ref().map(record::config).transpose()
    }

    async fn put(
        &self,
        update: &ConfigUpdate,
        author: &Author,
    ) -> Result<ServiceConfig, DocumentStoreError> {
        write::put(self.0.writing().await?, update, author).await
    }

    async fn changes(&self, filter: &AuditFilter) -> Result<Vec<ConfigChange>, DocumentStoreError> {
        let mut session = self.0.reading().await?;
        let changes = Statement::new(CHANGES)
            .bind(filter.action.as_deref())
            .bind(filter.target.as_deref())
            .bind(filter.since)
            .bind(filter.count());
        let rows = session.rows(changes).await?;
        session.commit().await?;
        rows.iter().map(record::change).collect()
    }

    async fn register(&self, kinds: &Kinds, now: Timestamp) -> Result<(), DocumentStoreError> {
        kinds::register(self.0.writing().await?, kinds, now).await
    }

    async fn kinds(&self) -> Result<Kinds, DocumentStoreError> {
        kinds::all(self.0.reading().await?).await
    }

    async fn kind(&self, service: &str) -> Result<Option<DocumentKind>, DocumentStoreError> {
        kinds::one(self.0.reading().await?, service).await
    }

    async fn report(
        &self,
        states: &[ServiceState],
        forget_before: Timestamp,
    ) -> Result<(), DocumentStoreError> {
        states::report(self.0.writing().await?, states, forget_before).await
    }

    async fn states(&self) -> Result<Vec<ServiceState>, DocumentStoreError> {
        states::all(self.0.reading().await?).await
    }

    async fn listen(&self, handler: &PayloadHandler<'_>) -> DocumentStoreError {
        match self.0.pool() {
            Pool::Postgres { listening, .. } => {
                listener::listen(listening, payload::CHANNEL, Subscriber::Payload(handler))
                    .await
                    .into()
            }
            Pool::Sqlite { .. } => std::future::pending().await,
        }
    }
}
