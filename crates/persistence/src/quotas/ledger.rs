//! The ledger: usage by period.

use async_trait::async_trait;
use headgate::{Clock as _, Timestamp};
use headgate_quota::{
    ChangedPeriod, Listed, Operation, Page, Patience, PeriodUsage, Posted, Pruned, QuotaId,
    QuotaLedger, RepositoryError, Reservation, ReservationId, ReservationStatus, Reset, Retention,
};
use headgate_ratelimit::AuditEntry;
use serde_json::json;

use super::{
    QuotaDatabase, commit,
    commit::{Batch, Decided, release_expired, reservations},
    corrupt, policies, prune, record, unsigned,
};
use crate::{
    audit, moment::Moment, outage::Outage, row::Row, session::Session, statement::Statement,
};

/// Selects the columns of usages that [`record::usage`] needs.
macro_rules! usages {
    ($which:literal) => {
        concat!(
            "SELECT policy_id, period_name, period_start, period_end, quota_limit, used, reserved, \
             closed_at, updated_at FROM quota_usages ",
            $which
        )
    };
}

const ONE: &str = usages!("WHERE policy_id = $1 AND period_name = $2");

/// Sums up what reservations hold whose TTL is over, but which no operation has ended yet.
const DUE: &str = "
    SELECT CAST(COALESCE(sum(held), 0) AS bigint) AS total FROM quota_reservations
    WHERE policy_id = $1 AND period_name = $2 AND status = 'pending' AND expires_at <= $3";

/// Selects the latest period in which a request id was charged.
const CHARGED_PERIOD: &str = "
    SELECT u.period_name FROM quota_usages u
    JOIN quota_increments i ON i.policy_id = u.policy_id AND i.period_name = u.period_name
        AND i.request_id = $2
    WHERE u.policy_id = $1 ORDER BY u.period_start DESC LIMIT 1";

const ONE_LOCKED: &str = usages!("WHERE policy_id = $1 AND period_name = $2 FOR UPDATE");

const COUNT: &str = "SELECT count(*) AS total FROM quota_usages WHERE policy_id = $1";

const HISTORY: &str =
    usages!("WHERE policy_id = $1 ORDER BY period_start DESC, period_name DESC LIMIT $2 OFFSET $3");

const CHANGED: &str = usages!(
    "WHERE closed_at IS NULL AND updated_at >= $1 ORDER BY updated_at DESC, policy_id LIMIT $2"
);

/// Pending reservations stay reserved.
const RESET: &str = "
    UPDATE quota_usages SET used = reserved, resets = resets + 1, updated_at = $3
    WHERE policy_id = $1 AND period_name = $2";

const NOW: (&str, &str) = ("SELECT now() AS now", "SELECT 1");

impl QuotaDatabase {
    async fn commit_once(
        &self,
        operations: &[Operation],
        patience: Patience,
    ) -> Result<Vec<Posted>, RepositoryError> {
        let (session, began) = self.writing_within(patience).await?;
        match Batch::new(session, operations).decide_if_current(&self.clock, began).await? {
            Decided::Committed(posted) => Ok(posted),
            Decided::OutOfPeriod(which) => self.commit_current(operations, &which, patience).await,
        }
    }

    /// Commits the operations of the current period, if a server's clock put others elsewhere.
    async fn commit_current(
        &self,
        operations: &[Operation],
        out_of_period: &[bool],
        patience: Patience,
    ) -> Result<Vec<Posted>, RepositoryError> {
        let all = operations.iter().zip(out_of_period);
        let rest: Vec<_> = all.filter(|(_, out)| !**out).map(|(one, _)| one.clone()).collect();
        let posted = if rest.is_empty() {
            Vec::new()
        } else {
            let (session, began) = self.writing_within(patience).await?;
            Batch::new(session, &rest).decide(&self.clock, began).await?
        };
        let mut posted = posted.into_iter();
        let mut one = |(operation, out): (&Operation, &bool)| {
            let own = if *out { None } else { posted.next() };
            own.unwrap_or_else(|| operation.out_of_period())
        };
        Ok(operations.iter().zip(out_of_period).map(&mut one).collect())
    }

    /// Returns the database's time, measured now.
    pub(super) async fn measured_now(&self) -> Result<Timestamp, RepositoryError> {
        let (session, _) = self.revised().await?;
        session.commit().await?;
        Ok(self.clock.now())
    }
}

#[async_trait]
impl QuotaLedger for QuotaDatabase {
    async fn commit(
        &self,
        operations: &[Operation],
        patience: Patience,
    ) -> Result<Vec<Posted>, RepositoryError> {
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        match self.commit_once(operations, patience).await {
            Err(RepositoryError::Busy { cause, .. }) => {
                let policies = self.locked_policies(operations).await?.into();
                Err(RepositoryError::Busy { policies, cause })
            }
            done => done,
        }
    }

    async fn reservation(
        &self,
        policy: &QuotaId,
        id: &ReservationId,
    ) -> Result<Option<Reservation>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let one = Statement::new(reservations::SELECT_ONE).bind(policy);
        let row = session.row(one.bind(id.period_name()).bind(id.as_str())).await?;
        session.commit().await?;
        let found = row.as_ref().map(reservations::read).transpose()?;
        Ok(found.map(|(_, mut reservation)| {
            if reservation.is_due(self.clock.now()) {
                reservation.end(ReservationStatus::Expired);
            }
            reservation
        }))
    }

    async fn charged_period(
        &self,
        policy: &QuotaId,
        request_id: &str,
    ) -> Result<Option<String>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let row = session.row(Statement::new(CHARGED_PERIOD).bind(policy).bind(request_id)).await?;
        session.commit().await?;
        row.map(|row| row.get("period_name").map_err(corrupt("a usage"))).transpose()
    }

    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError> {
        let mut session = self.database.reading().await?;
        let row = session.row(Statement::new(ONE).bind(policy).bind(period_name)).await?;
        let mut usage = row.as_ref().map(record::usage).transpose()?;
        if let Some(usage) = &mut usage
            && usage.reserved > 0
        {
            let due = Statement::new(DUE).bind(policy).bind(period_name);
            let due = session.count(due.bind(self.clock.now())).await?;
            usage.reserved = usage.reserved.saturating_sub(due);
        }
        session.commit().await?;
        Ok(usage)
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
        let mut session = self.database.reading_for_server().await?;
        let rows = session.rows(Statement::new(CHANGED).bind(since).bind(max)).await?;
        session.commit().await?;
        rows.iter().map(changed_period).collect()
    }

    async fn release_expired(&self) -> Result<u64, RepositoryError> {
        release_expired(self).await
    }

    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError> {
        // Measure the database's clock first: an unmeasured one might close periods too early.
        let measured = self.measured_now().await?;
        prune::close(&self.database, now.min(measured)).await
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
    let (period_name, taken) = read().map_err(corrupt(&id))?;
    let policy = id.parse().map_err(|error| RepositoryError::Corrupt(format!("{id}: {error}")))?;
    Ok(ChangedPeriod { policy, period_name, taken })
}
