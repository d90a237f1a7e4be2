//! Registered kinds of documents.

use headgate::Timestamp;
use headgate_service_config::{DocumentKind, DocumentStoreError, Kinds};
use tracing::warn;

use super::record;
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

const REGISTER: &str = "
    INSERT INTO service_kinds (service, revision, schema_json, registered_at)
    VALUES ($1, $2, CAST($3 AS jsonb), $4)
    ON CONFLICT (service) DO UPDATE
    SET revision = excluded.revision, schema_json = excluded.schema_json,
        registered_at = excluded.registered_at
    WHERE service_kinds.revision <= excluded.revision";

const REGISTER_ON_SQLITE: &str = "
    INSERT INTO service_kinds (service, revision, schema_json, registered_at)
    VALUES ($1, $2, $3, $4)
    ON CONFLICT (service) DO UPDATE
    SET revision = excluded.revision, schema_json = excluded.schema_json,
        registered_at = excluded.registered_at
    WHERE service_kinds.revision <= excluded.revision";

const ALL: &str = "
    SELECT service, revision, CAST(schema_json AS TEXT) AS schema_json
    FROM service_kinds ORDER BY service";

const ONE: &str = "
    SELECT service, revision, CAST(schema_json AS TEXT) AS schema_json
    FROM service_kinds WHERE service = $1";

pub(super) async fn register(
    mut session: Session,
    kinds: &Kinds,
    now: Timestamp,
) -> Result<(), DocumentStoreError> {
    // Sorted by name, so that programs that start together do not deadlock.
    for (service, kind) in kinds.iter() {
        let register = Statement::either(REGISTER, REGISTER_ON_SQLITE)
            .bind(service)
            .bind(kind.revision)
            .bind(&*record::to_json(&kind.schema)?)
            .bind(Moment::shown(now));
        session.execute(register).await?;
    }
    Ok(session.commit().await?)
}

pub(super) async fn all(mut session: Session) -> Result<Kinds, DocumentStoreError> {
    let rows = session.rows(Statement::new(ALL)).await?;
    session.commit().await?;
    Ok(rows.iter().filter_map(readable).collect())
}

pub(super) async fn one(
    mut session: Session,
    service: &str,
) -> Result<Option<DocumentKind>, DocumentStoreError> {
    let row = session.row(Statement::new(ONE).bind(service)).await?;
    session.commit().await?;
    Ok(row.as_ref().and_then(readable).map(|(_, kind)| kind))
}

/// Returns a kind, unless this program cannot read it: one that a newer program registered must
/// not make the documents of all other services unavailable.
fn readable(row: &Row) -> Option<(String, DocumentKind)> {
    record::kind(row)
        .inspect_err(|error| warn!(%error, "ignoring a kind of documents that cannot be read"))
        .ok()
}
