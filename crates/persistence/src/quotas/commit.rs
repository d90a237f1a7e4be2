//! Many increments in one transaction, and in as many statements however many they are.

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
    wire::{Charged, Place, Standing, Told, asked, charged, standing, told},
};
use super::{
    clock::{Began, LedgerClock},
    commit, to_json,
};
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

/// Increments on their way into the ledger.
pub(super) struct Batch<'a> {
    session: Session,
    increments: &'a [Increment],
    now: Timestamp,
    book: Book,
}

/// What became of a batch.
pub(super) enum Decided {
    /// It is committed.
    Committed(Vec<IncrementResult>),
    /// Nothing was done, since these increments are not of the present period.
    OutOfPeriod(Vec<bool>),
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(session: Session, increments: &'a [Increment]) -> Self {
        let latest = increments.iter().map(|increment| increment.at).max();
        let now = Moment::shown(latest.unwrap_or_default());
        Self { session, increments, now, book: Book::default() }
    }

    /// Reads, decides, writes, commits; or does nothing, if an increment is not of the present period.
    pub(super) async fn decide_present(
        mut self,
        clock: &LedgerClock,
        began: Began,
    ) -> Result<Decided, RepositoryError> {
        let terms = self.read_balances().await?;
        // Without a policy nothing is taken, whenever it is.
        if let Some(row) = terms.first() {
            let now = clock.read(row, began)?;
            let is_out = |increment: &Increment| !increment.span.is_current(now);
            let which: Vec<bool> = self.increments.iter().map(is_out).collect();
            if which.contains(&true) {
                return Ok(Decided::OutOfPeriod(which));
            }
        }
        self.decide_read().await.map(Decided::Committed)
    }

    /// Reads, decides, writes, commits, whichever period it is.
    pub(super) async fn decide(mut self) -> Result<Vec<IncrementResult>, RepositoryError> {
        self.read_balances().await?;
        self.decide_read().await
    }

    async fn decide_read(mut self) -> Result<Vec<IncrementResult>, RepositoryError> {
        self.read_charges().await?;
        let entries = self.increments.iter().map(|increment| self.book.decide(increment));
        let entries: Vec<IncrementResult> = entries.collect();
        self.write_balances().await?;
        self.write_charges().await?;
        self.write_events().await?;
        commit(self.session).await?;
        Ok(entries)
    }

    /// Locks the rows in one order, whoever does it, so that nobody waits in a circle; and reads
    /// the policies after that, since they may have changed while others held the locks. Returns the
    /// rows of the policies.
    async fn read_balances(&mut self) -> Result<Vec<Row>, RepositoryError> {
        let places = to_json(&self.places())?;
        let ensure = Statement::either(sql::ENSURE.0, sql::ENSURE.1);
        self.session.execute(ensure.bind(&*places).bind(self.now)).await?;
        let lock = Statement::either(sql::LOCK.0, sql::LOCK.1).bind(&*places);
        let rows = self.session.rows(lock).await?;
        let policies = self.read_policies().await?;
        let terms: HashMap<QuotaId, Terms> =
            policies.iter().map(terms).collect::<Result<_, _>>()?;
        for row in &rows {
            let (account, balance) = balance(row, &terms)?;
            self.book.add_balance(account, balance);
        }
        // A disabled policy has no row to lock, and needs none.
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

    /// The periods that the increments are about, in order.
    fn places(&self) -> Vec<Place<'a>> {
        let places = self.increments.iter().map(Place::of);
        let places: BTreeMap<_, _> = places.map(|place| (place.key(), place)).collect();
        places.into_values().collect()
    }

    async fn read_policies(&mut self) -> Result<Vec<Row>, RepositoryError> {
        let ids: BTreeSet<&str> = self.increments.iter().map(|one| one.policy.as_str()).collect();
        let ids = to_json(&ids.into_iter().collect::<Vec<_>>())?;
        let statement = Statement::either(sql::TERMS.0, sql::TERMS.1).bind(&*ids);
        Ok(self.session.rows(statement).await?)
    }

    async fn read_charges(&mut self) -> Result<(), RepositoryError> {
        let asked: Vec<Charged<'_>> = self.increments.iter().filter_map(asked).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(sql::CHARGED.0, sql::CHARGED.1);
        let rows = self.session.rows(statement.bind(&*to_json(&asked)?)).await?;
        for row in &rows {
            let (account, request_id, charge) = charge(row)?;
            self.book.add_charge(account, request_id, charge);
        }
        Ok(())
    }

    async fn write_balances(&mut self) -> Result<(), RepositoryError> {
        let mut changed: Vec<Standing<'_>> = self.book.changed().map(standing).collect();
        if changed.is_empty() {
            return Ok(());
        }
        changed.sort_by_key(|standing| (standing.policy_id, standing.period_name));
        let statement = Statement::either(sql::STAND.0, sql::STAND.1);
        let statement = statement.bind(&*to_json(&changed)?).bind(self.now);
        Ok(self.session.execute(statement).await?)
    }

    async fn write_charges(&mut self) -> Result<(), RepositoryError> {
        let charges: Vec<Charged<'_>> = self.book.new_charges().map(charged).collect();
        if charges.is_empty() {
            return Ok(());
        }
        let statement = Statement::either(sql::CHARGE.0, sql::CHARGE.1);
        let statement = statement.bind(&*to_json(&charges)?).bind(self.now);
        Ok(self.session.execute(statement).await?)
    }

    async fn write_events(&mut self) -> Result<(), RepositoryError> {
        let told: Vec<Told<'_>> = self.book.events().iter().enumerate().map(told).collect();
        if told.is_empty() {
            return Ok(());
        }
        if let Session::Postgres(_) = self.session {
            // Readers go on from the last place they saw: places must come in their order.
            self.session.execute(Statement::new(sql::TAKE_TURNS)).await?;
        }
        let statement = Statement::either(sql::TELL.0, sql::TELL.1).bind(&*to_json(&told)?);
        Ok(self.session.execute(statement).await?)
    }
}
