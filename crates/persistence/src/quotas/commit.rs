//! Commits a batch of increments in one transaction, with a fixed number of statements.

mod read;
mod sql;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use headgate::Timestamp;
use headgate_quota::{
    Increment, IncrementResult, QuotaId, RepositoryError,
    ledger::book::{Account, Balance, Book, Terms},
};

use self::{
    read::{balance, charge, terms},
    wire::{
        ChargeRow, EventRow, PeriodRow, UsageRow, charge_key, charge_row, event_row, usage_row,
    },
};
use super::{
    clock::{BeginTime, LedgerClock},
    commit, to_json,
};
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

/// A batch of increments and its transaction.
pub(super) struct Batch<'a> {
    session: Session,
    increments: &'a [Increment],
    now: Timestamp,
    book: Book,
}

/// The result of a batch.
pub(super) enum Decided {
    /// The batch is committed.
    Committed(Vec<IncrementResult>),
    /// Nothing was done, because the marked increments are not of the current period.
    OutOfPeriod(Vec<bool>),
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(session: Session, increments: &'a [Increment]) -> Self {
        let latest = increments.iter().map(|increment| increment.at).max();
        let now = Moment::shown(latest.unwrap_or_default());
        Self { session, increments, now, book: Book::default() }
    }

    /// Reads, decides, writes and commits; does nothing if an increment is not of the current
    /// period.
    pub(super) async fn decide_if_current(
        mut self,
        clock: &LedgerClock,
        began: BeginTime,
    ) -> Result<Decided, RepositoryError> {
        let terms = self.read_balances().await?;
        // Without a policy nothing is charged, so the period does not matter.
        if let Some(row) = terms.first() {
            let now = clock.read(row, began)?;
            let is_out = |increment: &Increment| !increment.span.is_current(now);
            let out_of_period: Vec<bool> = self.increments.iter().map(is_out).collect();
            if out_of_period.contains(&true) {
                return Ok(Decided::OutOfPeriod(out_of_period));
            }
        }
        self.decide_read().await.map(Decided::Committed)
    }

    /// Reads, decides, writes and commits without checking the period.
    pub(super) async fn decide(mut self) -> Result<Vec<IncrementResult>, RepositoryError> {
        self.read_balances().await?;
        self.decide_read().await
    }

    async fn decide_read(mut self) -> Result<Vec<IncrementResult>, RepositoryError> {
        self.read_charges().await?;
        let results = self.increments.iter().map(|increment| self.book.decide(increment));
        let results: Vec<IncrementResult> = results.collect();
        self.write_balances().await?;
        self.write_charges().await?;
        self.write_events().await?;
        commit(self.session).await?;
        Ok(results)
    }

    /// Locks the usage rows in a fixed order, which prevents deadlocks, and then reads the
    /// policies, which may have changed while others held the locks. Returns the rows of the
    /// policies.
    async fn read_balances(&mut self) -> Result<Vec<Row>, RepositoryError> {
        let periods = to_json(&self.periods())?;
        let ensure = Statement::either(sql::ENSURE.0, sql::ENSURE.1);
        self.session.execute(ensure.bind(&*periods).bind(self.now)).await?;
        let lock = Statement::either(sql::LOCK.0, sql::LOCK.1).bind(&*periods);
        let rows = self.session.rows(lock).await?;
        let policies = self.read_policies().await?;
        let terms: HashMap<QuotaId, Terms> =
            policies.iter().map(terms).collect::<Result<_, _>>()?;
        for row in &rows {
            let (account, balance) = balance(row, &terms)?;
            self.book.add_balance(account, balance);
        }
        // A disabled policy needs no row.
        let locked: BTreeSet<Account> = self.book.accounts().cloned().collect();
        for increment in self.increments {
            let account = Account::of(increment);
            if let Some(terms) = terms.get(&increment.policy)
                && !locked.contains(&account)
            {
                let terms = Terms { enabled: false, ..terms.clone() };
                self.book.add_balance(account, Balance::new(Some(terms), 0));
            }
        }
        Ok(policies)
    }

    /// Returns the periods of the increments, sorted and without duplicates.
    fn periods(&self) -> Vec<PeriodRow<'a>> {
        let periods = self.increments.iter().map(PeriodRow::of);
        let periods: BTreeMap<_, _> = periods.map(|period| (period.key(), period)).collect();
        periods.into_values().collect()
    }

    async fn read_policies(&mut self) -> Result<Vec<Row>, RepositoryError> {
        let ids: BTreeSet<&str> = self.increments.iter().map(|one| one.policy.as_str()).collect();
        let ids = to_json(&ids.into_iter().collect::<Vec<_>>())?;
        let statement = Statement::either(sql::TERMS.0, sql::TERMS.1).bind(&*ids);
        Ok(self.session.rows(statement).await?)
    }

    async fn read_charges(&mut self) -> Result<(), RepositoryError> {
        let keys: Vec<ChargeRow<'_>> = self.increments.iter().filter_map(charge_key).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(sql::SELECT_CHARGES.0, sql::SELECT_CHARGES.1);
        let rows = self.session.rows(statement.bind(&*to_json(&keys)?)).await?;
        for row in &rows {
            let (account, request_id, charge) = charge(row)?;
            self.book.add_charge(account, request_id, charge);
        }
        Ok(())
    }

    async fn write_balances(&mut self) -> Result<(), RepositoryError> {
        let mut changed: Vec<UsageRow<'_>> = self.book.changed().map(usage_row).collect();
        if changed.is_empty() {
            return Ok(());
        }
        changed.sort_by_key(|row| (row.policy_id, row.period_name));
        let statement = Statement::either(sql::UPDATE_USAGES.0, sql::UPDATE_USAGES.1);
        let statement = statement.bind(&*to_json(&changed)?).bind(self.now);
        Ok(self.session.execute(statement).await?)
    }

    async fn write_charges(&mut self) -> Result<(), RepositoryError> {
        let charges: Vec<ChargeRow<'_>> = self.book.new_charges().map(charge_row).collect();
        if charges.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(sql::INSERT_CHARGES.0, sql::INSERT_CHARGES.1);
        let statement = statement.bind(&*to_json(&charges)?).bind(self.now);
        Ok(self.session.execute(statement).await?)
    }

    async fn write_events(&mut self) -> Result<(), RepositoryError> {
        let events: Vec<EventRow<'_>> =
            self.book.events().iter().enumerate().map(event_row).collect();
        if events.is_empty() {
            return Ok(());
        }
        if let Session::Postgres(_) = self.session {
            // Positions must be in the order of commits, because readers continue after the last.
            self.session.execute(Statement::new(sql::LOCK_EVENTS)).await?;
        }
        let insert = Statement::either(sql::INSERT_EVENTS.0, sql::INSERT_EVENTS.1);
        let statement = insert.bind(&*to_json(&events)?);
        Ok(self.session.execute(statement).await?)
    }
}
