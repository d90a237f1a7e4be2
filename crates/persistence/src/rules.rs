//! The rules, read and written.

mod record;
mod write;

use async_trait::async_trait;
use headgate_ratelimit::{
    Author, Listed, Page, RateLimitRule, RateLimitRuleRepository, RepositoryError, Revision,
    RuleChange, RuleFilter, RuleId, Scope,
};
use tokio::sync::Notify;

use self::write::Writer;
use crate::{
    Database,
    database::Pool,
    listener::{self, Heard},
    outage::Outage,
    row::Row,
    session::Session,
    statement::Statement,
};

/// Selects those rules, with all that [`record::read`] reads.
macro_rules! rules {
    ($which:literal) => {
        concat!(
            "SELECT id, name, scope, identifier_pattern, limit_count, window_secs, algorithm, \
             burst, fail_mode, enabled, created_at, updated_at FROM rate_limit_rules ",
            $which
        )
    };
}

const REVISION: &str = "SELECT revision FROM revisions WHERE name = 'rate_limit_rules'";

const ALL: &str = rules!("");

const ONE: &str = rules!("WHERE id = $1");

const COUNT: &str = "
    SELECT count(*) AS total FROM rate_limit_rules
    WHERE ($1 IS NULL OR scope = $1) AND (enabled OR NOT $2)
    AND ($3 IS NULL OR lower(coalesce(name, '')) LIKE $3 ESCAPE '!'
        OR lower(identifier_pattern) LIKE $3 ESCAPE '!')";

const LIST: &str = rules!(
    "WHERE ($1 IS NULL OR scope = $1) AND (enabled OR NOT $2)
    AND ($3 IS NULL OR lower(coalesce(name, '')) LIKE $3 ESCAPE '!'
        OR lower(identifier_pattern) LIKE $3 ESCAPE '!')
    ORDER BY created_at DESC, id LIMIT $4 OFFSET $5"
);

#[async_trait]
impl RateLimitRuleRepository for Database {
    async fn revision(&self) -> Result<Revision, RepositoryError> {
        let mut session = self.reading().await?;
        let revision = read_revision(session.row(Statement::new(REVISION)).await?)?;
        session.commit().await?;
        Ok(revision)
    }

    /// One row that is no rule fails it all: whoever holds rules keeps those that it has, since a
    /// limit that silently disappears is worse than one that is late.
    async fn load(&self) -> Result<(Revision, Vec<RateLimitRule>), RepositoryError> {
        let mut session = self.reading().await?;
        let revision = read_revision(session.row(Statement::new(REVISION)).await?)?;
        let rows = session.rows(Statement::new(ALL)).await?;
        session.commit().await?;
        Ok((revision, read_all(&rows)?))
    }

    async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<Listed<RateLimitRule>, RepositoryError> {
        let mut session = self.reading().await?;
        let total = session.count(filtered(COUNT, filter)).await?;
        let list = filtered(LIST, filter).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        Ok(Listed { items: read_all(&rows)?, total, page })
    }

    async fn get(&self, id: RuleId) -> Result<Option<RateLimitRule>, RepositoryError> {
        let mut session = self.reading().await?;
        let rule = find(&mut session, id).await?;
        session.commit().await?;
        Ok(rule)
    }

    async fn write(
        &self,
        changes: &[RuleChange],
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let writer = Writer::begin(self.writing().await?, None, author).await?;
        writer.write(changes).await
    }

    async fn write_seen(
        &self,
        changes: &[RuleChange],
        seen: Revision,
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        let writer = Writer::begin(self.writing().await?, Some(seen), author).await?;
        writer.write(changes).await
    }

    async fn listen(&self, changed: &Notify) -> RepositoryError {
        match self.pool() {
            Pool::Postgres { listening, .. } => {
                listener::listen(listening, listener::RULES, Heard::Change(changed)).await.into()
            }
            Pool::Sqlite { .. } => std::future::pending().await,
        }
    }
}

async fn find(session: &mut Session, id: RuleId) -> Result<Option<RateLimitRule>, RepositoryError> {
    let row = session.row(Statement::new(ONE).bind(id)).await?;
    row.as_ref().map(record::read).transpose()
}

fn filtered(sql: &'static str, filter: &RuleFilter) -> Statement {
    let search = filter.search.as_deref().map(containing);
    Statement::new(sql)
        .bind(filter.scope.map(Scope::name))
        .bind(filter.enabled_only)
        .bind(search.as_deref())
}

/// What `LIKE` takes for a text that contains this one. SQLite knows the case of ASCII alone.
fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for char in text.to_lowercase().chars() {
        if matches!(char, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(char);
    }
    pattern + "%"
}

fn read_all(rows: &[Row]) -> Result<Vec<RateLimitRule>, RepositoryError> {
    rows.iter().map(record::read).collect()
}

fn read_revision(row: Option<Row>) -> Result<Revision, RepositoryError> {
    let Some(row) = row else {
        return Err(RepositoryError::Corrupt("the revision of the rules is missing".to_owned()));
    };
    Ok(Revision(row.get("revision").map_err(Outage::Sql)?))
}
