//! The document versions that service instances run.

use headgate::Timestamp;
use headgate_service_config::{DocumentStoreError, ServiceState, repository::MAX_STATES};

use super::record;
use crate::{session::Session, statement::Statement};

const REPORT: &str = "
    INSERT INTO service_states (service, instance, version, source, seen_at)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (service, instance) DO UPDATE
    SET version = excluded.version, source = excluded.source, seen_at = excluded.seen_at";

const DELETE_OLD: &str = "DELETE FROM service_states WHERE seen_at < $1";

const ALL: &str = "
    SELECT service, instance, version, source, seen_at FROM service_states
    ORDER BY seen_at DESC, service, instance LIMIT $1";

pub(super) async fn report(
    mut session: Session,
    states: &[ServiceState],
    forget_before: Timestamp,
) -> Result<(), DocumentStoreError> {
    session.execute(Statement::new(DELETE_OLD).bind(forget_before)).await?;
    for state in states {
        let report = Statement::new(REPORT)
            .bind(&*state.service)
            .bind(&*state.instance)
            .bind(state.version)
            .bind(&*state.source)
            .bind(state.seen_at);
        session.execute(report).await?;
    }
    Ok(session.commit().await?)
}

pub(super) async fn all(mut session: Session) -> Result<Vec<ServiceState>, DocumentStoreError> {
    let rows = session.rows(Statement::new(ALL).bind(MAX_STATES)).await?;
    session.commit().await?;
    let states: Result<Vec<_>, _> = rows.iter().map(record::state).collect();
    let mut states = states?;
    states.sort_by(|a, b| (&a.service, &a.instance).cmp(&(&b.service, &b.instance)));
    Ok(states)
}
