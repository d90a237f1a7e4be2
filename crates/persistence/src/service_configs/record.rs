//! Documents and changes as rows.

use headgate_ratelimit::Author;
use headgate_service_config::{
    ConfigChange, DocumentKind, DocumentSchema, DocumentStoreError, ServiceConfig, ServiceState,
};
use serde::de::DeserializeOwned;

use crate::row::Row;

pub(super) fn config(row: &Row) -> Result<ServiceConfig, DocumentStoreError> {
    let read = || {
        Ok(ServiceConfig {
            service: row.get("service")?,
            version: row.get("version")?,
            config: json(row, "config_json")?,
            updated_at: row.time("updated_at")?,
            updated_by: row.get("updated_by")?,
        })
    };
    read().map_err(|error| corrupt(&error))
}

pub(super) fn change(row: &Row) -> Result<ConfigChange, DocumentStoreError> {
    let read = || {
        Ok(ConfigChange {
            id: row.get("audit_id")?,
            author: Author {
                actor: row.get("actor_admin_user_id")?,
                request_id: row.get("request_id")?,
                at: row.time("created_at")?,
            },
            action: row.get("action")?,
            target: row.get("target")?,
            diff: json(row, "diff_json")?,
        })
    };
    read().map_err(|error| corrupt(&error))
}

pub(super) fn state(row: &Row) -> Result<ServiceState, DocumentStoreError> {
    let read = || {
        Ok(ServiceState {
            service: row.get("service")?,
            instance: row.get("instance")?,
            version: row.get("version")?,
            source: row.get("source")?,
            seen_at: row.time("seen_at")?,
        })
    };
    read().map_err(|error| corrupt(&error))
}

pub(super) fn kind(row: &Row) -> Result<(String, DocumentKind), DocumentStoreError> {
    let read = || {
        let revision: i64 = row.get("revision")?;
        let revision =
            u32::try_from(revision).map_err(|error| sqlx::Error::Decode(error.into()))?;
        Ok((row.get("service")?, DocumentKind { revision, schema: json(row, "schema_json")? }))
    };
    read().map_err(|error| corrupt(&error))
}

pub(super) fn to_json(schema: &DocumentSchema) -> Result<String, DocumentStoreError> {
    serde_json::to_string(schema).map_err(|error| DocumentStoreError::Corrupt(error.to_string()))
}

fn json<T: DeserializeOwned>(row: &Row, column: &str) -> Result<T, sqlx::Error> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))
}

fn corrupt(error: &sqlx::Error) -> DocumentStoreError {
    DocumentStoreError::Corrupt(error.to_string())
}
