//! Many increments in one transaction, and in as many statements however many they are.

mod sql;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use headgate::Timestamp;
use headgate_quota::{
    Entry, Increment, QuotaEvent, QuotaId, RepositoryError, Subject,
    ledger::book::{Account, Balance, Book, Charge, Terms},
};
use serde::Serialize;

use super::{commit, corrupt, to_json, unsigned};
use crate::{moment::Moment, row::Row, session::Session, statement::Statement};

/// Increments on their way into the ledger.
pub(super) struct Batch<'a> {
    session: Session,
    increments: &'a [Increment],
    now: Timestamp,
    book: Book,
}

/// A period that must have a row.
#[derive(Serialize)]
struct Place<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    period_start: u64,
    period_end: u64,
}

/// What was taken under a request id, or may have been.
#[derive(Serialize)]
struct Charged<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    request_id: &'a str,
    amount: u64,
    used: u64,
    quota_limit: u64,
}

/// How a period stands.
#[derive(Serialize)]
struct Standing<'a> {
    policy_id: &'a str,
    period_name: &'a str,
    used: u64,
    quota_limit: u64,
    threshold_told: bool,
    exceeded_told: bool,
}

/// What is told.
#[derive(Serialize)]
struct Told<'a> {
    place: usize,
    event_id: &'a str,
    kind: &'static str,
    policy_id: &'a str,
    subject_type: &'static str,
    subject_id: &'a str,
    period: &'static str,
    quota_limit: u64,
    used: u64,
    alert_threshold_percent: Option<u8>,
    occurred_at: u64,
    reset_at: u64,
}

// === impl Batch ===

impl<'a> Batch<'a> {
    pub(super) fn new(session: Session, increments: &'a [Increment]) -> Self {
        let latest = increments.iter().map(|increment| increment.at).max();
        let now = Moment::shown(latest.unwrap_or_default());
        Self { session, increments, now, book: Book::default() }
    }

    /// Reads, decides, writes, commits.
    pub(super) async fn decide(mut self) -> Result<Vec<Entry>, RepositoryError> {
        self.read_balances().await?;
        self.read_charges().await?;
        let entries = self.increments.iter().map(|increment| self.book.decide(increment));
        let entries: Vec<Entry> = entries.collect();
        self.write_balances().await?;
        self.write_charges().await?;
        self.write_events().await?;
        commit(self.session).await?;
        Ok(entries)
    }

    /// Locks the rows in one order, whoever does it, so that nobody waits in a circle; and reads
    /// the policies after that, since they may have changed while others held the locks.
    async fn read_balances(&mut self) -> Result<(), RepositoryError> {
        let places = to_json(&self.places())?;
        let ensure = Statement::either(sql::ENSURE.0, sql::ENSURE.1);
        self.session.execute(ensure.bind(&*places).bind(self.now)).await?;
        let lock = Statement::either(sql::LOCK.0, sql::LOCK.1).bind(&*places);
        let rows = self.session.rows(lock).await?;
        let terms = self.read_terms().await?;
        for row in &rows {
            let (account, balance) = balance(row, &terms)?;
            self.book.stand(account, balance);
        }
        // A disabled policy has no row to lock, and needs none.
        let locked: BTreeSet<Account> = self.book.accounts().cloned().collect();
        for increment in self.increments {
            let account = Account::of(increment);
            if let Some(terms) = terms.get(&increment.policy)
                && !locked.contains(&account)
            {
                let terms = Terms { enabled: false, ..terms.clone() };
                self.book.stand(account, Balance::new(Some(terms), 0));
            }
        }
        Ok(())
    }

    /// The periods that the increments are about, in order.
    fn places(&self) -> Vec<Place<'a>> {
        let key = |increment: &'a Increment| (increment.policy.as_str(), &*increment.span.name);
        let spans = self.increments.iter().map(|increment| (key(increment), &increment.span));
        let spans: BTreeMap<_, _> = spans.collect();
        let place = |((policy_id, period_name), span): ((&'a str, &'a str), _)| {
            let span: &headgate_quota::Span = span;
            let (period_start, period_end) = (span.start.as_micros(), span.end.as_micros());
            Place { policy_id, period_name, period_start, period_end }
        };
        spans.into_iter().map(|(key, span)| place((key, &**span))).collect()
    }

    async fn read_terms(&mut self) -> Result<HashMap<QuotaId, Terms>, RepositoryError> {
        let ids: BTreeSet<&str> = self.increments.iter().map(|one| one.policy.as_str()).collect();
        let ids = to_json(&ids.into_iter().collect::<Vec<_>>())?;
        let statement = Statement::either(sql::TERMS.0, sql::TERMS.1).bind(&*ids);
        self.session.rows(statement).await?.iter().map(terms).collect()
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
            self.book.charged(account, request_id, charge);
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

fn balance(
    row: &Row,
    terms: &HashMap<QuotaId, Terms>,
) -> Result<(Account, Balance), RepositoryError> {
    let read = || Ok((account(row)?, row.get("used")?, told_flags(row)?));
    let (account, used, (threshold_told, exceeded_told)) = read().map_err(corrupt("a usage"))?;
    let balance = Balance::new(terms.get(&account.policy).cloned(), unsigned(used));
    Ok((account, Balance { threshold_told, exceeded_told, ..balance }))
}

fn told_flags(row: &Row) -> Result<(bool, bool), sqlx::Error> {
    Ok((row.get("threshold_told")?, row.get("exceeded_told")?))
}

fn account(row: &Row) -> Result<Account, sqlx::Error> {
    let policy: String = row.get("policy_id")?;
    let policy = policy.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    Ok(Account { policy, period_name: row.get("period_name")? })
}

fn terms(row: &Row) -> Result<(QuotaId, Terms), RepositoryError> {
    let id: String = row.get("id").map_err(corrupt("a policy"))?;
    let odd = |why: &dyn std::fmt::Display| RepositoryError::Corrupt(format!("{id}: {why}"));
    let text = |column| row.get::<String>(column).map_err(|error| odd(&error));
    let threshold = row.get::<Option<i64>>("alert_threshold_percent");
    let threshold = threshold.map_err(|error| odd(&error))?;
    let terms = Terms {
        subject: Subject {
            kind: text("subject_type")?.parse().map_err(|error| odd(&error))?,
            id: text("subject_id")?,
        },
        period: text("period")?.parse().map_err(|error| odd(&error))?,
        limit: unsigned(row.get("quota_limit").map_err(|error| odd(&error))?),
        enabled: row.get("enabled").map_err(|error| odd(&error))?,
        alert_threshold_percent: threshold.and_then(|percent| percent.try_into().ok()),
    };
    Ok((id.parse().map_err(|error| odd(&error))?, terms))
}

fn charge(row: &Row) -> Result<(Account, String, Charge), RepositoryError> {
    let read = || {
        let charge = Charge {
            amount: unsigned(row.get("amount")?),
            used: unsigned(row.get("used")?),
            limit: unsigned(row.get("quota_limit")?),
            is_new: false,
        };
        Ok((account(row)?, row.get("request_id")?, charge))
    };
    read().map_err(corrupt("an increment"))
}

fn asked(increment: &Increment) -> Option<Charged<'_>> {
    Some(Charged {
        policy_id: increment.policy.as_str(),
        period_name: &increment.span.name,
        request_id: increment.request_id.as_deref()?,
        amount: increment.amount,
        used: 0,
        quota_limit: 0,
    })
}

fn charged<'a>((account, request_id, charge): (&'a Account, &'a str, &Charge)) -> Charged<'a> {
    Charged {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        request_id,
        amount: charge.amount,
        used: charge.used,
        quota_limit: charge.limit,
    }
}

fn standing<'a>((account, balance): (&'a Account, &Balance)) -> Standing<'a> {
    Standing {
        policy_id: account.policy.as_str(),
        period_name: &account.period_name,
        used: balance.used,
        quota_limit: balance.terms.as_ref().map_or(0, |terms| terms.limit),
        threshold_told: balance.threshold_told,
        exceeded_told: balance.exceeded_told,
    }
}

fn told((place, event): (usize, &QuotaEvent)) -> Told<'_> {
    Told {
        place,
        event_id: &event.event_id,
        kind: event.kind.name(),
        policy_id: event.quota_id.as_str(),
        subject_type: event.subject.kind.name(),
        subject_id: &event.subject.id,
        period: event.period.name(),
        quota_limit: event.limit,
        used: event.used,
        alert_threshold_percent: event.alert_threshold_percent,
        occurred_at: Moment::shown(event.at).as_micros(),
        reset_at: event.reset_at.as_micros(),
    }
}
