//! The audit log.

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_ratelimit::{
    AuditEntry, AuditFilter, AuditLog, Author, Listed, Page, RepositoryError,
};
use serde_json::{Value, json};

use crate::{
    Database, moment::Moment, outage::Outage, row::Row, session::Session, statement::Statement,
};

const RECORD: &str = "
    INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const RECORD_WITH_ID: &str = "
    INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    RETURNING id";

const SETTLE: &str = "UPDATE audit_log SET after_state = $2 WHERE id = $1";

/// Maximum number of rows per transaction.
const BATCH: u32 = 5_000;

const DELETE_OLD: &str = "
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM audit_log WHERE occurred_at < $1 ORDER BY occurred_at LIMIT $2)
    RETURNING 1";

/// Deletes old entries of one action.
const DELETE_OLD_OF_ACTION: &str = "
    DELETE FROM audit_log WHERE id IN (
        SELECT id FROM audit_log WHERE occurred_at < $1 AND action = $3
        ORDER BY occurred_at LIMIT $2)
    RETURNING 1";

/// Deletes old entries about service documents.
const DELETE_OLD_DOCUMENTS: &str = "
    DELETE FROM audit_logs WHERE audit_id IN (
        SELECT audit_id FROM audit_logs WHERE created_at < $1 ORDER BY created_at LIMIT $2)
    RETURNING 1";

/// Inserts entries of one author in order; the other columns are bound as JSON.
const RECORD_ALL: (&str, &str) = (
    "INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    SELECT $2, $3, $4, k.value->>'action', k.value->>'target', k.value->>'before',
        k.value->>'after', k.value->>'reason'
    FROM jsonb_array_elements(CAST($1 AS jsonb)) WITH ORDINALITY AS k(value, place)
    ORDER BY k.place",
    "INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    SELECT $2, $3, $4, value->>'action', value->>'target', value->>'before', value->>'after',
        value->>'reason'
    FROM json_each($1) ORDER BY key",
);

const RECORD_ONCE: &str = "
    INSERT INTO audit_log
        (occurred_at, actor, request_id, action, target, before_state, after_state, reason)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8
    WHERE NOT EXISTS (
        SELECT 1 FROM audit_log
        WHERE actor = $2 AND request_id = $3 AND action = $4 AND target = $5
            AND reason IS NOT DISTINCT FROM $8)";

/// Serializes [`Database::record_once`] for one actor. SQLite has one writer at a time.
const LOCK_ACTOR: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended('headgate.audit_once.' || $1, 0))";

/// Counts entries and selects a page of them.
struct Search {
    count: &'static str,
    list: &'static str,
}

/// A search by `$condition` and everything else that a filter has. SQLite does not know which
/// parameters are null when it plans, and so finds entries by an index only if the condition on its
/// first column stands alone.
macro_rules! search {
    ($condition:literal) => {
        Search {
            count: concat!("SELECT count(*) AS total", search!(@from $condition)),
            list: concat!(
                "SELECT id, occurred_at, actor, request_id, action, target, before_state, \
                 after_state, reason",
                search!(@from $condition),
                " ORDER BY id DESC LIMIT $6 OFFSET $7"
            ),
        }
    };
    (@from $condition:literal) => {
        concat!(
            " FROM audit_log WHERE ",
            $condition,
            " AND ($1 IS NULL OR actor = $1) AND ($2 IS NULL OR action = $2)
            AND ($3 IS NULL OR target = $3)
            AND ($4 IS NULL OR occurred_at >= $4) AND ($5 IS NULL OR occurred_at < $5)"
        )
    };
}

const BY_TARGET: Search = search!("target = $3");

const BY_ACTOR: Search = search!("actor = $1");

const BY_ACTION: Search = search!("action = $2");

const BY_TIME: Search = search!("TRUE");

#[async_trait]
impl AuditLog for Database {
    async fn record(&self, entry: &AuditEntry) -> Result<i64, RepositoryError> {
        let mut session = self.writing().await?;
        let row = session.row(bound(RECORD_WITH_ID, entry)).await?;
        let row = row.ok_or(Outage::Sql(sqlx::Error::RowNotFound))?;
        let id = row.get("id").map_err(Outage::Sql)?;
        session.commit().await?;
        Ok(id)
    }

    async fn settle(&self, id: i64, after: Option<&str>) -> Result<(), RepositoryError> {
        let mut session = self.writing().await?;
        session.execute(Statement::new(SETTLE).bind(id).bind(after)).await?;
        Ok(session.commit().await?)
    }

    async fn prune(&self, before: Timestamp) -> Result<u64, RepositoryError> {
        Ok(self.delete_old(DELETE_OLD, before, None).await?
            + self.delete_old(DELETE_OLD_DOCUMENTS, before, None).await?)
    }

    async fn entries(
        &self,
        filter: &AuditFilter,
        page: Page,
    ) -> Result<Listed<AuditEntry>, RepositoryError> {
        let search = Search::of(filter);
        let mut session = self.reading().await?;
        let total = session.count(filtered(search.count, filter)).await?;
        let list = filtered(search.list, filter).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        let items: Result<Vec<_>, sqlx::Error> = rows.iter().map(read).collect();
        let corrupt = |error| RepositoryError::Corrupt(format!("an audit entry: {error}"));
        Ok(Listed { items: items.map_err(corrupt)?, total, page })
    }
}

impl Database {
    /// Deletes the entries of `action` from before `before`, and returns their number. Other entries
    /// stay: a program deletes its own in a database that it shares.
    pub async fn prune_action(
        &self,
        action: &str,
        before: Timestamp,
    ) -> Result<u64, RepositoryError> {
        self.delete_old(DELETE_OLD_OF_ACTION, before, Some(action)).await
    }

    /// Deletes old rows in batches, so that no lock is held for long.
    async fn delete_old(
        &self,
        sql: &'static str,
        before: Timestamp,
        action: Option<&str>,
    ) -> Result<u64, RepositoryError> {
        let mut total = 0;
        loop {
            let mut session = self.writing().await?;
            let mut delete = Statement::new(sql).bind(before).bind(BATCH);
            if let Some(action) = action {
                delete = delete.bind(action);
            }
            let rows = session.rows(delete).await?.len();
            session.commit().await?;
            total += rows as u64;
            if rows < BATCH as usize {
                return Ok(total);
            }
        }
    }

    /// Adds an entry, unless one with the same actor, request, action, target and reason exists.
    pub async fn record_once(&self, entry: &AuditEntry) -> Result<(), RepositoryError> {
        let mut session = self.writing().await?;
        if let Session::Postgres(_) = session {
            session.execute(Statement::new(LOCK_ACTOR).bind(&*entry.author.actor)).await?;
        }
        session.execute(bound(RECORD_ONCE, entry)).await?;
        Ok(session.commit().await?)
    }
}

// === impl Search ===

impl Search {
    /// Returns the search that reads the fewest entries: a target usually has few of them, and an
    /// action many.
    const fn of(filter: &AuditFilter) -> &'static Self {
        match filter {
            AuditFilter { target: Some(_), .. } => &BY_TARGET,
            AuditFilter { actor: Some(_), .. } => &BY_ACTOR,
            AuditFilter { action: Some(_), .. } => &BY_ACTION,
            _ => &BY_TIME,
        }
    }
}

/// Adds an entry in the transaction of its change.
pub(crate) async fn add(session: &mut Session, entry: &AuditEntry) -> Result<(), Outage> {
    session.execute(bound(RECORD, entry)).await
}

/// Adds entries of one author in the transaction of their changes, with one statement.
pub(crate) async fn add_all(
    session: &mut Session,
    author: &Author,
    entries: &[AuditEntry],
) -> Result<(), Outage> {
    let row = |entry: &AuditEntry| {
        json!({
            "action": entry.action,
            "target": entry.target,
            "before": entry.before,
            "after": entry.after,
            "reason": entry.reason,
        })
    };
    let rows: Value = entries.iter().map(row).collect();
    let record = Statement::either(RECORD_ALL.0, RECORD_ALL.1)
        .bind(&*rows.to_string())
        .bind(Moment::shown(author.at))
        .bind(&*author.actor)
        .bind(&*author.request_id);
    session.execute(record).await
}

fn bound(sql: &'static str, entry: &AuditEntry) -> Statement {
    Statement::new(sql)
        .bind(Moment::shown(entry.author.at))
        .bind(&*entry.author.actor)
        .bind(&*entry.author.request_id)
        .bind(&*entry.action)
        .bind(&*entry.target)
        .bind(entry.before.as_deref())
        .bind(entry.after.as_deref())
        .bind(entry.reason.as_deref())
}

fn filtered(sql: &'static str, filter: &AuditFilter) -> Statement {
    Statement::new(sql)
        .bind(filter.actor.as_deref())
        .bind(filter.action.as_deref())
        .bind(filter.target.as_deref())
        .bind(filter.since)
        .bind(filter.until)
}

fn read(row: &Row) -> Result<AuditEntry, sqlx::Error> {
    Ok(AuditEntry {
        id: row.get("id")?,
        author: Author {
            actor: row.get("actor")?,
            request_id: row.get("request_id")?,
            at: row.time("occurred_at")?,
        },
        action: row.get("action")?,
        target: row.get("target")?,
        before: row.get("before_state")?,
        after: row.get("after_state")?,
        reason: row.get("reason")?,
    })
}

#[cfg(test)]
mod tests;
