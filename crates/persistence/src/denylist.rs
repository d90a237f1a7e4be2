//! The denylist. Each change and its audit entry are one transaction.

use headgate::Timestamp;
use headgate_ratelimit::Author;
use headgate_service_config::{DenyEntry, DenyError, DenyUpdate, Denylist, DocumentStoreError};
use serde_json::{Value, json};

use crate::{
    Database, moment::Moment, row::Row, service_configs::Change, session::Session,
    statement::Statement,
};

/// Stores the denylist on a [`Database`].
#[derive(Clone, Debug)]
pub struct DenylistDatabase(Database);

const REVISION: &str = "SELECT revision FROM revisions WHERE name = 'denylist'";

/// Serializes writers.
const NEXT_REVISION: &str =
    "UPDATE revisions SET revision = revision + 1 WHERE name = 'denylist' RETURNING revision";

const ALL: &str = "
    SELECT subject, reason, expires_at, created_at, created_by FROM denylist ORDER BY subject";

const ONE: &str = "
    SELECT subject, reason, expires_at, created_at, created_by FROM denylist WHERE subject = $1";

const COUNT: &str = "SELECT COUNT(*) AS entries FROM denylist";

const PUT: &str = "
    INSERT INTO denylist (subject, reason, expires_at, created_at, created_by)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (subject) DO UPDATE
    SET reason = excluded.reason, expires_at = excluded.expires_at,
        created_at = excluded.created_at, created_by = excluded.created_by";

const REMOVE: &str = "DELETE FROM denylist WHERE subject = $1";

const DELETE_EXPIRED: &str = "DELETE FROM denylist WHERE expires_at <= $1";

impl Database {
    /// Returns the storage of the denylist.
    pub fn denylist(&self) -> DenylistDatabase {
        DenylistDatabase(self.clone())
    }
}

// === impl DenylistDatabase ===

impl DenylistDatabase {
    /// Returns the revision of the list; cheap enough to poll.
    pub async fn revision(&self) -> Result<i64, DocumentStoreError> {
        let mut session = self.0.reading_for_server().await?;
        let revision = read_revision(&mut session).await?;
        session.commit().await?;
        Ok(revision)
    }

    /// Returns the whole list.
    pub async fn load(&self) -> Result<Denylist, DocumentStoreError> {
        let mut session = self.0.reading_for_server().await?;
        let revision = read_revision(&mut session).await?;
        let rows = session.rows(Statement::new(ALL)).await?;
        session.commit().await?;
        let entries: Result<_, _> = rows.iter().map(entry).collect();
        Ok(Denylist { revision, entries: entries? })
    }

    /// Adds an entry, or replaces the one of the same subject. Expired entries are deleted first.
    ///
    /// # Errors
    ///
    /// [`DenyError::Full`] if there are [`DenyEntry::MAX`] others.
    pub async fn put(&self, update: &DenyUpdate, author: &Author) -> Result<DenyEntry, DenyError> {
        let session = self.0.writing().await.map_err(DocumentStoreError::from)?;
        put(session, update, author).await
    }

    /// Removes the entry of `subject`. Returns true if there was one.
    pub async fn remove(&self, subject: &str, author: &Author) -> Result<bool, DocumentStoreError> {
        let mut session = self.0.writing().await?;
        session.row(Statement::new(NEXT_REVISION)).await?;
        let Some(before) = find(&mut session, subject).await? else {
            return Ok(false);
        };
        session.execute(Statement::new(REMOVE).bind(subject)).await?;
        let change = change(DenyEntry::REMOVE, Some(&before), None, author);
        change.record(&mut session).await?;
        session.commit().await?;
        Ok(true)
    }
}

async fn put(
    mut session: Session,
    update: &DenyUpdate,
    author: &Author,
) -> Result<DenyEntry, DenyError> {
    let now = Moment::shown(author.at);
    let before = begin_put(&mut session, &update.subject, now).await?;
    if before.is_none() && count(&mut session).await? >= DenyEntry::MAX.into() {
        return Err(DenyError::Full);
    }
    let after = DenyEntry {
        subject: update.subject.clone(),
        reason: update.reason.clone(),
        expires_at: update.expires_at.map(Moment::shown),
        created_at: now,
        created_by: author.actor.clone(),
    };
    write(&mut session, before.as_ref(), &after, author).await?;
    session.commit().await.map_err(DocumentStoreError::from)?;
    Ok(after)
}

/// Waits for other writers, and returns the current entry.
async fn begin_put(
    session: &mut Session,
    subject: &str,
    now: Timestamp,
) -> Result<Option<DenyEntry>, DocumentStoreError> {
    session.row(Statement::new(NEXT_REVISION)).await?;
    session.execute(Statement::new(DELETE_EXPIRED).bind(now)).await?;
    find(session, subject).await
}

async fn write(
    session: &mut Session,
    before: Option<&DenyEntry>,
    after: &DenyEntry,
    author: &Author,
) -> Result<(), DocumentStoreError> {
    let put = Statement::new(PUT)
        .bind(&*after.subject)
        .bind(&*after.reason)
        .bind(after.expires_at)
        .bind(after.created_at)
        .bind(&*after.created_by);
    session.execute(put).await?;
    change(DenyEntry::PUT, before, Some(after), author).record(session).await
}

async fn read_revision(session: &mut Session) -> Result<i64, DocumentStoreError> {
    let row = session.row(Statement::new(REVISION)).await?;
    let row = row.ok_or_else(|| {
        DocumentStoreError::Corrupt("the revision of the denylist is missing".to_owned())
    })?;
    row.get("revision").map_err(|error| corrupt(&error))
}

async fn find(
    session: &mut Session,
    subject: &str,
) -> Result<Option<DenyEntry>, DocumentStoreError> {
    let row = session.row(Statement::new(ONE).bind(subject)).await?;
    row.as_ref().map(entry).transpose()
}

async fn count(session: &mut Session) -> Result<i64, DocumentStoreError> {
    let row = session.row(Statement::new(COUNT)).await?;
    row.map_or(Ok(0), |row| row.get("entries").map_err(|error| corrupt(&error)))
}

fn entry(row: &Row) -> Result<DenyEntry, DocumentStoreError> {
    let read = || {
        Ok(DenyEntry {
            subject: row.get("subject")?,
            reason: row.get("reason")?,
            expires_at: row.get::<Option<Moment>>("expires_at")?.map(|moment| moment.0),
            created_at: row.time("created_at")?,
            created_by: row.get("created_by")?,
        })
    };
    read().map_err(|error| corrupt(&error))
}

fn change<'a>(
    action: &'static str,
    before: Option<&DenyEntry>,
    after: Option<&DenyEntry>,
    author: &'a Author,
) -> Change<'a> {
    let seconds = |time: Timestamp| time.as_micros() / 1_000_000;
    let side = |entry: &DenyEntry| json!({"reason": entry.reason, "expires_at": entry.expires_at.map(seconds)});
    let subject = before.or(after).map_or("", |entry| &entry.subject);
    let diff = json!({
        "before": before.map_or(Value::Null, side),
        "after": after.map_or(Value::Null, side),
    });
    Change { action, target: DenyEntry::target(subject), diff, author }
}

fn corrupt(error: &sqlx::Error) -> DocumentStoreError {
    DocumentStoreError::Corrupt(error.to_string())
}
