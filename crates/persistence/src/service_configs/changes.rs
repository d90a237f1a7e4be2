//! The audit log of service documents.

use headgate_ratelimit::Author;
use headgate_service_config::DocumentStoreError;
use serde_json::Value;

use crate::{moment::Moment, session::Session, statement::Statement};

const RECORD: &str = "
    INSERT INTO audit_logs
        (actor_admin_user_id, action, target, diff_json, request_id, created_at)
    VALUES ($1, $2, $3, CAST($4 AS jsonb), $5, $6)";

const RECORD_ON_SQLITE: &str = "
    INSERT INTO audit_logs
        (actor_admin_user_id, action, target, diff_json, request_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)";

/// An entry of the audit log.
pub(crate) struct Change<'a> {
    pub(crate) action: &'static str,
    pub(crate) target: String,
    /// `{"before": ..., "after": ...}`.
    pub(crate) diff: Value,
    pub(crate) author: &'a Author,
}

impl Change<'_> {
    /// Records the entry in the transaction of the change.
    pub(crate) async fn record(self, session: &mut Session) -> Result<(), DocumentStoreError> {
        let entry = Statement::either(RECORD, RECORD_ON_SQLITE)
            .bind(&*self.author.actor)
            .bind(self.action)
            .bind(&*self.target)
            .bind(&*self.diff.to_string())
            .bind(&*self.author.request_id)
            .bind(Moment::shown(self.author.at));
        session.execute(entry).await.map_err(DocumentStoreError::audit_log)
    }
}
