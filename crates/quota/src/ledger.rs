//! The storage of usage.

pub mod book;

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page};

use crate::{PeriodSpan, PeriodUsage, QuotaId, RepositoryError};

/// Durable storage of usage, and the authority on it.
///
/// # Contract
///
/// - [`commit`](Self::commit) decides increments in order by the current policies, and never lets
///   usage exceed a limit, even with concurrent commits. When it returns, usage and events are
///   durable.
/// - A request id is charged once per period of a policy.
/// - An increment counts in the period in which it was admitted, even if that is closed before the
///   commit. By the ledger's own clock it must be the current period, give or take
///   [`PeriodSpan::TOLERANCE`]; otherwise nothing is charged or reset.
#[async_trait]
pub trait QuotaLedger: Send + Sync {
    /// Decides `increments` in one transaction; returns results in the same order.
    async fn commit(
        &self,
        increments: &[Increment],
    ) -> Result<Vec<IncrementResult>, RepositoryError>;

    /// Returns the usage of a policy in a period; `None` if there never was any.
    async fn usage(
        &self,
        policy: &QuotaId,
        period_name: &str,
    ) -> Result<Option<PeriodUsage>, RepositoryError>;

    /// Returns a page of the periods in which a policy was used, newest first.
    async fn history(
        &self,
        policy: &QuotaId,
        page: Page,
    ) -> Result<Listed<PeriodUsage>, RepositoryError>;

    /// Sets usage to 0 and writes the audit log, or neither; returns the usage before.
    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError>;

    /// Returns up to `max` periods that changed since then and are not closed, latest change first.
    async fn changed_periods(
        &self,
        since: Timestamp,
        max: u32,
    ) -> Result<Vec<ChangedPeriod>, RepositoryError>;

    /// Closes periods that have ended; returns how many.
    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError>;

    /// Deletes old data.
    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError>;
}

/// A request to charge units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Period in which the request was admitted.
    pub span: Arc<PeriodSpan>,
    /// Units.
    pub amount: u64,
    /// Idempotency key.
    pub request_id: Option<String>,
    /// Time of admission.
    pub at: Timestamp,
}

/// The ledger's result of one increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncrementResult {
    /// Outcome: charged, or the reason why not.
    pub outcome: IncrementOutcome,
    /// Usage after it; for a replay, usage after the original.
    pub used: u64,
    /// Limit by which it was decided.
    pub limit: u64,
}

/// The outcome of an increment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementOutcome {
    /// It was charged.
    Charged,
    /// It was charged before under the same request id.
    Replayed,
    /// It exceeds the units left: nothing was charged.
    Denied,
    /// It exceeds the limit by itself: nothing was charged, and no event is recorded.
    ExceedsLimit,
    /// The period is not the current one by the ledger's clock: nothing was charged.
    OutOfPeriod,
    /// The policy is disabled: everything is admitted and nothing charged.
    Disabled,
    /// Another amount was charged under the same request id.
    Conflict,
    /// The policy does not exist any more.
    NotFound,
}

/// A request to reset usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Period to reset.
    pub span: Arc<PeriodSpan>,
    /// Reason for the audit log.
    pub reason: String,
    /// Caller and time.
    pub author: Author,
}

/// A period whose usage changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPeriod {
    /// Id of the policy.
    pub policy: QuotaId,
    /// Name of the period.
    pub period_name: String,
    /// Usage in the period.
    pub used: u64,
}

/// Age from which data is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Closed periods that ended before this are deleted.
    pub periods_before: Timestamp,
    /// Request ids of closed periods that ended before this are deleted.
    pub request_ids_before: Timestamp,
    /// Events before this are deleted once they are delivered to all of `sinks`.
    pub events_before: Timestamp,
    /// Sinks of events.
    pub sinks: Vec<String>,
}

/// Numbers of deleted rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Closed periods.
    pub periods: u64,
    /// Request ids.
    pub request_ids: u64,
    /// Events.
    pub events: u64,
}
