//! The storage of usage.

pub mod book;
mod operation;

use std::sync::Arc;

use async_trait::async_trait;
use headgate::Timestamp;
use headgate_admin::{Author, Listed, Page};

pub use self::operation::{
    Effect, Increment, IncrementOutcome, IncrementResult, Operation, OperationResult, Posted,
    Refund, RefundOutcome, RefundResult, ReservationAction, ReservationChange, ReservationOutcome,
    ReservationResult, Reserve,
};
use crate::{PeriodSpan, PeriodUsage, QuotaId, RepositoryError, Reservation, ReservationId};

/// Durable storage of usage, and the authority on it.
///
/// # Contract
///
/// - [`commit`](Self::commit) decides operations in order by the current policies, and never lets
///   used and reserved units exceed a limit, even with concurrent commits, unless a reservation is
///   settled with an overdraft. When it returns, usage, reservations and events are durable.
/// - A request id is charged once per period of a policy, and refunded once.
/// - An operation counts in the period in which it was admitted, even if that is closed before the
///   commit. By the ledger's own clock it must be the current period, give or take
///   [`PeriodSpan::TOLERANCE`]; otherwise nothing is charged, reserved, refunded or reset.
/// - A reservation belongs to the period in which it was made, and is used and settled there, even
///   after that period has ended. When its TTL is over by the ledger's clock, no later operation
///   counts what it held.
#[async_trait]
pub trait QuotaLedger: Send + Sync {
    /// Decides `operations` in one transaction; returns their results in the same order.
    ///
    /// # Errors
    ///
    /// Nothing was done, except perhaps if it is [`RepositoryError::Unconfirmed`]. Errors of single
    /// policies are `Busy`, `Refused` or `Corrupt`: the operations on others may succeed without
    /// them.
    async fn commit(
        &self,
        operations: &[Operation],
        patience: Patience,
    ) -> Result<Vec<Posted>, RepositoryError>;

    /// Returns a reservation as it is by the ledger's clock.
    async fn reservation(
        &self,
        policy: &QuotaId,
        id: &ReservationId,
    ) -> Result<Option<Reservation>, RepositoryError>;

    /// Returns the name of the latest period in which a request id was charged.
    async fn charged_period(
        &self,
        policy: &QuotaId,
        request_id: &str,
    ) -> Result<Option<String>, RepositoryError>;

    /// Returns the usage of a policy in a period, without reservations whose TTL is over; `None` if
    /// there never was any.
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

    /// Sets used units to 0 and writes the audit log, or neither; returns the usage before. Pending
    /// reservations stay.
    async fn reset(&self, reset: &Reset) -> Result<u64, RepositoryError>;

    /// Returns up to `max` periods that changed since then and are not closed, latest change first.
    async fn changed_periods(
        &self,
        since: Timestamp,
        max: u32,
    ) -> Result<Vec<ChangedPeriod>, RepositoryError>;

    /// Ends reservations whose TTL is over, so that what they held does not wait for the next
    /// operation; returns how many.
    async fn release_expired(&self) -> Result<u64, RepositoryError>;

    /// Closes periods that have ended; returns how many.
    async fn close_periods(&self, now: Timestamp) -> Result<u64, RepositoryError>;

    /// Deletes old data.
    async fn prune(&self, retention: &Retention) -> Result<Pruned, RepositoryError>;
}

/// How long a commit waits for a lock that another transaction holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Longer than a healthy server holds one, because the operations on other policies wait, too.
    Short,
    /// Until the database ends the transaction of a server that was paused, if possible.
    Long,
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
    /// Units used or reserved.
    pub taken: u64,
}

/// Age from which data is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Closed periods that ended before this are deleted.
    pub periods_before: Timestamp,
    /// Request ids and reservations of closed periods that ended before this are deleted.
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
    /// Request ids and reservations.
    pub request_ids: u64,
    /// Events.
    pub events: u64,
}
