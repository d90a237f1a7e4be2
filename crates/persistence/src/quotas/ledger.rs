//! The ledger: what was used, period by period.

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_quota::{
    Entry, Increment, Listed, Page, PeriodUsage, Pruned, QuotaId, QuotaLedger, RepositoryError,
    Reset, Retention, Touched,
};
use headgate_ratelimit::AuditEntry;
use serde_json::json;

use super::{QuotaDatabase, commit, commit::Batch, corrupt, policies, prune, record, unsigned};
use crate::{audit, moment::Moment, row::Row, session::Session, statement::Statement};

/// Selects those usages, with all that [`record::usage`] reads.
macro_rules! usages {
    ($which:literal) => {
        concat!(
            "SELECT policy_id, period_name, period_start, period_end, quota_limit, used, \
             closed_at, updated_at FROM quota_usages ",
            $which
        )
    };
}

const ONE: &str = usages!("WHERE policy_id = $1 AND period_name = $2");

const ONE_LOCKED: &str = usages!("WHERE policy_id = $1 AND period_name = $2 FOR UPDATE");

const COUNT: &str = "SELECT count(*) AS total FROM quota_usages WHERE policy_id = $1";

const HISTORY: &str =
    usages!("WHERE policy_id = $1 ORDER BY period_start DESC, period_name DESC LIMIT $2 OFFSET $3");

const TOUCHED: &str = usages!(
    "WHERE closed_at IS NULL AND updated_at >= $1 ORDER BY updated_at DESC, policy_id LIMIT $2"
);

const RESET: &str = "
    UPDATE quota_usages SET used = 0, updated_at = $3 WHERE policy_id = $1 AND period_name = $2";

#[async_trait]
impl QuotaLedger for QuotaDatabase {
    async fn commit(&self, increments: &[Increment]) -> Result<Vec<Entry>, RepositoryError> {
        if increments.is_empty() {
            return Ok(Vec::new());
        }
        Batch::new(self.0.writing().await?, increments).decide().await
    }

    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError> {
        let mut session = self.0.reading().await?;
        let row = session.row(Statement::new(ONE).bind(policy).bind(period_name)).await?;
        session.commit().await?;
        row.as_ref().map(record::usage).transpose()
    }

    async fn history(
        &self,
        policy: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError> {
        let mut session = self.0.reading().await?;
        let total = session.count(Statement::new(COUNT).bind(policy)).await?;
        let list = Statement::new(HISTORY).bind(policy).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        let items: Result<Vec<_>, _> = rows.iter().map(record::usage).collect();
        Ok(Listed { items: items?, total, page })
    }

    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError> {
        let mut session = self.0.writing().await?;
        let Some(policy) = policies::find(&mut session, &reset.policy).await? else {
            return Err(RepositoryError::NotFound(reset.policy.clone()));
        };
        let name = policy.spec.name;
        let (policy, period) = (&reset.policy, &*reset.span.name);
        let locked = Statement::either(ONE_LOCKED, ONE).bind(policy).bind(period);
        let row = session.row(locked).await?;
        let before = row.as_ref().map(record::usage).transpose()?.map_or(0, |usage| usage.used);
        let zero = Statement::new(RESET).bind(policy).bind(period);
        session.execute(zero.bind(Moment::shown(reset.author.at))).await?;
        write_down(&mut session, reset, &name, before).await?;
        commit(session).await?;
        Ok(before)
    }

    async fn touched(&self, since: Timestamp, max: u32) -> Result<Vec<Touched>, RepositoryError> {
        let mut session = self.0.reading().await?;
        let rows = session.rows(Statement::new(TOUCHED).bind(since).bind(max)).await?;
        session.commit().await?;
        rows.iter().map(touched).collect()
    }

    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError> {
        prune::close(&self.0, now).await
    }

    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError> {
        prune::prune(&self.0, retention).await
    }
}

async fn write_down(
    session: &mut Session,
    reset: &Reset,
    name: &str,
    before: u64,
) -> Result<(), RepositoryError> {
    let state =
        |used: u64| json!({ "name": name, "period": reset.span.name, "used": used }).to_string();
    let entry = AuditEntry {
        // The record gives it another.
        id: 0,
        author: reset.author.clone(),
        action: "quota.reset".to_owned(),
        target: reset.policy.to_string(),
        before: Some(state(before)),
        after: Some(state(0)),
        reason: Some(reset.reason.clone()),
    };
    Ok(audit::add(session, &entry).await?)
}

fn touched(row: &Row) -> Result<Touched, RepositoryError> {
    let id: String = row.get("policy_id").map_err(corrupt("a usage"))?;
    let read = || {
        let period_name = row.get("period_name")?;
        Ok((period_name, unsigned(row.get("used")?)))
    };
    let (period_name, used) = read().map_err(corrupt(&id))?;
    let policy = id.parse().map_err(|error| RepositoryError::Corrupt(format!("{id}: {error}")))?;
    Ok(Touched { policy, period_name, used })
}
