//! The ledger: usage by period.

use async_trait::async_trait;
use headgate::{Clock as _, Timestamp};
use headgate_quota::{
    ChangedPeriod, Increment, IncrementOutcome, IncrementResult, Listed, Page, PeriodUsage, Pruned,
    QuotaId, QuotaLedger, RepositoryError, Reset, Retention,
};
use headgate_ratelimit::AuditEntry;
use serde_json::json;

use super::{
    QuotaDatabase, commit,
    commit::{Batch, Decided},
    corrupt, policies, prune, record, unsigned,
};
use crate::{
    audit, moment::Moment, outage::Outage, row::Row, session::Session, statement::Statement,
};

/// Selects the columns of usages that [`record::usage`] needs.
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

const CHANGED: &str = usages!(
    "WHERE closed_at IS NULL AND updated_at >= $1 ORDER BY updated_at DESC, policy_id LIMIT $2"
);

const RESET: &str = "
    UPDATE quota_usages SET used = 0, updated_at = $3 WHERE policy_id = $1 AND period_name = $2";

const NOW: (&str, &str) = ("SELECT now() AS now", "SELECT 1");

impl QuotaDatabase {
    /// Commits the increments of the current period, if a server's clock put others elsewhere.
    async fn commit_current(
        &self,
        increments: &[Increment],
        out_of_period: &[bool],
    ) -> Result<Vec<IncrementResult>, RepositoryError> {
        let all = increments.iter().zip(out_of_period);
        let rest: Vec<_> = all.filter(|(_, out)| !**out).map(|(one, _)| one.clone()).collect();
        let results = if rest.is_empty() {
            Vec::new()
        } else {
            Batch::new(self.database.writing().await?, &rest).decide().await?
        };
        let mut results = results.into_iter();
        let not_charged =
            IncrementResult { outcome: IncrementOutcome::OutOfPeriod, used: 0, limit: 0 };
        let mut result = |out: &bool| if *out { None } else { results.next() };
        Ok(out_of_period.iter().map(|out| result(out).unwrap_or(not_charged)).collect())
    }
}

#[async_trait]
impl QuotaLedger for QuotaDatabase {
    async fn commit(
        &self,
        increments: &[Increment],
    ) -> Result<Vec<IncrementResult>, RepositoryError> {
        if increments.is_empty() {
            return Ok(Vec::new());
        }
        let (session, began) = self.writing().await?;
        match Batch::new(session, increments).decide_if_current(&self.clock, began).await? {
            Decided::Committed(results) => Ok(results),
            Decided::OutOfPeriod(which) => self.commit_current(increments, &which).await,
        }
    }

    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let row = session.row(Statement::new(ONE).bind(policy).bind(period_name)).await?;
        session.commit().await?;
        row.as_ref().map(record::usage).transpose()
    }

    async fn history(
        &self,
        policy: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let total = session.count(Statement::new(COUNT).bind(policy)).await?;
        let list = Statement::new(HISTORY).bind(policy).bind(page.size()).bind(page.offset());
        let rows = session.rows(list).await?;
        session.commit().await?;
        let items: Result<Vec<_>, _> = rows.iter().map(record::usage).collect();
        Ok(Listed { items: items?, total, page })
    }

    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError> {
        let (mut session, began) = self.writing().await?;
        let Some(policy) = policies::find(&mut session, &reset.policy).await? else {
            return Err(RepositoryError::NotFound(reset.policy.clone()));
        };
        let name = policy.spec.name;
        let row = session.row(Statement::either(NOW.0, NOW.1)).await?;
        let row = row.ok_or(sqlx::Error::RowNotFound).map_err(Outage::Sql)?;
        if !reset.span.is_current(self.clock.read(&row, began)?) {
            return Err(RepositoryError::OutOfPeriod(reset.span.name.clone()));
        }
        let (policy, period) = (&reset.policy, &*reset.span.name);
        let locked = Statement::either(ONE_LOCKED, ONE).bind(policy).bind(period);
        let row = session.row(locked).await?;
        let before = row.as_ref().map(record::usage).transpose()?.map_or(0, |usage| usage.used);
        let zero = Statement::new(RESET).bind(policy).bind(period);
        session.execute(zero.bind(Moment::shown(reset.author.at))).await?;
        record_reset(&mut session, reset, &name, before).await?;
        commit(session).await?;
        Ok(before)
    }

    async fn changed_periods(
        &self,
        since: Timestamp,
        max: u32,
    ) -> Result<Vec<ChangedPeriod>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let rows = session.rows(Statement::new(CHANGED).bind(since).bind(max)).await?;
        session.commit().await?;
        rows.iter().map(changed_period).collect()
    }

    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError> {
        // Measure the database's clock first: an unmeasured one might close periods too early.
        let (session, _) = self.revised().await?;
        session.commit().await?;
        prune::close(&self.database, now.min(self.clock.now())).await
    }

    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError> {
        prune::prune(&self.database, retention).await
    }
}

async fn record_reset(
    session: &mut Session,
    reset: &Reset,
    name: &str,
    before: u64,
) -> Result<(), RepositoryError> {
    let state =
        |used: u64| json!({ "name": name, "period": reset.span.name, "used": used }).to_string();
    let entry = AuditEntry {
        // The audit log assigns the id.
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

fn changed_period(row: &Row) -> Result<ChangedPeriod, RepositoryError> {
    let id: String = row.get("policy_id").map_err(corrupt("a usage"))?;
    let read = || {
        let period_name = row.get("period_name")?;
        Ok((period_name, unsigned(row.get("used")?)))
    };
    let (period_name, used) = read().map_err(corrupt(&id))?;
    let policy = id.parse().map_err(|error| RepositoryError::Corrupt(format!("{id}: {error}")))?;
    Ok(ChangedPeriod { policy, period_name, used })
}
