//! Commits a batch of operations in one transaction, with a fixed number of statements.

mod expire;
mod read;
pub(super) mod reservations;
mod sql;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry};

use headgate::Timestamp;
use headgate_quota::{
    Operation, Posted, QuotaId, RepositoryError,
    ledger::book::{Account, Balance, Book, ChargeWrite, Terms},
};

pub(super) use self::{expire::release_expired, read::account};
use self::{
    read::{balance, charge, terms},
    reservations::{ReservationKey, ReservationRow},
    wire::{
        ChargeKey, ChargeRow, EventRow, PeriodRow, UsageRow, charge_key, charge_row, event_row,
        usage_row,
    },
};
use super::{
    clock::{BeginTime, LedgerClock},
    commit, to_json,
};
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

/// A batch of operations and its transaction.
pub(super) struct Batch<'a> {
    session: Session,
    operations: &'a [Operation],
    /// Time of the writes.
    at: Timestamp,
    book: Book,
}

/// The result of a batch.
pub(super) enum Decided {
    /// The batch is committed.
    Committed(Vec<Posted>),
    /// Nothing was done, because the marked operations are not of the current period.
    OutOfPeriod(Vec<bool>),
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(session: Session, operations: &'a [Operation]) -> Self {
        let latest = operations.iter().map(Operation::at).max();
        let at = Moment::shown(latest.unwrap_or_default());
        Self { session, operations, at, book: Book::default() }
    }

    /// Reads, decides, writes and commits; does nothing if an operation is not of the current
    /// period.
    pub(super) async fn decide_if_current(
        mut self,
        clock: &LedgerClock,
        began: BeginTime,
    ) -> Result<Decided, RepositoryError> {
        // Without a policy nothing is done, so the time does not matter.
        let now = self.read_balances(clock, began).await?;
        if let Some(now) = now {
            let is_out = |one: &Operation| one.span().is_some_and(|span| !span.is_current(now));
            let out_of_period: Vec<bool> = self.operations.iter().map(is_out).collect();
            if out_of_period.contains(&true) {
                return Ok(Decided::OutOfPeriod(out_of_period));
            }
        }
        self.decide_read(now.unwrap_or_default()).await.map(Decided::Committed)
    }

    /// Reads, decides, writes and commits without checking the period.
    pub(super) async fn decide(
        mut self,
        clock: &LedgerClock,
        began: BeginTime,
    ) -> Result<Vec<Posted>, RepositoryError> {
        let now = self.read_balances(clock, began).await?;
        self.decide_read(now.unwrap_or_default()).await
    }

    async fn decide_read(mut self, now: Timestamp) -> Result<Vec<Posted>, RepositoryError> {
        self.expire_reservations(now).await?;
        self.read_charges().await?;
        self.read_reservations().await?;
        let posted: Vec<Posted> =
            self.operations.iter().map(|operation| self.book.decide(operation, now)).collect();
        self.write_balances().await?;
        self.write_charges().await?;
        self.write_reservations().await?;
        self.write_events().await?;
        commit(self.session).await?;
        Ok(posted)
    }

    /// Locks the usage rows in a fixed order, which prevents deadlocks, and then reads the
    /// policies, which may have changed while others held the locks. Returns the database's time,
    /// unless all policies are unknown.
    async fn read_balances(
        &mut self,
        clock: &LedgerClock,
        began: BeginTime,
    ) -> Result<Option<Timestamp>, RepositoryError> {
        let periods = to_json(&self.periods())?;
        let ensure = Statement::either(sql::ENSURE.0, sql::ENSURE.1);
        self.session.execute(ensure.bind(&*periods).bind(self.at)).await?;
        let lock = Statement::either(sql::LOCK.0, sql::LOCK.1).bind(&*periods);
        let rows = self.session.rows(lock).await?;
        let policies = self.read_policies().await?;
        let terms: HashMap<QuotaId, Terms> =
            policies.iter().map(terms).collect::<Result<_, _>>()?;
        for row in &rows {
            let (account, balance) = balance(row, &terms)?;
            self.book.add_balance(account, balance);
        }
        // A disabled policy needs no row, and neither does a period without usage.
        let locked: BTreeSet<Account> = self.book.accounts().cloned().collect();
        for operation in self.operations {
            let account = Account::of(operation);
            if let Some(terms) = terms.get(operation.policy())
                && !locked.contains(&account)
            {
                let terms = Terms { enabled: false, ..terms.clone() };
                let end = operation.span().map(|span| span.end).unwrap_or_default();
                self.book.add_balance(account, Balance::new(Some(terms), 0, end));
            }
        }
        policies.first().map(|row| clock.read(row, began)).transpose()
    }

    /// Returns the periods of the operations, sorted and without duplicates.
    fn periods(&self) -> Vec<PeriodRow<'a>> {
        let mut periods = BTreeMap::new();
        for period in self.operations.iter().map(PeriodRow::of) {
            match periods.entry(period.key()) {
                Entry::Vacant(entry) => drop(entry.insert(period)),
                Entry::Occupied(mut entry) => entry.get_mut().merge(&period),
            }
        }
        periods.into_values().collect()
    }

    async fn read_policies(&mut self) -> Result<Vec<Row>, RepositoryError> {
        let ids: BTreeSet<&str> = self.operations.iter().map(|one| one.policy().as_str()).collect();
        let ids = to_json(&ids.into_iter().collect::<Vec<_>>())?;
        let statement = Statement::either(sql::TERMS.0, sql::TERMS.1).bind(&*ids);
        Ok(self.session.rows(statement).await?)
    }

    async fn read_charges(&mut self) -> Result<(), RepositoryError> {
        let keys: Vec<ChargeKey<'_>> = self.operations.iter().filter_map(charge_key).collect();
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

    async fn read_reservations(&mut self) -> Result<(), RepositoryError> {
        let keys = self.operations.iter().filter_map(reservations::key);
        let keys: Vec<ReservationKey<'_>> = keys.collect();
        if keys.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(reservations::SELECT.0, reservations::SELECT.1);
        let rows = self.session.rows(statement.bind(&*to_json(&keys)?)).await?;
        for row in &rows {
            let (account, reservation) = reservations::read(row)?;
            self.book.add_reservation(account, reservation);
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
        let statement = statement.bind(&*to_json(&changed)?).bind(self.at);
        Ok(self.session.execute(statement).await?)
    }

    async fn write_charges(&mut self) -> Result<(), RepositoryError> {
        let rows =
            |write| -> Vec<ChargeRow<'_>> { self.book.charges(write).map(charge_row).collect() };
        let (new, refunded) = (rows(ChargeWrite::Insert), rows(ChargeWrite::Update));
        if !new.is_empty() {
            let statement = Statement::either(sql::INSERT_CHARGES.0, sql::INSERT_CHARGES.1);
            let statement = statement.bind(&*to_json(&new)?).bind(self.at);
            self.session.execute(statement).await?;
        }
        if !refunded.is_empty() {
            let statement = Statement::either(sql::REFUND_CHARGES.0, sql::REFUND_CHARGES.1);
            self.session.execute(statement.bind(&*to_json(&refunded)?)).await?;
        }
        Ok(())
    }

    async fn write_reservations(&mut self) -> Result<(), RepositoryError> {
        let changed = self.book.changed_reservations().map(reservations::row);
        let changed: Vec<ReservationRow<'_>> = changed.collect();
        if changed.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(reservations::WRITE.0, reservations::WRITE.1);
        Ok(self.session.execute(statement.bind(&*to_json(&changed)?)).await?)
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
