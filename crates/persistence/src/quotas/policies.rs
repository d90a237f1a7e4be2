//! Policies.

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{
    Author, Changes, Listed, Page, PolicyChange, PolicyFilter, QuotaId, QuotaPolicy,
    QuotaPolicyRepository, RepositoryError, Revision, SubjectType, Unused,
};
use tokio::sync::Notify;

use super::{QuotaDatabase, deletions, record, unused, write::Writer};
use crate::{
    database::Pool,
    listener::{self, Subscriber},
    outage::Outage,
    row::Row,
    session::Session,
    statement::Statement,
};

/// Selects the columns of policies that [`record::policy`] needs.
macro_rules! policies {
    ($which:literal) => {
        concat!(
            "SELECT id, name, subject_type, subject_id, quota_limit, period, time_zone, enabled, \
             alert_threshold_percent, created_at, updated_at FROM quota_policies ",
            $which
        )
    };
}

/// Reads the time, too, so that measuring the clock needs no statement of its own.
const REVISION: (&str, &str) = (
    "SELECT revision, now() AS now FROM revisions WHERE name = 'quota_policies'",
    "SELECT revision FROM revisions WHERE name = 'quota_policies'",
);

/// Maximum number of policies per statement, which bounds its time and memory.
const CHUNK: usize = 2_000;

const FIRST: &str = policies!("ORDER BY id LIMIT $1");

const FURTHER: &str = policies!("WHERE id > $2 ORDER BY id LIMIT $1");

const CHANGED: &str = policies!("WHERE revision > $1");

const ONE: &str = policies!("WHERE id = $1");

const COUNT: &str = "
    SELECT count(*) AS total FROM quota_policies
    WHERE ($1 IS NULL OR subject_type = $1) AND ($2 IS NULL OR subject_id = $2)
        AND (enabled OR NOT $3)";

const LIST: &str = policies!(
    "WHERE ($1 IS NULL OR subject_type = $1) AND ($2 IS NULL OR subject_id = $2)
        AND (enabled OR NOT $3)
    ORDER BY created_at DESC, id LIMIT $4 OFFSET $5"
);

#[async_trait]
impl QuotaPolicyRepository for QuotaDatabase {
    async fn revision(&self) -> Result<Revision, RepositoryError> {
        let (session, revision) = self.revised().await?;
        session.commit().await?;
        Ok(revision)
    }

    /// Fails on an invalid row: the catalog then keeps its policies.
    async fn load(&self) -> Result<(Revision, Vec<QuotaPolicy>), RepositoryError> {
        let (mut session, revision) = self.revised().await?;
        let mut policies: Vec<QuotaPolicy> = Vec::new();
        loop {
            let chunk = match policies.last() {
                None => Statement::new(FIRST).bind(CHUNK as u64),
                Some(last) => Statement::new(FURTHER).bind(CHUNK as u64).bind(&last.id),
            };
            let rows = session.rows(chunk).await?;
            policies.extend(read_all(&rows)?);
            if rows.len() < CHUNK {
                break;
            }
        }
        session.commit().await?;
        self.database.policy_total().set(revision, policies.len() as u64);
        Ok((revision, policies))
    }

    async fn changes(&self, since: Revision) -> Result<Changes, RepositoryError> {
        let (mut session, revision) = self.revised().await?;
        let rows = session.rows(Statement::new(CHANGED).bind(since.0)).await?;
        let deleted = deletions::read(&mut session, since).await?;
        let total = self.database.policy_total().at(revision, &mut session).await?;
        session.commit().await?;
        Ok(Changes { revision, changed: read_all(&rows)?, deleted, total })
    }

    async fn list(
        &self,
        filter: &PolicyFilter,
        page: Page,
    ) -> Result<Listed<QuotaPolicy>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let total = session.count(filtered(COUNT, filter)).await?;
        let list = filtered(LIST, filter).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        Ok(Listed { items: read_all(&rows)?, total, page })
    }

    async fn get(&self, id: &QuotaId) -> Result<Option<QuotaPolicy>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let policy = find(&mut session, id).await?;
        session.commit().await?;
        Ok(policy)
    }

    async fn write(
        &self,
        change: &PolicyChange,
        author: &Author,
    ) -> Result<QuotaPolicy, RepositoryError> {
        Writer::begin(&self.database, author.at, Some(author)).await?.write(change).await
    }

    async fn write_unrecorded(
        &self,
        change: &PolicyChange,
        at: Timestamp,
    ) -> Result<QuotaPolicy, RepositoryError> {
        Writer::begin(&self.database, at, None).await?.write(change).await
    }

    async fn delete_unused(&self, unused: &Unused<'_>) -> Result<u64, RepositoryError> {
        unused::delete(&self.database, unused).await
    }

    async fn listen(&self, changed: &Notify) -> RepositoryError {
        match self.database.pool() {
            Pool::Postgres { listening, .. } => {
                listener::listen(listening, listener::QUOTAS, Subscriber::Change(changed))
                    .await
                    .into()
            }
            Pool::Sqlite { .. } => std::future::pending().await,
        }
    }
}

impl QuotaDatabase {
    /// Begins a read transaction and returns the revision it sees. Measures the clock.
    pub(super) async fn revised(&self) -> Result<(Session, Revision), RepositoryError> {
        let (mut session, began) = self.reading_for_server().await?;
        let row = session.row(Statement::either(REVISION.0, REVISION.1)).await?;
        if let Some(row) = &row {
            self.clock.read(row, began)?;
        }
        Ok((session, read_revision(row)?))
    }
}

/// Returns the policy with this id.
pub(super) async fn find(
    session: &mut Session,
    id: &QuotaId,
) -> Result<Option<QuotaPolicy>, RepositoryError> {
    let row = session.row(Statement::new(ONE).bind(id)).await?;
    row.as_ref().map(record::policy).transpose()
}

fn filtered(sql: &'static str, filter: &PolicyFilter) -> Statement {
    Statement::new(sql)
        .bind(filter.subject_type.map(SubjectType::name))
        .bind(filter.subject_id.as_deref())
        .bind(filter.enabled_only)
}

fn read_all(rows: &[Row]) -> Result<Vec<QuotaPolicy>, RepositoryError> {
    rows.iter().map(record::policy).collect()
}

pub(super) fn read_revision(row: Option<Row>) -> Result<Revision, RepositoryError> {
    let Some(row) = row else {
        return Err(RepositoryError::Corrupt("the revision of the policies is missing".to_owned()));
    };
    Ok(Revision(row.get("revision").map_err(Outage::Sql)?))
}
