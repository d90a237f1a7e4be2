//! Changes of documents: change, audit entry and notification in one transaction.

use headgate_ratelimit::Author;
use headgate_service_config::{
    ConfigChange, ConfigUpdate, DocumentStoreError, ServiceConfig, payload,
};
use serde_json::{Value, json};

use super::{changes::Change, record};
use crate::{listener, moment::Moment, session::Session, statement::Statement};

/// Selects and locks a document. SQLite has one writer at a time.
const LOCK: &str = "
    SELECT service, version, CAST(config_json AS TEXT) AS config_json, updated_at, updated_by
    FROM service_configs WHERE service = $1 FOR UPDATE";

const CREATE: &str = "
    INSERT INTO service_configs (service, version, config_json, updated_at, updated_by)
    VALUES ($1, 1, CAST($2 AS jsonb), $3, $4)
    ON CONFLICT (service) DO NOTHING
    RETURNING version";

const CREATE_ON_SQLITE: &str = "
    INSERT INTO service_configs (service, version, config_json, updated_at, updated_by)
    VALUES ($1, 1, $2, $3, $4)
    ON CONFLICT (service) DO NOTHING
    RETURNING version";

const UPDATE: &str = "
    UPDATE service_configs
    SET version = version + 1, config_json = CAST($2 AS jsonb), updated_at = $3, updated_by = $4
    WHERE service = $1 AND ($5 IS NULL OR version = $5)
    RETURNING version";

const UPDATE_ON_SQLITE: &str = "
    UPDATE service_configs
    SET version = version + 1, config_json = $2, updated_at = $3, updated_by = $4
    WHERE service = $1 AND ($5 IS NULL OR version = $5)
    RETURNING version";

/// Stores a document, on condition that the version it replaces is the current one.
pub(super) async fn put(
    mut session: Session,
    update: &ConfigUpdate,
    author: &Author,
) -> Result<ServiceConfig, DocumentStoreError> {
    let (before, version) = replace(&mut session, update, author).await?;
    let config = ServiceConfig {
        service: update.service.clone(),
        version,
        config: update.config.clone(),
        updated_at: Moment::shown(author.at),
        updated_by: author.actor.clone(),
    };
    // If the audit entry fails, nothing is committed.
    record(&mut session, before.as_ref(), &config, author).await?;
    if let Session::Postgres(_) = session {
        let payload_text = payload::payload(&config.service, version);
        let notify = Statement::new(listener::NOTIFY).bind(payload::CHANNEL).bind(&*payload_text);
        session.execute(notify).await?;
    }
    session.commit().await?;
    Ok(config)
}

/// Replaces the document; returns the old one and the new version.
async fn replace(
    session: &mut Session,
    update: &ConfigUpdate,
    author: &Author,
) -> Result<(Option<ServiceConfig>, i64), DocumentStoreError> {
    let expected = update.expected_version;
    loop {
        let before = lock(session, &update.service).await?;
        let current = before.as_ref().map(|before| before.version);
        if expected.is_some_and(|expected| expected != current.unwrap_or_default()) {
            return Err(DocumentStoreError::VersionMismatch { current });
        }
        let written = match before {
            Some(_) => Statement::either(UPDATE, UPDATE_ON_SQLITE),
            None => Statement::either(CREATE, CREATE_ON_SQLITE),
        };
        let written = written
            .bind(&*update.service)
            .bind(&*update.config.to_string())
            .bind(Moment::shown(author.at))
            .bind(&*author.actor);
        let written = match before {
            Some(_) => written.bind(expected),
            None => written,
        };
        if let Some(row) = session.row(written).await? {
            let version = row.get("version");
            return Ok((
                before,
                version.map_err(|error| DocumentStoreError::Corrupt(error.to_string()))?,
            ));
        }
        // Another writer created or changed it in between: read it again.
    }
}

async fn lock(
    session: &mut Session,
    service: &str,
) -> Result<Option<ServiceConfig>, DocumentStoreError> {
    let row = session.row(Statement::either(LOCK, super::ONE).bind(service)).await?;
    row.as_ref().map(record::config).transpose()
}

async fn record(
    session: &mut Session,
    before: Option<&ServiceConfig>,
    after: &ServiceConfig,
    author: &Author,
) -> Result<(), DocumentStoreError> {
    let side =
        |config: &ServiceConfig| json!({"version": config.version, "config_json": config.config});
    let diff = json!({"before": before.map_or(Value::Null, side), "after": side(after)});
    let target = ConfigChange::target(&after.service);
    Change { action: ConfigChange::UPDATE, target, diff, author }.record(session).await
}
