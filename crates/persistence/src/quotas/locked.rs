//! Finds the policies whose usage other transactions have locked.

use std::collections::BTreeSet;

use headgate_quota::{Operation, Patience, QuotaId, RepositoryError, ledger::book::Account};

use super::{
    QuotaDatabase,
    commit::{account, reservations::AccountRow},
    corrupt, to_json,
};
use crate::{outage::Outage, statement::Statement};

/// Selects the rows that are locked, without waiting for them. Those that another transaction is
/// just creating are not visible. PostgreSQL only: SQLite has one lock.
const LOCKED: &str = "
    WITH k AS MATERIALIZED (
        SELECT policy_id, period_name FROM jsonb_to_recordset(CAST($1 AS jsonb))
            AS k(policy_id text, period_name text)),
    free AS MATERIALIZED (
        SELECT u.policy_id, u.period_name FROM k
        JOIN quota_usages u ON u.policy_id = k.policy_id AND u.period_name = k.period_name
        FOR UPDATE OF u SKIP LOCKED)
    SELECT u.policy_id, u.period_name FROM k
    JOIN quota_usages u ON u.policy_id = k.policy_id AND u.period_name = k.period_name
    WHERE NOT EXISTS (SELECT FROM free
        WHERE free.policy_id = u.policy_id AND free.period_name = u.period_name)";

impl QuotaDatabase {
    /// Returns the policies of operations whose rows other transactions have locked.
    ///
    /// # Errors
    ///
    /// `Unavailable` also if the whole table is locked.
    pub(super) async fn locked_policies(
        &self,
        operations: &[Operation],
    ) -> Result<Vec<QuotaId>, RepositoryError> {
        let accounts: BTreeSet<Account> = operations.iter().map(Account::of).collect();
        let keys: Vec<AccountRow<'_>> = accounts.iter().map(AccountRow::from).collect();
        let rows = async {
            let mut session = self.database.writing_within(Patience::Long).await?;
            session.rows(Statement::new(LOCKED).bind(&*to_json(&keys)?)).await
        };
        let rows = rows.await.map_err(|outage: Outage| RepositoryError::unavailable(outage))?;
        let policies = rows.iter().map(|row| account(row).map(|account| account.policy));
        policies.collect::<Result<_, _>>().map_err(corrupt("a usage"))
    }
}
