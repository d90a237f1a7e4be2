//! Rules.

mod batch;
mod delta;
mod pending;
mod record;
mod selector;
mod write;

use async_trait::async_trait;
use headgate_ratelimit::{
    Author, Listed, Page, RateLimitRule, RateLimitRuleRepository, RepositoryError, Revision,
    RuleChange, RuleDelta, RuleFilter, RuleId, RuleOverride, Scope,
};
use tokio::sync::Notify;

use self::write::Writer;
pub(crate) use self::{delta::prune as prune_changes, write::next_revision};
use crate::{
    Database,
    database::Pool,
    listener::{self, Subscriber},
    outage::Outage,
    overrides,
    row::Row,
    session::Session,
    statement::Statement,
};

/// Maximum number of rules per statement, which bounds its time and memory.
const CHUNK: usize = 1_000;

/// Selects the columns of rules that [`record::read`] needs.
macro_rules! rules {
    ($which:literal) => {
        concat!(
            "SELECT id, name, scope, identifier_pattern, limit_count, window_secs, algorithm, \
             burst, fail_mode, lease_share_percent, lease_hold_ms, selector, enabled, created_at, \
             updated_at FROM rate_limit_rules ",
            $which
        )
    };
}

const REVISION: &str = "SELECT revision FROM revisions WHERE name = 'rate_limit_rules'";

/// The next rules after a position. SQLite reads in the order of its table: in the order of random
/// ids, each row would be on another page.
const AFTER: (&str, &str) = (
    rules!("WHERE id > $2 ORDER BY id LIMIT $1"),
    rules!("WHERE rowid > $2 ORDER BY rowid LIMIT $1"),
);

const PLACE: &str = "SELECT rowid AS place FROM rate_limit_rules WHERE id = $1";

const FIRST: (&str, &str) = (rules!("ORDER BY id LIMIT $1"), rules!("ORDER BY rowid LIMIT $1"));

const ONE: &str = rules!("WHERE id = $1");

const THESE: (&str, &str) = (
    rules!(
        "WHERE id IN (SELECT CAST(value AS uuid) FROM jsonb_array_elements_text(CAST($1 AS jsonb)))"
    ),
    rules!("WHERE id IN (SELECT value FROM json_each($1))"),
);

const COUNT: &str = "
    SELECT count(*) AS total FROM rate_limit_rules
    WHERE ($1 IS NULL OR scope = $1) AND (enabled OR NOT $2)
    AND ($3 IS NULL OR lower(coalesce(name, '')) LIKE $3 ESCAPE '!'
        OR lower(identifier_pattern) LIKE $3 ESCAPE '!')";

/// A page of all rules. Earlier pages are skipped in the index alone.
const PAGE: &str = rules!(
    "WHERE id IN (
        SELECT id FROM rate_limit_rules ORDER BY created_at DESC, id LIMIT $1 OFFSET $2)
    ORDER BY created_at DESC, id"
);

const LIST: &str = rules!(
    "WHERE ($1 IS NULL OR scope = $1) AND (enabled OR NOT $2)
    AND ($3 IS NULL OR lower(coalesce(name, '')) LIKE $3 ESCAPE '!'
        OR lower(identifier_pattern) LIKE $3 ESCAPE '!')
    ORDER BY created_at DESC, id LIMIT $4 OFFSET $5"
);

#[async_trait]
impl RateLimitRuleRepository for Database {
    fn max_rules(&self) -> u64 {
        self.rule_total().max()
    }

    /// Fails on an invalid row: the catalog then keeps its rules, because a limit that silently
    /// disappears is worse than one that is late.
    async fn load(&self) -> Result<(Revision, Vec<RateLimitRule>), RepositoryError> {
        let mut session = self.reading_for_server().await?;
        let revision = read_revision(session.row(Statement::new(REVISION)).await?)?;
        let rules = read_all(&mut session).await?;
        session.commit().await?;
        self.rule_total().set(revision, rules.len() as u64);
        Ok((revision, rules))
    }

    /// Fails on an invalid row, as [`load`](Self::load) does.
    async fn load_overrides(&self) -> Result<Vec<RuleOverride>, RepositoryError> {
        let mut session = self.reading_for_server().await?;
        let overrides = overrides::read_all(&mut session).await?;
        session.commit().await?;
        Ok(overrides)
    }

    /// Fails on an invalid row, as [`load`](Self::load) does: the catalog keeps its rules until the
    /// row is repaired.
    async fn changes(&self, since: Revision) -> Result<Option<RuleDelta>, RepositoryError> {
        let mut session = self.reading_for_server().await?;
        let now = read_revision(session.row(Statement::new(REVISION)).await?)?;
        let delta = delta::read(&mut session, since, now).await?;
        session.commit().await?;
        Ok(delta)
    }

    async fn list(
        &self,
        filter: &RuleFilter,
        page: Page,
    ) -> Result<(Revision, Listed<RateLimitRule>), RepositoryError> {
        let mut session = self.reading().await?;
        let revision = read_revision(session.row(Statement::new(REVISION)).await?)?;
        let (total, list) = if *filter == RuleFilter::default() {
            let total = self.rule_total().at(revision, &mut session).await?;
            (total, Statement::new(PAGE))
        } else {
            (session.count(filtered(COUNT, filter)).await?, filtered(LIST, filter))
        };
        let rows = session.rows(list.bind(page.size()).bind(page.offset())).await?;
        session.commit().await?;
        let items = rows.iter().map(record::read).collect::<Result<_, _>>()?;
        Ok((revision, Listed { items, total, page }))
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
        let writer = Writer::begin(self.writing().await?, None, author, self.rule_total()).await?;
        writer.write(changes).await
    }

    async fn write_if_unchanged(
        &self,
        changes: &[RuleChange],
        expected: Revision,
        author: &Author,
    ) -> Result<Vec<RateLimitRule>, RepositoryError> {
        let writer =
            Writer::begin(self.writing().await?, Some(expected), author, self.rule_total()).await?;
        writer.write(changes).await
    }

    async fn listen(&self, changed: &Notify) -> RepositoryError {
        match self.pool() {
            Pool::Postgres { listening, .. } => {
                listener::listen(listening, listener::RULES, Subscriber::Change(changed))
                    .await
                    .into()
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

/// Returns a `LIKE` pattern for texts that contain this one. SQLite ignores the case of ASCII only.
pub(crate) fn containing(text: &str) -> String {
    let mut pattern = String::from("%");
    for char in text.to_lowercase().chars() {
        if matches!(char, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(char);
    }
    pattern + "%"
}

/// Reads all rules in chunks.
async fn read_all(session: &mut Session) -> Result<Vec<RateLimitRule>, RepositoryError> {
    let mut rules: Vec<RateLimitRule> = Vec::new();
    loop {
        let chunk = match rules.last() {
            None => Statement::either(FIRST.0, FIRST.1).bind(CHUNK as u64),
            Some(last) => after(session, last.id).await?,
        };
        let rows = session.rows(chunk).await?;
        for row in &rows {
            rules.push(record::read(row)?);
        }
        if rows.len() < CHUNK {
            return Ok(rules);
        }
    }
}

/// Returns the statement that continues after a rule.
async fn after(session: &mut Session, last: RuleId) -> Result<Statement, RepositoryError> {
    let after = Statement::either(AFTER.0, AFTER.1).bind(CHUNK as u64);
    if let Session::Postgres(_) = session {
        return Ok(after.bind(last));
    }
    let missing = || RepositoryError::Corrupt(format!("{last}: ids must be in lower case"));
    let row = session.row(Statement::new(PLACE).bind(last)).await?.ok_or_else(missing)?;
    Ok(after.bind(row.get::<i64>("place").map_err(Outage::Sql)?))
}

/// Returns the rules with these ids that exist.
async fn find_all(
    session: &mut Session,
    ids: &[RuleId],
) -> Result<Vec<RateLimitRule>, RepositoryError> {
    let mut rules = Vec::with_capacity(ids.len());
    for chunk in ids.chunks(CHUNK) {
        let rows = session.rows(batch::statement(THESE, &batch::ids(chunk))).await?;
        for row in &rows {
            rules.push(record::read(row)?);
        }
    }
    Ok(rules)
}

fn read_revision(row: Option<Row>) -> Result<Revision, RepositoryError> {
    let Some(row) = row else {
        return Err(RepositoryError::Corrupt("the revision of the rules is missing".to_owned()));
    };
    Ok(Revision(row.get("revision").map_err(Outage::Sql)?))
}
