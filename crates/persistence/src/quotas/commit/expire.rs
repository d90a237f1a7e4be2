//! Ends reservations whose TTL is over by the database's clock.

use std::collections::BTreeMap;

use headgate::Timestamp;
use headgate_quota::{RepositoryError, ledger::book::Account};

use super::{
    Batch,
    read::account,
    reservations::{self, AccountRow},
    sql,
};
use crate::{
    Database,
    quotas::{QuotaDatabase, commit, corrupt, to_json, unsigned},
    row::Row,
    session::Session,
    statement::Statement,
};

/// Maximum number of periods per transaction of [`release_expired`].
const MAX_PERIODS: u32 = 512;

/// Maximum number of transactions per call of [`release_expired`]; the next call goes on.
const MAX_ROUNDS: u32 = 100;

/// Selects periods with reservations whose TTL is over.
const DUE_PERIODS: &str = "
    SELECT DISTINCT policy_id, period_name FROM quota_reservations
    WHERE status = 'pending' AND expires_at <= $1 LIMIT $2";

/// Takes what they held out of usage.
const RELEASE: (&str, &str) = (
    "UPDATE quota_usages AS u SET used = greatest(0, u.used - k.held),
        reserved = greatest(0, u.reserved - k.held), updated_at = greatest(u.updated_at, $2)
    FROM jsonb_to_recordset(CAST($1 AS jsonb)) AS k(policy_id text, period_name text, held bigint)
    WHERE u.policy_id = k.policy_id AND u.period_name = k.period_name",
    "UPDATE quota_usages AS u SET used = max(0, u.used - (value->>'held')),
        reserved = max(0, u.reserved - (value->>'held')), updated_at = max(u.updated_at, $2)
    FROM json_each($1)
    WHERE u.policy_id = value->>'policy_id' AND u.period_name = value->>'period_name'",
);

/// What reservations held in one period.
#[derive(serde::Serialize)]
struct ReleasedRow<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    held: u64,
}

/// Expired reservations of a period.
#[derive(Clone, Copy)]
struct Expired {
    held: u64,
    count: u64,
}

impl Batch<'_> {
    /// Ends the reservations of the locked periods whose TTL is over.
    pub(super) async fn expire_reservations(
        &mut self,
        now: Timestamp,
    ) -> Result<(), RepositoryError> {
        let accounts: Vec<Account> = self.book.reserving().cloned().collect();
        for (account, expired) in expire(&mut self.session, &accounts, now).await? {
            if let Some(balance) = self.book.balance_mut(&account) {
                balance.expire(expired.held);
            }
        }
        Ok(())
    }
}

/// Ends expired reservations of periods without further requests; returns how many.
pub(in crate::quotas) async fn release_expired(
    quotas: &QuotaDatabase,
) -> Result<u64, RepositoryError> {
    // An unmeasured clock might end reservations too early.
    let now = quotas.measured_now().await?;
    let mut total = 0;
    for _ in 0..MAX_ROUNDS {
        let (count, is_last) = release_some(&quotas.database, now).await?;
        total += count;
        if is_last {
            break;
        }
    }
    Ok(total)
}

/// Releases up to [`MAX_PERIODS`] periods; returns the number of reservations, and whether all
/// periods were included.
async fn release_some(database: &Database, now: Timestamp) -> Result<(u64, bool), RepositoryError> {
    let mut session = database.reading_for_server().await?;
    let due = Statement::new(DUE_PERIODS).bind(now).bind(MAX_PERIODS);
    let rows = session.rows(due).await?;
    session.commit().await?;
    if rows.is_empty() {
        return Ok((0, true));
    }
    let accounts = rows.iter().map(account).collect::<Result<Vec<_>, _>>();
    let accounts = accounts.map_err(corrupt("a reservation"))?;
    let keys: Vec<AccountRow<'_>> = accounts.iter().map(AccountRow::from).collect();
    let mut session = database.writing().await?;
    let lock = Statement::either(sql::LOCK.0, sql::LOCK.1).bind(&*to_json(&keys)?);
    session.rows(lock).await?;
    let expired = expire(&mut session, &accounts, now).await?;
    let released: Vec<ReleasedRow<'_>> = expired.iter().map(released_row).collect();
    let release = Statement::either(RELEASE.0, RELEASE.1).bind(&*to_json(&released)?);
    session.execute(release.bind(now)).await?;
    commit(session).await?;
    let count = expired.values().map(|expired| expired.count).sum();
    Ok((count, accounts.len() < MAX_PERIODS as usize))
}

/// Ends reservations of these periods, whose rows are locked.
async fn expire(
    session: &mut Session,
    accounts: &[Account],
    now: Timestamp,
) -> Result<BTreeMap<Account, Expired>, RepositoryError> {
    if accounts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let keys: Vec<AccountRow<'_>> = accounts.iter().map(AccountRow::from).collect();
    let keys = to_json(&keys)?;
    let due = Statement::either(reservations::SELECT_DUE.0, reservations::SELECT_DUE.1);
    let rows = session.rows(due.bind(&*keys).bind(now)).await?;
    if rows.is_empty() {
        return Ok(BTreeMap::new());
    }
    let end = Statement::either(reservations::EXPIRE.0, reservations::EXPIRE.1);
    session.execute(end.bind(&*keys).bind(now)).await?;
    let expired = |row: &Row| {
        let (held, count) = (unsigned(row.get("held")?), unsigned(row.get("total")?));
        Ok((account(row)?, Expired { held, count }))
    };
    rows.iter().map(expired).collect::<Result<_, _>>().map_err(corrupt("a reservation"))
}

fn released_row<'a>((account, expired): (&'a Account, &Expired)) -> ReleasedRow<'a> {
    let (policy_id, period_name) = (account.policy.as_str(), &*account.period_name);
    ReleasedRow { policy_id, period_name, held: expired.held }
}
