//! Overrides: other limits for single subjects of a rule. They belong to the revisions of the
//! rules, so that replicas notice a change of either in the same way.

mod delta;
mod record;
mod write;

use async_trait::async_trait;
use headgate_ratelimit::{
    Author, Listed, OverrideFilter, OverrideId, OverrideRepository, OverrideSpec, Page,
    RepositoryError, RuleOverride,
};

use self::write::Writer;
pub(crate) use self::{
    delta::{prune, read as read_changes},
    write::delete_of_rules,
};
use crate::{Database, rules::containing, session::Session, statement::Statement};

/// Maximum number of overrides per statement, which bounds its time and memory.
const CHUNK: usize = 1_000;

/// Selects the columns of overrides that [`record::read`] needs. Those of rules that do not exist
/// any more are left out.
macro_rules! overrides {
    ($which:literal) => {
        concat!(
            "SELECT o.id, o.rule_id, o.subject, o.limit_count, o.ends_at, o.reason, o.created_at,
                o.updated_at
            FROM rate_limit_overrides o JOIN rate_limit_rules r ON r.id = o.rule_id ",
            $which
        )
    };
}

const FIRST: &str = overrides!("ORDER BY o.id LIMIT $1");

const AFTER: &str = overrides!("WHERE o.id > $2 ORDER BY o.id LIMIT $1");

const ONE: &str = overrides!("WHERE o.id = $1");

const COUNT: (&str, &str) = (
    "SELECT count(*) AS total
    FROM rate_limit_overrides o JOIN rate_limit_rules r ON r.id = o.rule_id
    WHERE ($1 IS NULL OR o.rule_id = CAST($1 AS uuid))
        AND ($2 IS NULL OR lower(o.subject) LIKE $2 ESCAPE '!')
        AND ($3 IS NULL OR o.ends_at IS NULL OR o.ends_at > $3)",
    "SELECT count(*) AS total
    FROM rate_limit_overrides o JOIN rate_limit_rules r ON r.id = o.rule_id
    WHERE ($1 IS NULL OR o.rule_id = $1)
        AND ($2 IS NULL OR lower(o.subject) LIKE $2 ESCAPE '!')
        AND ($3 IS NULL OR o.ends_at IS NULL OR o.ends_at > $3)",
);

const LIST: (&str, &str) = (
    overrides!(
        "WHERE ($1 IS NULL OR o.rule_id = CAST($1 AS uuid))
            AND ($2 IS NULL OR lower(o.subject) LIKE $2 ESCAPE '!')
            AND ($3 IS NULL OR o.ends_at IS NULL OR o.ends_at > $3)
        ORDER BY o.created_at DESC, o.id LIMIT $4 OFFSET $5"
    ),
    overrides!(
        "WHERE ($1 IS NULL OR o.rule_id = $1)
            AND ($2 IS NULL OR lower(o.subject) LIKE $2 ESCAPE '!')
            AND ($3 IS NULL OR o.ends_at IS NULL OR o.ends_at > $3)
        ORDER BY o.created_at DESC, o.id LIMIT $4 OFFSET $5"
    ),
);

#[async_trait]
impl OverrideRepository for Database {
    async fn list_overrides(
        &self,
        filter: &OverrideFilter,
        page: Page,
    ) -> Result<Listed<RuleOverride>, RepositoryError> {
        let mut session = self.reading().await?;
        let total = session.count(filtered(COUNT, filter)).await?;
        let list = filtered(LIST, filter).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        let items = rows.iter().map(record::read).collect::<Result<_, _>>()?;
        Ok(Listed { items, total, page })
    }

    async fn get_override(&self, id: OverrideId) -> Result<Option<RuleOverride>, RepositoryError> {
        let mut session = self.reading().await?;
        let found = find(&mut session, id).await?;
        session.commit().await?;
        Ok(found)
    }

    async fn set_override(
        &self,
        spec: &OverrideSpec,
        author: &Author,
    ) -> Result<(RuleOverride, bool), RepositoryError> {
        Writer::begin(self.writing().await?, author, self.rule_total()).await?.set(spec).await
    }

    async fn delete_override(
        &self,
        id: OverrideId,
        author: &Author,
    ) -> Result<RuleOverride, RepositoryError> {
        Writer::begin(self.writing().await?, author, self.rule_total()).await?.delete(id).await
    }
}

/// Reads all overrides in chunks.
pub(crate) async fn read_all(session: &mut Session) -> Result<Vec<RuleOverride>, RepositoryError> {
    let mut overrides: Vec<RuleOverride> = Vec::new();
    loop {
        let chunk = match overrides.last() {
            None => Statement::new(FIRST).bind(CHUNK as u64),
            Some(last) => Statement::new(AFTER).bind(CHUNK as u64).bind(last.id),
        };
        let rows = session.rows(chunk).await?;
        for row in &rows {
            overrides.push(record::read(row)?);
        }
        if rows.len() < CHUNK {
            return Ok(overrides);
        }
    }
}

async fn find(
    session: &mut Session,
    id: OverrideId,
) -> Result<Option<RuleOverride>, RepositoryError> {
    let row = session.row(Statement::new(ONE).bind(id)).await?;
    row.as_ref().map(record::read).transpose()
}

fn filtered(sql: (&'static str, &'static str), filter: &OverrideFilter) -> Statement {
    let rule = filter.rule.map(|id| id.to_string());
    let search = filter.search.as_deref().map(containing);
    Statement::either(sql.0, sql.1)
        .bind(rule.as_deref())
        .bind(search.as_deref())
        .bind(filter.active_at)
}
