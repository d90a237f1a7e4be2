//! What is asked of whoever keeps usage.

pub mod book;

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page};

use crate::{PeriodUsage, QuotaId, RepositoryError, Span};

/// Keeps what was used, durably: the authority on it.
///
/// Its contract:
///
/// - [`commit`](Self::commit) decides increments in their order, by the policies as they are at that
///   time, and never lets usage pass a limit, whoever commits at the same time. All of it is
///   durable when it returns, together with the events that it caused.
/// - A request id is charged once in a policy's period.
/// - An increment counts in the period it was admitted in, also if that is closed by the time it is
///   committed. By the ledger's own clock that must be the present one, give or take
///   [`Span::TOLERANCE`]: otherwise nothing is taken or reset.
#[async_trait]
pub trait QuotaLedger: Send + Sync {
    /// Decides `increments` in one transaction; answers in their order.
    async fn commit(&self, increments: &[Increment]) -> Result<Vec<Entry>, RepositoryError>;

    /// How much of a policy was used in the period of this name; `None` where nothing ever was.
    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError>;

    /// One page of the periods in which a policy was used, the newest first.
    async fn history(
        &self,
        policy: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError>;

    /// Sets usage to 0 and records who wanted that, or neither; gives what was used before.
    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError>;

    /// At most `max` periods that changed since then and are not closed, the latest change first.
    async fn touched(&self, since: Timestamp, max: u32) -> Result<Vec<Touched>, RepositoryError>;

    /// Closes the periods that are over; says how many there were.
    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError>;

    /// Forgets what is old enough.
    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError>;
}

/// Somebody wants to use something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// Of which policy.
    pub policy: QuotaId,
    /// In which period: the one in which the request was admitted.
    pub span: Arc<Span>,
    /// How much.
    pub amount: u64,
    /// By what name it is sent again.
    pub request_id: Option<String>,
    /// When it was admitted.
    pub at: Timestamp,
}

/// What the ledger says to one increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What became of it.
    pub verdict: Verdict,
    /// How much is used after it; for a replay, how much was after the first.
    pub used: u64,
    /// The limit by which that was decided.
    pub limit: u64,
}

/// What became of an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It was taken.
    Taken,
    /// It was taken before, under the same request id.
    Replayed,
    /// It does not fit: nothing was taken.
    Refused,
    /// It is more than the limit: nothing was taken, and nobody is told of it.
    Impossible,
    /// The period is not the present one by the ledger's clock: nothing was taken.
    OutOfPeriod,
    /// The policy is disabled: everything is admitted and nothing counted.
    Disabled,
    /// Another amount was taken under the same request id.
    Conflict,
    /// There is no such policy any more.
    NotFound,
}

/// Somebody wants usage to be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Of which policy.
    pub policy: QuotaId,
    /// In which period.
    pub span: Arc<Span>,
    /// Why.
    pub reason: String,
    /// Who, and when.
    pub author: Author,
}

/// A period that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Of which policy.
    pub policy: QuotaId,
    /// Which one.
    pub period_name: String,
    /// How much was used in it.
    pub used: u64,
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Closed periods that ended before this are forgotten.
    pub periods_before: Timestamp,
    /// Request ids of closed periods that ended before this are forgotten.
    pub request_ids_before: Timestamp,
    /// Events from before this are forgotten, once they are delivered to all of `sinks`.
    pub events_before: Timestamp,
    /// Where events are delivered to.
    pub sinks: Vec<String>,
}

/// How much was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Closed periods.
    pub periods: u64,
    /// Request ids.
    pub request_ids: u64,
    /// Events.
    pub events: u64,
}
